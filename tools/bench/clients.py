#!/usr/bin/env python3
"""Real programs with and without libttt.so: same bits, same exit code, and what was seen and tuned in each.

Each client (samples/python, samples/cuda) runs four times: twice as it is, then under LD_PRELOAD in the modes observe
and apply. Two plain runs that differ make the client useless as a witness, and its row says so. Writes clients.md and
clients.json; exit code 1 when a run under libttt.so differs from the plain one.

Usage: clients.py --build DIR --out DIR [--rounds N] [--gap S] [--only NAME,…] [--jobs N]
                  [--python PYTHON] [--timeout S]
--jobs above 1 lets clients share the GPU: good for finding differences, not for speedups.
"""
import argparse
import concurrent.futures
import datetime
import json
import os
import pathlib
import platform
import shlex
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOT_HERE = 77  # a client's exit code for "this machine lacks what I need"
PYTHON_CLIENTS = {
    "torch-eager": ["torch_eager.py"],
    "torch-compile": ["torch_compile.py", "default"],
    "torch-compile-graphs": ["torch_compile.py", "reduce-overhead"],
    "cupy": ["cupy_client.py"],
    "numba": ["numba_client.py"],
    "jax": ["jax_client.py"],
    "triton": ["triton_client.py"],
    "onnxruntime": ["onnx_client.py"],
    "two-gpus": ["two_gpus.py"],
}
CUDA_CLIENTS = {
    "cudart-static": [],
    "cudart-shared": ["-cudart", "shared"],
    "cudart-per-thread": ["--default-stream", "per-thread"],
}


def clients(a, work):
    """name → command; a CUDA sample that does not build here maps to the compiler's complaint."""
    out = {name: [a.python, str(ROOT / "samples/python" / cmd[0]), *cmd[1:]] for name, cmd in PYTHON_CLIENTS.items()}
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    for name, flags in CUDA_CLIENTS.items():
        binary = work / name
        try:
            built = subprocess.run([nvcc, "-O2", "-gencode", "arch=compute_90,code=[sm_90,compute_90]", *flags,
                                    str(ROOT / "samples/cuda/streams.cu"), "-o", str(binary)], capture_output=True, text=True)
            out[name] = [str(binary)] if built.returncode == 0 else "does not build: " + built.stderr[-200:]
        except OSError as e:
            out[name] = f"does not build: {e}"
    return {n: c for n, c in out.items() if not a.only or n in a.only}


def run(a, cmd, report=None, mode=None, cache=None):
    env = dict(os.environ, CLIENT_ROUNDS=str(a.rounds), CLIENT_GAP=str(a.gap))
    env.pop("LD_PRELOAD", None)
    if cache:  # CuPy keeps machine code alone: a warm cache has no PTX to see
        env["CUPY_CACHE_DIR"] = str(cache)
    if mode:
        env |= {"LD_PRELOAD": str(a.build / "lib/libttt.so"), "TTT_MODE": mode, "TTT_REPORT": str(report), "TTT_STORE": str(report.parent / "store")}
    begin = time.monotonic()
    try:
        p = subprocess.run(cmd, env=env, capture_output=True, timeout=a.timeout)
        code, out, err = p.returncode, p.stdout, p.stderr
    except subprocess.TimeoutExpired as e:
        code, out, err = "timeout", e.stdout or b"", e.stderr or b""
    seconds = time.monotonic() - begin
    result = {"exit": code, "stdout": out.decode(errors="replace"), "stderr": err.decode(errors="replace")[-2000:], "seconds": round(seconds, 2)}
    if mode:
        result["report"] = wait_for_report(report)
    return result


def wait_for_report(path):
    """The tuner outlives the program by a moment: it writes the final report last."""
    for _ in range(100):
        try:
            report = json.loads(path.read_text())
            if report.get("final"):
                return report
        except (OSError, json.JSONDecodeError):
            pass
        time.sleep(0.1)
    return None


def same(x, y):
    return x["exit"] == y["exit"] and x["stdout"] == y["stdout"]


def measure(a, name, cmd, work):
    if isinstance(cmd, str):
        return {"name": name, "state": cmd}
    plain = [run(a, cmd), run(a, cmd)]
    row = {"name": name, "plain": plain}
    if plain[0]["exit"] == NOT_HERE:
        return row | {"state": plain[0]["stdout"].strip()}
    if plain[0]["exit"] != 0:
        return row | {"state": f"fails without libttt.so (exit {plain[0]['exit']})"}
    if not same(*plain):
        return row | {"state": "two plain runs differ"}
    for mode in ("observe", "apply"):
        folder = work / f"{name}-{mode}"
        folder.mkdir(parents=True, exist_ok=True)
        row[mode] = run(a, cmd, folder / "report.json", mode, folder / "cupy")
        row[mode]["identical"] = same(plain[0], row[mode])
    row["state"] = "identical" if row["observe"]["identical"] and row["apply"]["identical"] else "DIFFERS"
    return row


HEADER = ("| client | identical | launches | modules | kernels | without PTX | sites | eligible | committed | canary | best | plain s | observe s | apply s |\n"
          "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n")


def table_row(row):
    if "apply" not in row:
        return f"| {row['name']} | {row['state']} |" + " - |" * 12
    report = row["apply"].get("report") or {}
    sites = report.get("sites", [])
    gains = [s["speedup"] for s in sites if s.get("speedup") and s["state"] in ("committed", "canary")]
    cells = [row["name"], "yes" if row["state"] == "identical" else "NO", report.get("launches", "-"), report.get("modules", "-"), report.get("kernels", "-"),
             report.get("kernels_without_ptx", "-"), len(sites), sum(bool(s["eligible"]) for s in sites), sum(s["state"] == "committed" for s in sites),
             sum(s["state"] == "canary" for s in sites), f"{max(gains):.3f}" if gains else "-", min(p["seconds"] for p in row["plain"]),
             row["observe"]["seconds"], row["apply"]["seconds"]]
    return "| " + " | ".join(map(str, cells)) + " |"


def reasons(rows):
    """Why sites were left alone, per client and reason."""
    lines = []
    for row in rows:
        count = {}
        for s in ((row.get("apply") or {}).get("report") or {}).get("sites", []):
            key = f"{s['state']}: {s['reason'] or '-'}"[:160].replace("|", "\\|")
            count[key] = count.get(key, 0) + 1
        lines += [f"| {row['name']} | {n} | {key} |" for key, n in sorted(count.items(), key=lambda kv: -kv[1])]
    return "\n## What became of the sites\n\n| client | sites | state: reason |\n|---|---|---|\n" + "\n".join(lines) + "\n"


def machine():
    def first(*cmd):
        try:
            return subprocess.run(cmd, capture_output=True, text=True, timeout=30).stdout.strip().splitlines()[-1]
        except (OSError, subprocess.TimeoutExpired, IndexError):
            return "none"
    return {"gpu": first("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"), "nvcc": first("nvcc", "--version"),
            "kernel": platform.release(), "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"), "command": shlex.join(sys.argv)}


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--build", type=pathlib.Path, required=True)
    p.add_argument("--out", type=pathlib.Path, required=True)
    p.add_argument("--rounds", type=int, default=20)
    p.add_argument("--gap", type=float, default=0.1)
    p.add_argument("--only", type=lambda s: set(s.split(",")), default=set())
    p.add_argument("--jobs", type=int, default=1)
    p.add_argument("--python", default=sys.executable)
    p.add_argument("--timeout", type=float, default=300)
    a = p.parse_args()
    a.build, a.out = a.build.resolve(), a.out.resolve()
    work = a.out / "work"
    work.mkdir(parents=True, exist_ok=True)
    info, rows = machine(), []
    print(HEADER, end="", flush=True)
    pool = concurrent.futures.ThreadPoolExecutor(a.jobs)
    for done in concurrent.futures.as_completed(pool.submit(measure, a, name, cmd, work) for name, cmd in clients(a, work).items()):
        rows.append(done.result())
        print(table_row(rows[-1]), flush=True)
        (a.out / "clients.json").write_text(json.dumps({"machine": info, "rounds": a.rounds, "gap_s": a.gap, "rows": rows}, indent=1))
    head = "# Real programs with and without libttt.so\n\n" + "\n".join(f"* {k}: {v}" for k, v in info.items()) + \
        f"\n* {a.rounds} rounds, {a.gap} s between them; identical = exit code and every byte of stdout, which holds a SHA-256 over all results\n\n"
    (a.out / "clients.md").write_text(head + HEADER + "\n".join(map(table_row, rows)) + "\n" + reasons(rows))
    shutil.rmtree(work, ignore_errors=True)
    sys.exit(any(r["state"] == "DIFFERS" for r in rows))


if __name__ == "__main__":
    main()
