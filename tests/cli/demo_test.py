#!/usr/bin/env python3
"""A short run of the demo on the emulated GPU: same bits, right digits, whole report. Usage: demo_test.py BUILD_DIR SOURCE_DIR"""
import json, pathlib, subprocess, sys, tempfile, unittest

BUILD, SOURCE = (pathlib.Path(p) for p in sys.argv[1:3])
sys.path.insert(0, str(SOURCE / "tests/e2e"))
from report_schema import report_problems


class DemoTest(unittest.TestCase):
    def test_short_run(self):
        with tempfile.TemporaryDirectory(prefix="ttt-demo-") as folder:
            out = pathlib.Path(folder) / "report.json"
            p = subprocess.run([sys.executable, SOURCE / "tools/demo/run.py", "--build", BUILD, "--device", "emulated", "--seconds", "10",
                                "--out", out], capture_output=True, text=True, timeout=280)
            self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
            report = json.loads(out.read_text())
        self.assertEqual(report_problems(report), [])
        self.assertTrue(report["emulated"])
        self.assertIs(report["responses_identical"], True)
        self.assertGreater(report["requests"], 0)
        self.assertGreaterEqual(report["accuracy"], 0.97)
        self.assertTrue(report["sites"], p.stdout)
        for site in report["sites"]:
            self.assertIn(site["name"], p.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
