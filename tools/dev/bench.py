#!/usr/bin/env python3
"""Benchmarks of speed and size, each against something in the same run. Writes JSON and Markdown to --out.

Rows: nanoseconds added per launch (null driver), program start and resident memory added with 1,000 kernels (null
driver), start of a program that never uses CUDA, size of libttt.so, parser and interpreter speed.
Usage: bench.py --build build/release --out build/bench [--rounds N]
"""
import argparse, datetime, json, os, pathlib, platform, re, shlex, statistics, subprocess, sys, tempfile, time


def spread(xs):
    return {"median": statistics.median(xs), "min": min(xs), "max": max(xs), "n": len(xs)}


def environment(build, preload):
    env = dict(os.environ, LD_LIBRARY_PATH=str(build / "null"))
    env.pop("LD_PRELOAD", None)
    if preload:
        env["LD_PRELOAD"] = str(build / "lib/libttt.so")
    return env


def footprint(build, rounds):
    added_start, added_rss = [], []
    for _ in range(rounds):
        values = []
        for preload in (False, True):
            p = subprocess.run([build / "bin/ttt-bench-footprint", "1000"], env=environment(build, preload), capture_output=True, text=True, check=True, timeout=60)
            values.append(json.loads(p.stdout))
        added_start.append(values[1]["start_ms"] - values[0]["start_ms"])
        added_rss.append((values[1]["rss_kib"] - values[0]["rss_kib"]) / 1024)
    return {"added_start_ms": spread(added_start), "added_rss_mib": spread(added_rss)}


def bare_program(build, rounds):
    added = []
    for _ in range(rounds * 4):
        times = []
        for preload in (False, True):
            t = time.perf_counter()
            subprocess.run(["/bin/true"], env=environment(build, preload), check=True)
            times.append((time.perf_counter() - t) * 1e3)
        added.append(times[1] - times[0])
    return spread(added)


def library_size(build):
    with tempfile.NamedTemporaryFile() as f:
        subprocess.run(["strip", "-o", f.name, build / "lib/libttt.so"], check=True)
        return os.path.getsize(f.name) / (1 << 20)


def google_benchmark(exe):
    p = subprocess.run([exe, "--benchmark_format=json", "--benchmark_repetitions=3", "--benchmark_report_aggregates_only=true"], capture_output=True, text=True, check=True, timeout=900)
    return {b["name"]: {k: b[k] for k in ("real_time", "time_unit", "bytes_per_second", "items_per_second") if k in b}
            for b in json.loads(p.stdout)["benchmarks"] if b.get("aggregate_name") in ("median", "stddev")}


def interpreter(build, rounds):
    """Million thread instructions per second of processor time on one core, by kernel."""
    rates = {}
    for _ in range(rounds):
        out = subprocess.run([build / "bin/interpreter_bench"], capture_output=True, text=True, check=True, timeout=300).stdout
        for name, rate in re.findall(r"^(\w+) .*?([0-9.]+) M/s per core", out, re.M):
            rates.setdefault(name, []).append(float(rate))
    return {name: spread(xs) for name, xs in rates.items()}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--build", type=pathlib.Path, required=True)
    p.add_argument("--out", type=pathlib.Path, required=True)
    p.add_argument("--rounds", type=int, default=7)
    a = p.parse_args()
    build = a.build.resolve()
    launch = json.loads(subprocess.run([build / "bin/ttt-bench-launch"], env=environment(build, False), capture_output=True, text=True, check=True, timeout=300).stdout)
    result = {"machine": platform.processor() or platform.machine(), "cores": os.cpu_count(), "system": platform.platform(),
              "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"), "command": "./dev bench " + shlex.join(sys.argv[5:]),
              "launch": launch, "footprint_1000_kernels": footprint(build, a.rounds), "bin_true_added_ms": bare_program(build, a.rounds),
              "libttt_stripped_mib": round(library_size(build), 3), "google_benchmark": google_benchmark(build / "bin/ttt_bench"),
              "interpreter": interpreter(build, 3)}
    a.out.mkdir(parents=True, exist_ok=True)
    (a.out / "bench.json").write_text(json.dumps(result, indent=1))
    f = result["footprint_1000_kernels"]
    rows = [(f"added per launch, null driver, {r['threads']} threads",
             f"{r['added_ns_p50']} ns median, {r['added_ns_p99']} ns p99 (bare {r['base_ns_p50']} ns)", "≤ 50 ns median") for r in launch["results"]]
    rows += [
            ("program start added, 1,000 kernels", f"{f['added_start_ms']['median']:.2f} ms ({f['added_start_ms']['min']:.2f} … {f['added_start_ms']['max']:.2f})", "≤ 20 ms"),
            ("resident memory added, 1,000 kernels", f"{f['added_rss_mib']['median']:.2f} MiB ({f['added_rss_mib']['min']:.2f} … {f['added_rss_mib']['max']:.2f})", "≤ 16 MiB"),
            ("/bin/true under LD_PRELOAD added", f"{result['bin_true_added_ms']['median']:.3f} ms", ""),
            ("libttt.so stripped", f"{result['libttt_stripped_mib']} MiB", "≤ 4 MiB")]
    for name, b in result["google_benchmark"].items():
        if name.endswith("median"):
            rate = f"{b['bytes_per_second'] / 1e6:.1f} MB/s" if "bytes_per_second" in b else f"{b['real_time']:.1f} {b['time_unit']}"
            rows.append((name, rate, ""))
    for name, r in result["interpreter"].items():
        target = "≥ 100 M/s" if name == "gemm_naive" else ""
        rows.append((f"interpreter, {name}", f"{r['median']:.0f} M/s ({r['min']:.0f} … {r['max']:.0f})", target))
    table = f"`{result['command']}` on {result['system']}, {result['cores']} cores, {result['date']}\n\n| what | measured | target |\n|---|---|---|\n" + "".join(f"| {a} | {b} | {c} |\n" for a, b, c in rows)
    (a.out / "bench.md").write_text(table)
    print(table)


if __name__ == "__main__":
    main()
