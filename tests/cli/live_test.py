#!/usr/bin/env python3
"""`ttt` and running programs on the emulated GPU: tune, status, explain, off and on. Usage: live_test.py BUILD_DIR SOURCE_DIR"""
import json, os, pathlib, subprocess, sys, tempfile, time, unittest

BUILD, SOURCE = (pathlib.Path(p) for p in sys.argv[1:3])
sys.path.insert(0, str(SOURCE / "tests/e2e"))
from report_schema import FINAL_STATES, report_problems, site_problems

TTT = str(BUILD / "bin/ttt")
PTX = str(SOURCE / "tests/data/suite/kernels.ptx")
PATIENCE = 60  # seconds for what takes a few on an idle machine


def spec(name):
    return str(SOURCE / f"tests/data/suite/{name}.small.json")


class LiveTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ttt-live-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD" and not k.startswith("TTT_")}
        # A folder of its own for sockets and winners: nobody else's programs are seen or stopped.
        self.environment |= {"XDG_RUNTIME_DIR": folder.name, "TTT_STORE": folder.name + "/store"}

    def ttt(self, *words):
        return subprocess.run([TTT, *map(str, words)], capture_output=True, text=True, env=self.environment, timeout=180)

    def start_program(self):
        """A kernel in a loop, preloaded by hand, so that its process id is known; it ends at SIGTERM."""
        environment = self.environment | {
            "LD_PRELOAD": str(BUILD / "lib/libttt.so"), "LD_LIBRARY_PATH": str(BUILD / "emulator"), "TTT_EMU_PROFILE": "h200",
            "TTT_REPORT": str(self.folder / "report.json")}
        program = subprocess.Popen([BUILD / "bin/ttt-kernel-loop", PTX, spec("stencil27"), "--seconds", "170", "--check"],
                                   env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(program.communicate)
        self.addCleanup(program.kill)
        return program

    def wait_for(self, what, found):
        """The first true value of found(), within PATIENCE seconds."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if value := found():
                return value
            time.sleep(0.1)
        self.fail(f"no {what} within {PATIENCE} s")

    def status(self, pid):
        p = self.ttt("status", pid, "--json")
        return json.loads(p.stdout) if p.returncode == 0 else {}

    def site(self, pid):
        sites = self.status(pid).get("sites", [])
        return sites[0] if sites else {}

    def test_site_checks_notice_what_is_wrong(self):
        good = {"name": "k", "grid": [1, 1, 1], "block": [32, 1, 1], "shared": 0, "launches": 5, "share": 0.5, "eligible": True, "reason": "",
                "tried": 1, "verdicts": [{"recipe": "r", "gate": "none", "outcome": "accept", "evidence": "e"}], "base_us": 2.0,
                "best_us": 1.0, "speedup": 2.0, "bit_exact": True, "state": "committed"}
        self.assertEqual(site_problems(good), [])
        for wrong in ({"bit_exact": False}, {"speedup": 0.9}, {"best_us": 3.0}, {"grid": [1, 1]}, {"share": 2}, {"state": "?"}, {"tried": "1"},
                      {"verdicts": [{"recipe": "r"}]}, {"state": "ineligible"}, {"launches": None}):
            self.assertNotEqual(site_problems(good | wrong), [], wrong)
        self.assertNotEqual(site_problems({k: v for k, v in good.items() if k != "share"}), [])

    def test_a_loop_that_takes_long_to_end_is_waited_for(self):
        """Checksums of large buffers take longer than the time between two looks at the loop."""
        large = json.loads(pathlib.Path(spec("stencil27")).read_text())
        for argument in large["args"]:
            if "buffer" in argument:
                argument["buffer"]["bytes"] = 100 << 20
        launch = self.folder / "large.json"
        launch.write_text(json.dumps(large))
        p = self.ttt("tune", PTX, "--launch", launch, "--emulate", "h200", "--budget", 4, "--json")
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertEqual(site_problems(json.loads(p.stdout)), [])

    def test_tune_prints_a_whole_site_and_keeps_its_budget(self):
        budget, started = 8, time.monotonic()
        p = self.ttt("tune", PTX, "--launch", spec("stencil27"), "--emulate", "h200", "--budget", budget, "--json")
        took = time.monotonic() - started
        self.assertEqual(p.returncode, 0, p.stderr)
        site = json.loads(p.stdout)
        self.assertEqual(site_problems(site), [])
        self.assertEqual(site["name"], "stencil27")
        self.assertTrue(site["eligible"], site["reason"])
        self.assertIn(site["state"], FINAL_STATES)
        self.assertGreater(site["tried"], 0)
        self.assertTrue(site["bit_exact"])
        # The loop ends ten seconds after the budget at the latest, its report 20 s later.
        self.assertLess(took, budget + 30)

    def test_running_program_can_be_watched_and_switched(self):
        program = self.start_program()
        pid = program.pid
        early = self.wait_for("site", lambda: self.site(pid))
        later = self.wait_for("progress", lambda: (s := self.site(pid)).get("launches", 0) > early["launches"] and s)
        self.assertEqual(site_problems(later), [])
        self.assertIn(pid, [p["pid"] for p in json.loads(self.ttt("status", "--json").stdout)["processes"]])
        self.assertIn("stencil27", self.ttt("status", pid).stdout)
        self.wait_for("verdicts", lambda: self.site(pid).get("verdicts"))
        explained = self.ttt("explain", pid)
        self.assertEqual(explained.returncode, 0, explained.stderr)
        self.assertIn("registers(", explained.stdout)
        self.assertEqual(report_problems(json.loads(self.ttt("explain", pid, "--json").stdout)), [])
        for command, says in (("off", "originals restored"), ("on", "tuning on")):
            p = self.ttt(command, pid)
            self.assertEqual(p.returncode, 0, p.stderr)
            self.assertIn(says, p.stdout)
            before = self.site(pid)["launches"]
            self.wait_for(f"launch after {command}", lambda: self.site(pid).get("launches", 0) > before)
        program.terminate()
        out, err = program.communicate(timeout=PATIENCE)
        self.assertEqual(program.returncode, 0, err)
        self.assertIn("the same as at first", out)
        report = self.wait_for("last report", self.last_report)
        self.assertEqual(report_problems(report), [])
        self.assertEqual(len(report["sites"]), 1)

    def last_report(self):
        try:
            report = json.loads((self.folder / "report.json").read_text())
        except (OSError, json.JSONDecodeError):
            return None
        return report if report.get("final") else None


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
