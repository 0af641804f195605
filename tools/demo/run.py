#!/usr/bin/env python3
"""The demo: a digits server, first as it is, then under LD_PRELOAD=libttt.so, with every response compared bit for bit.

Runs on the GPU if there is one, else on the emulated GPU (a libcuda.so.1 that executes PTX on the CPU; its times are
simulated). Prints progress, a table of the kernels before and after, and writes build/demo/report.json.

Usage: run.py --build build/release [--device auto|gpu|emulated] [--profile h200] [--seconds S] [--batch N] [--out FILE]
Exit code: 0 when all responses have the same bits and at least 97 % of the digits are right; 1 otherwise.
"""
import argparse
import http.client
import json
import os
import pathlib
import select
import shutil
import signal
import struct
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PIXELS, CLASSES = 64, 10
FINAL_STATES = {"ineligible", "observed", "validated", "committed", "kept", "rolled_back", "failed"}
PROBE = """
import ctypes, sys
try: cuda = ctypes.CDLL("libcuda.so.1")
except OSError: sys.exit(1)
n = ctypes.c_int()
sys.exit(0 if cuda.cuInit(0) == 0 and cuda.cuDeviceGetCount(ctypes.byref(n)) == 0 and n.value > 0 else 1)
"""


class DemoError(Exception):
    pass


def gpu_works():
    """In a process of its own: cuInit must not stay behind in this one."""
    return subprocess.run([sys.executable, "-c", PROBE], timeout=60, stderr=subprocess.DEVNULL).returncode == 0


def read_digits(path):
    data = path.read_bytes()
    if data[:4] != b"TTTD":
        raise DemoError(f"{path} is not a digits file")
    count, = struct.unpack_from("<I", data, 4)
    images = data[8:8 + count * PIXELS]
    labels = data[8 + count * PIXELS:]
    if len(images) != count * PIXELS or len(labels) != count:
        raise DemoError(f"{path} is cut short")
    return images, labels


def batches_of(images, size):
    """All batches have one size, so that each kernel has one launch site: the last is filled up from the front."""
    count = len(images) // PIXELS
    padded = images + images[:(-count % size) * PIXELS]
    step = size * PIXELS
    return [padded[i:i + step] for i in range(0, len(padded), step)]


class Server:
    """The sample server as a child process; always stopped on leaving the `with` block."""

    def __init__(self, program, environment, batch, log):
        self.log = open(log, "wb")
        self.process = subprocess.Popen([str(program), "--port", "0", "--max-batch", str(batch)], env=environment,
                                        stdout=subprocess.PIPE, stderr=self.log)
        self.log_path = log
        self.connection = None

    def __enter__(self):
        try:
            ready, _, _ = select.select([self.process.stdout], [], [], 60)
            line = self.process.stdout.readline().decode(errors="replace") if ready else ""
            if not line.startswith("listening on http://"):
                raise DemoError(f"the server did not start: {line.strip() or self.last_words()}")
        except BaseException:
            self.__exit__(None, None, None)
            raise
        self.device = line[line.find("(") + 1:line.rfind(")")]
        host, port = line.split()[2].removeprefix("http://").rsplit(":", 1)
        self.connection = http.client.HTTPConnection(host, int(port), timeout=120)
        return self

    def classify(self, images):
        try:
            self.connection.request("POST", "/classify", images, {"Accept": "application/octet-stream"})
            response = self.connection.getresponse()
            body = response.read()
        except (OSError, http.client.HTTPException) as e:
            raise DemoError(f"the server went away ({e!r}): {self.last_words()}") from e
        if response.status != 200:
            raise DemoError(f"the server answered {response.status}: {body[:200]!r}")
        return body

    def last_words(self):
        self.log.flush()
        return pathlib.Path(self.log_path).read_text(errors="replace").strip()[-400:] or "it printed nothing"

    def stop(self):
        """Exit code after SIGTERM."""
        self.connection.close()
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60)

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process.stdout.close()
        self.log.close()


class Progress:
    """One updating line on a terminal, a line now and then elsewhere."""

    def __init__(self):
        self.live = sys.stdout.isatty()
        self.last = 0.0

    def show(self, text, force=False):
        now = time.monotonic()
        if self.live:
            print(f"\r\033[K  {text[:shutil.get_terminal_size().columns - 4]}", end="", flush=True)
        elif force or now - self.last >= 5:
            print(f"  {text}", flush=True)
            self.last = now

    def end(self):
        if self.live:
            print()


def base_environment(build, emulated, profile):
    environment = {k: v for k, v in os.environ.items()
                   if k != "LD_PRELOAD" and (not k.startswith("TTT_") or k.startswith("TTT_LOG"))}
    if emulated:
        environment["TTT_EMU_PROFILE"] = profile
        paths = [str(build / "emulator"), os.environ.get("LD_LIBRARY_PATH", "")]
        environment["LD_LIBRARY_PATH"] = ":".join(p for p in paths if p)
    return environment


def status_of(build, pid):
    """What the tuner says about its sites, or [] while there is none to ask."""
    p = subprocess.run([str(build / "bin/ttt"), "status", str(pid), "--json"], capture_output=True, text=True, timeout=20)
    try:
        return json.loads(p.stdout).get("sites", []) if p.returncode == 0 else []
    except (json.JSONDecodeError, AttributeError):
        return []


def accuracy_of(responses, labels):
    rows = struct.iter_unpack(f"<{CLASSES}f", b"".join(responses))
    guesses = [max(range(CLASSES), key=row.__getitem__) for row in rows]
    return sum(g == l for g, l in zip(guesses, labels)) / len(labels)


def summary_line(started, requests, differing, sites):
    states = {}
    for s in sites:
        states[s.get("state", "?")] = states.get(s.get("state", "?"), 0) + 1
    words = ", ".join(f"{n} {state}" for state, n in sorted(states.items())) or "watching"
    return f"{time.monotonic() - started:5.0f} s  {requests} requests, {differing} differ; kernels: {words}"


WARM_UP_PASSES = 20  # launches that make the kernels hot before the service falls into its rhythm


def drive(server, build, batches, expected, seconds, gap, rest):
    """Sends the data set over and over, with pauses, until every kernel is decided or time is up.

    `rest`: seconds of silence after each pass. On a real GPU the sandbox replays only in pauses of over 0.3 s.
    """
    started = time.monotonic()
    progress, sites, next_status, settled = Progress(), [], 0.0, 0
    requests = differing = passes = 0
    while settled < 2 and time.monotonic() - started < seconds:
        for images, want in zip(batches, expected):
            differing += server.classify(images) != want
            requests += 1
            time.sleep(gap)
            if time.monotonic() > next_status:
                sites = status_of(build, server.process.pid)
                next_status = time.monotonic() + 1.5
            progress.show(summary_line(started, requests, differing, sites))
            if time.monotonic() - started >= seconds:
                break
        decided = bool(sites) and all(s.get("state") in FINAL_STATES for s in sites)
        settled = settled + 1 if decided else 0
        passes += 1
        if passes > WARM_UP_PASSES:
            time.sleep(rest)
    # A last whole pass: every image through the kernels as they are now.
    last = [server.classify(images) for images in batches]
    differing += sum(got != want for got, want in zip(last, expected))
    requests += len(last)
    progress.show(summary_line(started, requests, differing, status_of(build, server.process.pid) or sites), force=True)
    progress.end()
    return requests, differing, last


def wait_for_report(path, seconds):
    """The tuner rewrites its report as it goes and marks the last one; an unmarked one is better than none."""
    report, end = None, time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            report = json.loads(path.read_text())
            if report.get("final", True):
                break
        except (OSError, json.JSONDecodeError):
            pass
        time.sleep(0.1)
    return report


def number(value, digits):
    return f"{value:.{digits}f}" if isinstance(value, (int, float)) and not isinstance(value, bool) else "-"


def print_table(sites, emulated):
    print(f"\n{'kernel':<16}{'grid':>10}{'launches':>10}{'share':>8}{'before us':>11}{'after us':>10}{'speedup':>9}  state")
    for s in sorted(sites, key=lambda s: -(s.get("share") or 0)):
        grid = "x".join(str(v) for v in s.get("grid", []))
        share = f"{100 * s['share']:.0f}%" if isinstance(s.get("share"), (int, float)) else "-"
        why = f": {s['reason']}" if s.get("reason") else ""
        print(f"{s.get('name', '?')[:15]:<16}{grid:>10}{s.get('launches', 0):>10}{share:>8}{number(s.get('base_us'), 2):>11}"
              f"{number(s.get('best_us'), 2):>10}{number(s.get('speedup'), 3):>9}  {s.get('state', '?')}{why}")
    if emulated:
        print("(emulated GPU: times are simulated by the cost model, deterministic)")


def run(a):
    build = a.build.resolve()
    emulated = a.device == "emulated" or (a.device == "auto" and not gpu_works())
    program = build / "bin/inference_server"
    library = build / "lib/libttt.so"
    for needed in [program, library] + ([build / "emulator/libcuda.so.1"] if emulated else []):
        if not needed.exists():
            raise DemoError(f"{needed} is missing: ./dev build")
    a.out.parent.mkdir(parents=True, exist_ok=True)
    a.out.unlink(missing_ok=True)
    work = a.out.parent / "work"
    shutil.rmtree(work, ignore_errors=True)  # an old store would make this a second run
    work.mkdir()
    batch = a.batch or (8 if emulated else 128)
    images, labels = read_digits(ROOT / "samples/inference_server/data/digits.bin")
    batches = batches_of(images, batch)
    environment = base_environment(build, emulated, a.profile)
    print(f"demo: {len(labels)} handwritten digits, {len(batches)} requests of {batch}, on "
          f"{'the emulated GPU (' + a.profile + ')' if emulated else 'the GPU'}")

    started = time.monotonic()
    with Server(program, environment, batch, work / "plain.log") as server:
        device = server.device
        expected = [server.classify(b) for b in batches]
        if server.stop() != 0:
            raise DemoError("the server without ttt did not end cleanly: " + server.last_words())
    print(f"without ttt: {device}, accuracy {100 * accuracy_of(expected, labels):.2f} %, {time.monotonic() - started:.1f} s")

    report_path = work / "tuner_report.json"
    environment |= {"LD_PRELOAD": str(library), "TTT_REPORT": str(report_path), "TTT_STORE": str(work / "store"), "TTT_TOLL": str(a.toll)}
    print("with LD_PRELOAD=libttt.so:")
    with Server(program, environment, batch, work / "tuned.log") as server:
        requests, differing, last = drive(server, build, batches, expected, a.seconds, a.gap_ms / 1000,
                                           a.rest if a.rest >= 0 else (0 if emulated else 1.5))
        exit_code = server.stop()
    report = wait_for_report(report_path, 20)
    if report is None:
        raise DemoError(f"no report from the tuner (server exit code {exit_code}); ttt doctor may tell why")
    sites = report.get("sites", [])
    print_table(sites, emulated)
    accuracy = accuracy_of(last, labels)
    committed = [s for s in sites if s.get("state") == "committed"]
    print(f"\nresponses: {requests}, {'all with the same bits as without ttt' if differing == 0 else f'{differing} DIFFER'}; "
          f"accuracy {100 * accuracy:.2f} %; {len(committed)} of {len(sites)} kernels faster; server exit code {exit_code}")
    report |= {"device": device, "emulated": emulated, "batch": batch, "requests": requests, "responses_differing": differing,
               "responses_identical": differing == 0, "accuracy": accuracy, "server_exit_code": exit_code,
               "seconds": round(time.monotonic() - started, 1)}
    a.out.write_text(json.dumps(report, indent=1) + "\n")
    print(f"report: {a.out}")
    return 0 if differing == 0 and accuracy >= 0.97 and exit_code == 0 else 1


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--build", type=pathlib.Path, required=True)
    p.add_argument("--device", choices=["auto", "gpu", "emulated"], default="auto")
    p.add_argument("--profile", choices=["h200", "orin", "thor"], default="h200")
    p.add_argument("--seconds", type=float, default=180, help="longest time with ttt")
    p.add_argument("--batch", type=int, default=0, help="images per request; 0: 8 emulated, 128 on a GPU")
    p.add_argument("--gap-ms", type=float, default=15, help="pause after each request")
    p.add_argument("--toll", type=float, default=0.2,
                   help="share of requests that trials may touch; libttt.so's own default, 0.02, takes some minutes at the demo's five requests a second")
    p.add_argument("--rest", type=float, default=-1, help="seconds of silence after each pass; default 0 emulated, 1.5 on a GPU (the server closes connections that are silent for 2)")
    p.add_argument("--out", type=pathlib.Path, default=ROOT / "build/demo/report.json")
    a = p.parse_args()
    if a.batch < 0 or a.batch > 4096 or a.seconds <= 0 or a.gap_ms < 0:
        p.error("--batch is 0 to 4096, --seconds above 0, --gap-ms not negative")
    try:
        return run(a)
    except DemoError as e:
        print(f"demo: {e}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
