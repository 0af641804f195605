#!/usr/bin/env python3
"""Prints what NVIDIA's disassembler says about cubins: file kernel registers stack shared and instruction counts."""
import collections, re, subprocess, sys

NAMES = {"FFMA": 0, "UFFMA": 0, "FFMA2": 0, "FMUL": 1, "UFMUL": 1, "FMUL2": 1, "FADD": 2, "UFADD": 2, "FADD2": 2,
         "DFMA": 3, "DMUL": 4, "DADD": 5, "HFMA2": 6, "HMUL2": 6, "HADD2": 6, "MUFU": 7, "BAR": 8}


def counts(path):
    out = collections.defaultdict(lambda: [0] * 10)
    kernel = None
    for line in subprocess.run(["nvdisasm", "-c", path], capture_output=True, text=True, check=True).stdout.splitlines():
        if section := re.match(r"\s*\.section\s+\.text\.(\S+?),", line):
            kernel = section.group(1)
        m = re.match(r"\s+/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z]\w*)(.*)", line)
        if not m:
            continue
        out[kernel][9] += 1
        index = NAMES.get(m.group(1))
        if index is None or (index == 6 and re.match(r"\S*\s+R\w+,\s*-?RZ", m.group(2))):
            continue
        out[kernel][index] += 2 if re.match(r"F\w+2$", m.group(1)) else 1
    return out


print("# file kernel registers stack shared ffma fmul fadd dfma dmul dadd hfma mufu bar instructions")
for path in sys.argv[1:]:
    usage = subprocess.run(["cuobjdump", "-res-usage", path], capture_output=True, text=True, check=True).stdout
    found = counts(path)
    for m in re.finditer(r"Function (\S+):\s+REG:(\d+) STACK:(\d+) SHARED:(\d+)", usage):
        shared = int(m.group(4))
        if shared and int(re.search(r"_(\d+)\.cubin", path).group(1)) >= 90:
            shared -= 1024  # reserved by the system, not the kernel's: ptxas -v leaves it out too
        print(path, m.group(1), m.group(2), m.group(3), shared, *found[m.group(1)])
