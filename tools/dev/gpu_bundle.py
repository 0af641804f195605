#!/usr/bin/env python3
"""Puts everything needed to run on a GPU machine into one folder: binaries, test data, scripts. No toolkit library.

Usage: gpu_bundle.py BUILD_DIR OUT_DIR. Fails when the folder exceeds 60 MiB or a binary needs a newer glibc than 2.36.
"""
import os, pathlib, re, shutil, subprocess, sys

LIMIT = 60 << 20
PROGRAMS = ["ttt", "ttt-tuner", "ttt-sandbox", "ttt-compile", "ttt-kernel-loop", "ttt-bench-launch", "inference_server", "exec_driver"]
FOLDERS = ["tests/data/suite", "tests/data/hazards", "tests/exec", "tools/bench", "tools/demo", "samples/inference_server"]
# libraries every target machine has
SYSTEM = re.compile(r"^(ld-linux|libc|libm|libdl|libpthread|librt|libgcc_s|linux-vdso|libstdc\+\+)[.-]")


def main(build: pathlib.Path, out: pathlib.Path, source: pathlib.Path):
    shutil.rmtree(out, ignore_errors=True)
    (out / "bin").mkdir(parents=True)
    (out / "lib").mkdir()
    binaries = []
    for name in PROGRAMS:
        src = build / "bin" / name
        if src.exists():
            binaries.append((src, out / "bin" / name))
        else:
            print(f"gpu-bundle: {name} is not built, left out")
    binaries.append((build / "lib/libttt.so", out / "lib/libttt.so"))
    for sub in ("null", "emulator"):
        if (build / sub / "libcuda.so.1").exists():
            (out / sub).mkdir()
            binaries.append((build / sub / "libcuda.so.1", out / sub / "libcuda.so.1"))
    newest = (0, 0)
    for src, dst in binaries:
        subprocess.run(["strip", "-o", dst, src], check=True)
        dst.chmod(0o755)
        symbols = subprocess.run(["objdump", "-T", dst], capture_output=True, text=True, check=True).stdout
        for version in re.findall(r"GLIBC_(\d+)\.(\d+)", symbols):
            newest = max(newest, tuple(map(int, version)))
        needed = subprocess.run(["ldd", src], capture_output=True, text=True).stdout
        for lib, path in re.findall(r"(\S+) => (/\S+)", needed):
            if not SYSTEM.match(lib) and not (out / "lib" / lib).exists() and "libcuda.so" not in lib:
                shutil.copy(path, out / "lib" / lib)
    for folder in FOLDERS:
        if (source / folder).exists():
            shutil.copytree(source / folder, out / folder, ignore=shutil.ignore_patterns("__pycache__", "*.cpp", "CMakeLists.txt"))
    size = sum(p.stat().st_size for p in out.rglob("*") if p.is_file())
    print(f"gpu-bundle: {out} {size / (1 << 20):.1f} MiB, newest glibc symbol {newest[0]}.{newest[1]}")
    if size > LIMIT or newest > (2, 36):
        sys.exit("gpu-bundle: over 60 MiB or needs glibc newer than 2.36")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), pathlib.Path(__file__).resolve().parents[2])
