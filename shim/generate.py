#!/usr/bin/env python3
"""Writes the shim's generated sources from driver_api.def and cuda.h.

Usage: generate.py --include DIR --api driver_api.def --out DIR [--compiler g++]
  slots.h           one number per hooked symbol
  entry_points.inc  one exported function per hooked symbol, all of one shape (shim/entry.h)
  names.inc         the hooked names, sorted, with their entry points: the only names the dlsym hook ever answers
  exports.map       version script: hooked symbols, dlsym and ttt_* are exported, nothing else
  forward.S         every other driver symbol as a jump to the real one (only for the build named libcuda.so.1)
  forward.inc       names of those, in the order of their slots
  exports_soname.map
"""

import argparse
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools", "driver_table"))
import driver_table  # noqa: E402
from generate import write_if_changed  # noqa: E402

_HOOK = re.compile(r"^TTT_HOOK\((\w+), (\w+), (\w+)\)$", re.M)
_NOTE = "// Written by shim/generate.py from driver_api.def and cuda.h.\n"


def hooks(path):
    with open(path, encoding="utf-8") as file:
        rows = _HOOK.findall(file.read())
    symbols = [symbol for _, symbol, _ in rows]
    twice = {s for s in symbols if symbols.count(s) > 1}
    if twice:
        raise driver_table.TableError(f"hooked twice: {sorted(twice)}")
    return rows


def entry_point(row, hook):
    declared = ", ".join(f"{p['type']} {p['name']}" for p in row["params"])
    passed = "".join(f", {p['name']}" for p in row["params"])
    return (f"extern \"C\" TTT_EXPORT CUresult CUDAAPI {row['symbol']}({declared}) {{\n"
            f"    return enter<Slot::k_{row['symbol']}>([](auto& call, auto... a) {{ return hooks::{hook}(call, a...); }}{passed});\n}}\n")


def exports(symbols):
    lines = "".join(f"    {s};\n" for s in sorted(symbols))
    return "{\n  global:\n" + lines + "    dlsym;\n    ttt_version; ttt_enable; ttt_disable; ttt_status;\n  local: *;\n};\n"


def forward_assembly(symbols):
    """The slot is filled by the first call: registers that carry arguments are kept by ttt_forward_slow."""
    out = ["/* Written by shim/generate.py. */\n#if defined(__x86_64__)\n"]
    for i, s in enumerate(symbols):
        out.append(f".globl {s}\n.type {s}, @function\n{s}:\n  movq ttt_forward_table+{8 * i}(%rip), %r11\n"
                   f"  testq %r11, %r11\n  jz 1f\n  jmp *%r11\n1: movl ${i}, %r11d\n  jmp ttt_forward_slow\n"
                   f".size {s}, .-{s}\n")
    out.append("#elif defined(__aarch64__)\n")
    for i, s in enumerate(symbols):
        out.append(f".globl {s}\n.type {s}, %function\n{s}:\n  adrp x16, ttt_forward_table+{8 * i}\n"
                   f"  ldr x16, [x16, :lo12:ttt_forward_table+{8 * i}]\n  cbz x16, 1f\n  br x16\n1: mov w17, #{i}\n"
                   f"  b ttt_forward_slow\n.size {s}, .-{s}\n")
    out.append("#endif\n.section .note.GNU-stack,\"\",%progbits\n")
    return "".join(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--include", required=True)
    parser.add_argument("--api", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--compiler", default="g++")
    args = parser.parse_args()
    try:
        table = {row["symbol"]: row for row in driver_table.functions(args.include, args.compiler)}
        rows = sorted((symbol, hook) for _, symbol, hook in hooks(args.api) if symbol in table)  # slot = place by name
    except (driver_table.TableError, OSError) as error:
        print(f"generate.py: {error}", file=sys.stderr)
        return 1
    hooked = [symbol for symbol, _ in rows]
    rest = sorted(set(table) - set(hooked))
    files = {
        "slots.h": _NOTE + "#pragma once\nnamespace ttt::shim {\nenum class Slot : unsigned {\n"
                   + "".join(f"    k_{s},\n" for s in hooked) + "    kCount\n};\n}\n",
        "entry_points.inc": _NOTE + "".join(entry_point(table[s], h) for s, h in rows),
        "names.inc": _NOTE + "".join(f"TTT_NAME({s})\n" for s in hooked),
        "exports.map": exports(hooked),
        "exports_soname.map": exports(table),
        "forward.S": forward_assembly(rest),
        "forward.inc": _NOTE + "".join(f"TTT_FORWARD({s})\n" for s in rest),
    }
    for name, text in files.items():
        write_if_changed(os.path.join(args.out, name), text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
