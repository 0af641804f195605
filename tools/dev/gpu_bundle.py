#!/usr/bin/env python3
"""Puts everything needed to run on a GPU machine into one folder: programs, libraries, test data, scripts, run.sh.
No CUDA library: those of the GPU machine are used.

Usage: gpu_bundle.py BUILD_DIR OUT_DIR. Fails when a program is not built, when the folder exceeds 60 MiB, when a file
needs a newer glibc than 2.36 or libstdc++ than GCC 12's, or when a library would be taken from outside the folder.
"""
import pathlib, re, shutil, subprocess, sys

LIMIT = 60 << 20
NEWEST = {"GLIBC": (2, 36), "GLIBCXX": (3, 4, 30), "CXXABI": (1, 3, 13)}
PROGRAMS = ["ttt", "ttt-tuner", "ttt-sandbox", "ttt-compile", "ttt-kernel-loop", "ttt-bench-launch", "inference_server", "exec_driver",
            "variables_program"]
NEEDS_NVCC = ["emulator_program"]  # left out, and said, where the build had no nvcc
FOLDERS = ["tests/data/suite", "tests/data/hazards", "tests/data/variables", "tests/exec", "tests/e2e", "tools/bench", "tools/demo", "samples"]
SOURCES = ("*.cpp", "*.h", "CMakeLists.txt", "*.cmake", "__pycache__")
# What every target machine has.
SYSTEM = re.compile(r"^(ld-linux[\w-]*|libc|libm|libdl|libpthread|librt|libgcc_s|libstdc\+\+|linux-vdso)\.so(\.|$)")


def resolved(file):
    """[(name, path)] of every library that `file` loads, found as a machine without our settings finds them."""
    p = subprocess.run(["ldd", file], capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"})
    # The driver's library is the GPU machine's own.
    if any("not found" in line and "libcuda.so" not in line for line in p.stdout.splitlines()):
        sys.exit(f"gpu-bundle: {file}: {p.stdout}")
    return re.findall(r"(\S+) => (/\S+)", p.stdout)


def version_problems(file):
    """Symbol versions newer than the machines we promise to run on have; and the newest glibc one."""
    symbols = subprocess.run(["objdump", "-T", file], capture_output=True, text=True, check=True).stdout
    newest = {}
    for name, version in re.findall(r"\((GLIBC|GLIBCXX|CXXABI)_([\d.]+)\)", symbols):
        newest[name] = max(newest.get(name, (0,)), tuple(map(int, version.split("."))))
    problems = [f"{file.name} needs {n}_{'.'.join(map(str, v))}" for n, v in newest.items() if v > NEWEST[n]]
    return problems, newest.get("GLIBC", (0,))


def copy_binaries(build, out):
    copied = []
    for name in PROGRAMS + NEEDS_NVCC:
        if (build / "bin" / name).exists():
            copied.append((build / "bin" / name, out / "bin" / name))
        elif name in NEEDS_NVCC:
            print(f"gpu-bundle: {name} left out: built only where nvcc is")
        else:
            sys.exit(f"gpu-bundle: {name} is not built")
    copied.append((build / "lib/libttt.so", out / "lib/libttt.so"))
    copied += [(build / sub / "libcuda.so.1", out / sub / "libcuda.so.1") for sub in ("null", "emulator")]
    for src, dst in copied:
        dst.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["strip", "-o", dst, src], check=True)
        dst.chmod(0o755)
        for lib, path in resolved(src):
            if not SYSTEM.match(lib) and not lib.startswith("libcuda.so") and not (out / "lib" / lib).exists():
                shutil.copy(path, out / "lib" / lib)
    return [dst for _, dst in copied]


def check(binaries, out):
    problems, newest = [], (0,)
    for file in binaries + [p for p in (out / "lib").iterdir() if p not in binaries]:
        found, glibc = version_problems(file)
        problems += found
        newest = max(newest, glibc)
    for file in binaries:
        problems += [f"{file.name} takes {lib} from {path}" for lib, path in resolved(file)
                     if not SYSTEM.match(lib) and not pathlib.Path(path).resolve().is_relative_to(out)]
    size = sum(p.stat().st_size for p in out.rglob("*") if p.is_file())
    print(f"gpu-bundle: {out}: {size / (1 << 20):.1f} MiB, newest glibc symbol {'.'.join(map(str, newest))}")
    if size > LIMIT:
        problems.append("it is over 60 MiB")
    if problems:
        sys.exit("gpu-bundle: " + "; ".join(problems))


def main(build, out, source):
    shutil.rmtree(out, ignore_errors=True)
    (out / "lib").mkdir(parents=True)
    binaries = copy_binaries(build, out)
    for folder in FOLDERS:
        if not (source / folder).exists():
            sys.exit(f"gpu-bundle: {source / folder} is missing")
        shutil.copytree(source / folder, out / folder, ignore=shutil.ignore_patterns(*SOURCES))
    shutil.copy(source / "tools/dev/gpu_run.sh", out / "run.sh")
    check(binaries, out)
    print("gpu-bundle: on the GPU machine: OUT=results ./run.sh all")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), pathlib.Path(__file__).resolve().parents[2])
