#!/usr/bin/env python3
"""The hazards and ordinary programs through the whole chain (preload, tuner, sandbox, swap), on a GPU or the emulated one.

Usage: chain.py --bin DIR --data tests/data [--emulate PROFILE] [--budget S] [--only WORD] [--out FILE]
Prints one line per check; exit code 1 when one fails. Never accepted: other bits, a slower variant, a wrong answer.
"""
import argparse, json, os, pathlib, subprocess, sys, tempfile, time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from report_schema import FINAL_STATES, report_problems, site_problems


class Failed(Exception):
    pass


class Chain:
    def __init__(self, a):
        self.bin, self.data, self.emulate, self.budget = a.bin.resolve(), a.data.resolve(), a.emulate, a.budget
        self.environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD" and not k.startswith("TTT_")}
        self.scratch = tempfile.TemporaryDirectory(prefix="ttt-chain-")
        self.environment["TTT_STORE"] = self.scratch.name + "/store"
        if self.emulate:
            self.environment["TTT_EMU_PROFILE"] = self.emulate
            paths = [str(self.bin.parent / "emulator"), self.environment.get("LD_LIBRARY_PATH", "")]
            self.environment["LD_LIBRARY_PATH"] = ":".join(p for p in paths if p)

    def run(self, *words, seconds=None):
        try:
            return subprocess.run([str(w) for w in words], capture_output=True, text=True, env=self.environment,
                                  timeout=seconds or self.budget + 60)
        except subprocess.TimeoutExpired as e:
            raise Failed(f"no end within {e.timeout:.0f} s") from e

    def tune(self, ptx, spec):
        started = time.monotonic()
        p = self.run(self.bin / "ttt", "tune", ptx, "--launch", spec, "--budget", self.budget, "--json")
        try:
            site = json.loads(p.stdout)
        except json.JSONDecodeError as e:
            raise Failed(f"exit code {p.returncode}: {p.stderr.strip()[-300:]}") from e
        problems = site_problems(site)
        if p.returncode != 0:
            problems.append(f"exit code {p.returncode}: {p.stderr.strip()[-300:]}")
        if site["bit_exact"] is False:
            problems.append("other bits")
        # Winding down (last canary, report) is outside the budget.
        if (took := time.monotonic() - started) > self.budget + 40:
            problems.append(f"{took:.0f} s for a budget of {self.budget} s")
        if problems:
            raise Failed("; ".join(problems))
        return site

    # The checks: each returns what it saw, or raises Failed.

    def hazard(self, case):
        ptx, spec = self.data / "hazards" / case["ptx"], self.data / "hazards" / case["launch"]
        plain = self.run(self.bin / "ttt-kernel-loop", ptx, spec, "--launches", 1)
        if plain.returncode != 0:  # PTX newer than the driver: its answer must reach the program unchanged
            tuned = self.run(self.bin / "ttt", "tune", ptx, "--launch", spec, "--budget", self.budget, "--json")
            if tuned.returncode == 0 or plain.stderr not in tuned.stderr:
                raise Failed(f"the driver says {plain.stderr.strip()}, under ttt: {tuned.stderr.strip()}")
            return "refused by the driver, the same under ttt"
        site = self.tune(ptx, spec)
        # An assembler fault (design rule 4): on a GPU the machine code gives another answer than the interpreter.
        if case["ptx"].startswith("r07") and not self.emulate and site["state"] == "committed":
            raise Failed("a kernel that the assembler gets wrong was tuned")
        return f"{site['state']}: {site['reason'] or str(site['speedup']) + 'x'}"

    def program(self, preload):
        """nvcc-built: fat binary, symbols, streams, a graph. It checks its own results."""
        report = pathlib.Path(self.scratch.name) / "program.json"
        before = [self.bin / "ttt", "run", "--report", report, "--"] if preload else []
        p = self.run(*before, self.bin / "emulator_program")
        if p.returncode != 0:
            raise Failed(f"exit code {p.returncode}: {(p.stdout + p.stderr).strip()[-300:]}")
        if preload and (problems := report_problems(json.loads(report.read_text()))):
            raise Failed("; ".join(problems))
        return "exit code 0" + (", report whole" if preload else "")

    def foreground(self, mode):
        """A batch program that never idles: its outputs stay the same, and the report is whole."""
        report = pathlib.Path(self.scratch.name) / "foreground.json"
        suite = self.data / "suite"
        p = self.run(self.bin / "ttt", "run", "--mode", mode, "--foreground", self.budget, "--report", report, "--",
                     self.bin / "ttt-kernel-loop", suite / "kernels.ptx", suite / "stencil27.small.json", "--gap-ms", 0,
                     "--launches", 2000, "--seconds", self.budget + 20, "--check")
        if p.returncode != 0:
            raise Failed(f"exit code {p.returncode}: {p.stderr.strip()[-300:]}")
        sites = json.loads(report.read_text())
        if problems := report_problems(sites):
            raise Failed("; ".join(problems))
        states = [s["state"] for s in sites["sites"]]
        if len(states) != 1 or states[0] not in FINAL_STATES:
            raise Failed(f"states {states}")
        if mode != "apply" and "committed" in states:
            raise Failed("committed in mode " + mode)
        return states[0]


    def rewritten_variables(self):
        """A program that writes new taps into constant memory before every few launches, and checks each output."""
        report = pathlib.Path(self.scratch.name) / "variables.json"
        ptx = self.data / "variables/filter.ptx"
        plain = self.run(self.bin / "variables_program", ptx, 1)
        if plain.returncode != 0:
            raise Failed(f"alone: exit code {plain.returncode}: {plain.stderr.strip()[-300:]}")
        # Folding this kernel's sizes gains 1.6 % by the emulated clock, less than what is asked for by default.
        self.environment["TTT_MIN_GAIN"] = "0.01"
        try:
            for run, extra in (("search", 35), ("store", 15)):
                p = self.run(self.bin / "ttt", "run", "--report", report, "--", self.bin / "variables_program", ptx,
                             self.budget + extra, seconds=self.budget + extra + 60)
                if p.returncode != 0:
                    raise Failed(f"exit code {p.returncode}: {p.stderr.strip()[-300:]}")
                whole = json.loads(report.read_text())
                if problems := report_problems(whole):
                    raise Failed("; ".join(problems))
                site = whole["sites"][0]
                if self.emulate and (site["state"] != "committed" or not site["recipe"].startswith("bind_variables | ")):
                    raise Failed(f"{run}: {site['state']}: {site['reason']}; {site['notes']}")
                if self.emulate and site["from"] != run:
                    raise Failed(f"the winner comes from the {site['from']}, not from the {run}")
        finally:
            del self.environment["TTT_MIN_GAIN"]
        return f"{site['state']}: {site['recipe']}, {p.stdout.split()[0]} rounds"

    def refused_variable(self, case):
        """What reads module variables in a way that no variant may copy is left alone, and says why."""
        site = self.tune(self.data / "variables" / case["ptx"], self.data / "variables" / case["launch"])
        if site["state"] != "ineligible" or case["reason"] not in site["reason"]:
            raise Failed(f"{site['state']}: {site['reason']}")
        return site["reason"]

    def variables(self):
        """With contents from the launch spec: the kernel is understood, whatever comes of it."""
        site = self.tune(self.data / "variables/filter.ptx", self.data / "variables/filter.json")
        agrees = [n for n in site["notes"] if n.startswith("oracle: accept")]
        if site["state"] in ("ineligible", "failed") or (self.emulate and not agrees):
            raise Failed(f"{site['state']}: {site['reason']}; {site['notes']}")
        return f"{site['state']}: {site['reason'] or site['speedup']}"


def checks(chain):
    if (chain.bin / "emulator_program").exists():
        yield "program", lambda: chain.program(False)
        yield "program under ttt", lambda: chain.program(True)
    else:
        print("skipped: program (built only where nvcc is)")
    yield "variables", chain.variables
    if (chain.bin / "variables_program").exists():
        yield "variables rewritten", chain.rewritten_variables
    else:
        print("skipped: variables rewritten (variables_program is not there)")
    for case in json.loads((chain.data / "variables/refused.json").read_text()):
        yield "variables refused " + case["ptx"].removesuffix(".ptx"), lambda: chain.refused_variable(case)
    for mode in ("observe", "tune", "apply"):
        yield f"foreground {mode}", lambda: chain.foreground(mode)
    for case in json.loads((chain.data / "hazards/answers.json").read_text()):
        yield "hazard " + case["launch"].removesuffix(".json"), lambda: chain.hazard(case)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--bin", type=pathlib.Path, required=True)
    p.add_argument("--data", type=pathlib.Path, required=True)
    p.add_argument("--emulate", default="")
    p.add_argument("--budget", type=float, default=20, help="seconds of tuning per check")
    p.add_argument("--only", default="", help="checks whose name has this word")
    p.add_argument("--out", type=pathlib.Path)
    a = p.parse_args()
    rows = []
    for name, check in checks(Chain(a)):
        if a.only not in name:
            continue
        started = time.monotonic()
        try:
            result, saw = "ok", check()
        except (Failed, OSError, json.JSONDecodeError) as e:
            result, saw = "FAILED", str(e)
        rows.append({"check": name, "result": result, "saw": saw, "seconds": round(time.monotonic() - started, 1)})
        print(f"{result:<7}{name:<44}{rows[-1]['seconds']:6.1f} s  {saw}", flush=True)
    failed = sum(r["result"] != "ok" for r in rows)
    if a.out:
        a.out.write_text(json.dumps({"emulated": bool(a.emulate), "checks": rows}, indent=1) + "\n")
    print(f"{len(rows) - failed} of {len(rows)} checks passed")
    return 0 if rows and failed == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
