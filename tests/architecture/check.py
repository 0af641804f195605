#!/usr/bin/env python3
"""Checks the direction of dependencies and the one-home rule for third-party libraries, from #include lines.

Usage: check.py SOURCE_DIR. Prints each violation; exit code 1 if there is any. `--self-test` plants violations in a
temporary tree and fails unless they are found, so that the check itself can fail.
"""
import pathlib, re, sys, tempfile

# folder -> folders it may include from (itself always)
ALLOWED = {
    "base": set(),
    "ptx": {"base"},
    "image": {"base"},
    "ipc": {"base"},
    "store": {"base"},
    "measure": {"base"},
    "model": {"base", "ptx"},
    "xform": {"base", "ptx"},
    "compile": {"base", "ptx", "xform", "image"},
    "referee": {"base", "ptx", "measure"},
    "search": {"base", "ptx", "model", "xform", "compile", "referee", "store", "measure"},
    "session": {"base", "ipc", "image", "measure"},
}
# include pattern -> folders that are its home
HOMES = {
    r"spdlog/": ["runtime/base"],
    r"xxhash\.h": ["runtime/base"],
    r"(zstd|lz4)\.h": ["runtime/image"],
    r"(sqlite3|sodium)\.h": ["runtime/store"],
    r"flatbuffers/": ["runtime/ipc"],
    r"nlohmann/": ["tools", "tests", "samples"],
    r"CLI/": ["tools/ttt"],
    r"httplib\.h": ["samples"],
    r"gtest/|gmock/|benchmark/": ["tests"],
    r"(cuda|nvrtc|nvJitLink|cupti\w*|nvml)\.h": ["shim", "runtime/session", "runtime/measure", "runtime/compile", "tools", "tests", "samples"],
    r"torch/": ["policies"],
}
# session may look at guards and kernel summaries, which are plain data
EXCEPTIONS = {("session", "xform/guard.h"), ("session", "ptx/summary.h")}
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.M)


def violations(root: pathlib.Path):
    for path in sorted(root.rglob("*")):
        rel = path.relative_to(root).as_posix()
        if path.suffix not in {".h", ".hpp", ".cpp", ".def"} or rel.startswith(("build/", ".git/")):
            continue
        parts = rel.split("/")
        for inc in INCLUDE.findall(path.read_text(errors="replace")):
            for pattern, homes in HOMES.items():
                if re.match(pattern, inc) and not any(rel.startswith(h + "/") for h in homes):
                    yield f"{rel}: <{inc}> belongs to {', '.join(homes)} only"
            top = inc.split("/")[0]
            if parts[0] == "runtime" and top in ALLOWED and top != parts[1]:
                if top not in ALLOWED.get(parts[1], set()) and (parts[1], inc) not in EXCEPTIONS:
                    yield f"{rel}: {parts[1]} must not depend on {top} (\"{inc}\")"
            if parts[0] == "shim" and top in ALLOWED and top not in {"session", "base"}:
                yield f"{rel}: the shim uses session (and base) only (\"{inc}\")"
            if parts[0] == "runtime" and top in {"shim", "tools", "samples", "policies"}:
                yield f"{rel}: runtime must not include upwards (\"{inc}\")"


def self_test():
    with tempfile.TemporaryDirectory() as d:
        root = pathlib.Path(d)
        (root / "runtime/ptx").mkdir(parents=True)
        (root / "shim").mkdir()
        (root / "runtime/ptx/a.cpp").write_text('#include "xform/recipe.h"\n#include <zstd.h>\n#include <cuda.h>\n')
        (root / "shim/b.cpp").write_text('#include "ptx/ir.h"\n')
        found = list(violations(root))
        assert len(found) == 4, found


if __name__ == "__main__":
    self_test()
    bad = list(violations(pathlib.Path(sys.argv[1])))
    print("\n".join(bad))
    print(f"architecture: {len(bad)} violations")
    sys.exit(1 if bad else 0)
