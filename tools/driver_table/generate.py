#!/usr/bin/env python3
"""Writes the driver's function table as JSON: {"cuda_version", "functions": [...], "lookups": [...]}.

Usage: generate.py --include DIR [--compiler g++] [-o table.json]      (columns: driver_table.py)
Other generators import driver_table directly: sys.path.insert(0, ".../tools/driver_table").
"""

import argparse
import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import driver_table  # noqa: E402  (found beside this file)


def write_if_changed(path, text):
    """Leaves an equal file alone, so that nothing downstream is rebuilt."""
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            if file.read() == text:
                return
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def cuda_version(include):
    with open(os.path.join(include, "cuda.h"), encoding="utf-8", errors="replace") as file:
        return int(re.search(r"^#define CUDA_VERSION (\d+)", file.read(), re.M).group(1))


def build(include, compiler="g++"):
    table = driver_table.functions(include, compiler)
    return {"cuda_version": cuda_version(include), "functions": table,
            "lookups": driver_table.lookups(include, table)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--include", required=True, help="folder of cuda.h")
    parser.add_argument("--compiler", default="g++", help="C preprocessor to run")
    parser.add_argument("-o", "--output", help="file to write; standard output when absent")
    args = parser.parse_args()
    try:
        text = json.dumps(build(args.include, args.compiler), indent=1) + "\n"
    except (driver_table.TableError, OSError) as error:
        print(f"generate.py: {error}", file=sys.stderr)
        return 1
    if args.output:
        write_if_changed(args.output, text)
    else:
        sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
