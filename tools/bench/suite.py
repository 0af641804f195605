#!/usr/bin/env python3
"""`ttt tune` over the development suite on this machine's GPU; writes a Markdown table and a JSON file.

Usage: suite.py --bin DIR --data tests/data/suite --out DIR [--budget S] [--repeat N] [--only NAME,…] [--emulate PROFILE]
The column "known" is the best gain measured by hand with the same family of edits (tests/data/suite/known_gains.json);
"reached" is (found - 1) / (known - 1). A kernel that is not tuned is a row with its reason, never left out.
"""
import argparse, datetime, json, pathlib, platform, re, shlex, statistics, subprocess, sys


def machine():
    def run(*cmd):
        try:
            return subprocess.run(cmd, capture_output=True, text=True, timeout=20).stdout.strip()
        except (OSError, subprocess.TimeoutExpired):
            return ""
    gpu = run("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader").splitlines()
    nvcc = run("nvcc", "--version").splitlines()
    return {"gpu": gpu[0] if gpu else "none", "kernel": platform.release(), "toolkit": nvcc[-1] if nvcc else "none",
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"), "command": shlex.join(sys.argv)}


def tune(a, name):
    cmd = [str(a.bin / "ttt"), "tune", str(a.data / "kernels.ptx"), "--launch", str(a.data / f"{name}.json"), "--budget", str(a.budget), "--json"]
    cmd += ["--emulate", a.emulate] if a.emulate else []
    try:
        p = subprocess.run(cmd, capture_output=True, text=True, timeout=a.budget + 60)
        site = json.loads(p.stdout)
        site["stderr"] = p.stderr[-500:]
        return site
    except subprocess.TimeoutExpired as e:
        reason = f"no end within {e.timeout:.0f} s"
    except json.JSONDecodeError:
        reason = f"exit code {p.returncode}: {' '.join((p.stdout + p.stderr).split())[-300:]}"
    return {"name": name, "state": "failed", "reason": reason, "speedup": None}


def number(value, digits):
    return "-" if value is None else f"{value:.{digits}f}"


def table_row(row):
    """One Markdown row; what was not measured is "-", and the bars of a recipe are escaped."""
    last, found, known = row["runs"][-1], row["speedup"], row["known"]
    reached = "-" if found is None or known <= 1.005 else f"{(found - 1) / (known - 1) * 100:.0f} %"
    spread = row["spread"] if len(row["runs"]) > 1 else None
    best = max((v for v in last.get("verdicts", []) if v.get("outcome") == "accept" and v.get("speedup")),
               key=lambda v: v["speedup"], default={})
    interval = re.search(r"\(([0-9.]+ to [0-9.]+)\)", best.get("evidence", ""))
    cells = [row["name"], number(last.get("base_us"), 1), number(last.get("best_us"), 1), number(found, 3),
             interval.group(1) if interval else "-", number(spread, 3), number(known, 3), reached, last.get("bit_exact"),
             last.get("tried"), last.get("state"), best.get("recipe") or last.get("reason") or ""]
    return "| " + " | ".join(str(c).replace("|", "\\|") for c in cells) + " |"


HEADER = ("| kernel | base µs | best µs | speedup | 95 % interval | spread of runs | known | reached | bit-exact | tried | state | recipe or reason |\n"
          "|---|---|---|---|---|---|---|---|---|---|---|---|\n")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--bin", type=pathlib.Path, required=True)
    p.add_argument("--data", type=pathlib.Path, required=True)
    p.add_argument("--out", type=pathlib.Path, required=True)
    p.add_argument("--budget", type=float, default=60)
    p.add_argument("--repeat", type=int, default=1)
    p.add_argument("--only", default="")
    p.add_argument("--emulate", default="", help="profile of the emulated GPU; its figures are simulated, never GPU figures")
    a = p.parse_args()
    known = json.loads((a.data / "known_gains.json").read_text())
    names = [n for n in a.only.split(",") if n] or list(known)
    if unknown := [n for n in names if n not in known]:
        sys.exit(f"suite.py: --only {','.join(unknown)}: the suite has {', '.join(known)}")
    rows = []
    for name in names:
        runs = [tune(a, name) for _ in range(a.repeat)]
        found = [r["speedup"] for r in runs if r.get("speedup")]
        rows.append({"name": name, "known": known[name], "runs": runs, "speedup": statistics.median(found) if found else None,
                     "spread": (max(found) - min(found)) if found else None})
        rows[-1]["row"] = table_row(rows[-1])
        print(rows[-1]["row"], flush=True)
    m = machine()
    if a.emulate:
        m["gpu"] = f"the emulated GPU ({a.emulate}; times are simulated)"
    a.out.mkdir(parents=True, exist_ok=True)
    (a.out / "suite.json").write_text(json.dumps({"machine": m, "budget_s": a.budget, "rows": rows}, indent=1))
    head = (f"`{m['command']}` on {m['gpu']}, {m['toolkit']}, {m['date']}; {a.repeat} run(s) per kernel, medians.\n\n") + HEADER
    (a.out / "suite.md").write_text(head + "\n".join(r["row"] for r in rows) + "\n")


if __name__ == "__main__":
    main()
