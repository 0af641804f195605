"""Table of every function that the CUDA driver exports, read from the toolkit's own headers.

functions(include) -> list of dict, one per exported symbol, in header order:
    symbol   exported name, "cuMemcpyHtoD_v2_ptds"
    base     name without version and stream suffix, "cuMemcpyHtoD": what programs ask cuGetProcAddress for
    version  1 for the bare name, n for "_vn"
    thread   "", "ptds" or "ptsz": the form for per-thread default streams
    returns  C type of the result
    params   list of {"type", "name"}; spell a declaration as type + " " + name
lookups(include) -> list of dict, one per row of cudaTypedefs.h and cudaProfilerTypedefs.h:
    base, since (CUDA version as 1000 * major + 10 * minor), thread, symbol
    The answer to cuGetProcAddress(base, v, flags) is the symbol with the highest since <= v; with the per-thread flag the
    rows whose thread is not empty come first.

The header must be parsed as the driver's own build sees it (__CUDA_API_VERSION_INTERNAL), otherwise old versions of
functions and the bare names of versioned ones are hidden. Compile generated code with that macro too.
"""

import os
import re
import subprocess

_HEADERS = ("cuda.h", "cudaProfiler.h")
_TYPEDEF_HEADERS = ("cudaTypedefs.h", "cudaProfilerTypedefs.h")
_SUFFIX = re.compile(r"^(cu\w+?)(?:_v(\d+))?(?:_(pt[ds][sz]))?$")
_DECLARATION = re.compile(r"\bCUresult\s+(cu[A-Z]\w*)\s*\((.*)\)$", re.S)
_ROW = re.compile(r"\bPFN_(cu\w+?)_v(\d+)(?:_(pt[ds][sz]))?\b")


class TableError(Exception):
    """The headers do not have the shape that this script was written for."""


def _preprocessed(include, compiler):
    source = "".join(f"#include <{h}>\n" for h in _HEADERS)
    command = [compiler, "-E", "-P", "-x", "c", "-D__CUDA_API_VERSION_INTERNAL", "-I", include, "-"]
    done = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise TableError(f"{' '.join(command)} failed: {done.stderr.strip()[:500]}")
    return done.stdout


def _statements(text):
    """Top-level text between semicolons; bodies in braces are skipped."""
    depth, start = 0, 0
    for i, c in enumerate(text):
        if c == "{":
            depth += 1
        elif c == "}":
            depth -= 1
        elif c == ";" and depth == 0:
            yield text[start:i].strip()
            start = i + 1


def _split_params(text):
    parts, depth, current = [], 0, ""
    for c in text:
        depth += (c == "(") - (c == ")")
        if c == "," and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += c
    parts.append(current)
    return [" ".join(p.split()) for p in parts if p.strip() not in ("", "void")]


def _param(text, index):
    match = re.match(r"^(.*?[\s*])(\w+)((?:\[\w*\])*)$", text)
    type_words = ("int", "char", "short", "long", "unsigned", "float", "double", "void", "size_t")
    if not match or match.group(2) in type_words or not match.group(1).replace("const", "").strip():
        return {"type": text, "name": f"arg{index}"}
    pointer = " *" * match.group(3).count("[")  # an array parameter is a pointer
    spelled = re.sub(r"\s*\*\s*", "*", match.group(1).strip()).replace("*", " *").replace("* *", "**")
    return {"type": spelled + pointer, "name": match.group(2)}


def functions(include, compiler="g++"):
    rows, seen = [], set()
    for statement in _statements(_preprocessed(include, compiler)):
        if statement.startswith("typedef") or "static inline" in statement:
            continue
        match = _DECLARATION.search(" ".join(statement.split()))
        if not match or match.group(1) in seen:
            continue
        symbol = match.group(1)
        seen.add(symbol)
        base, version, thread = _SUFFIX.match(symbol).groups()
        params = [_param(p, i) for i, p in enumerate(_split_params(match.group(2)))]
        rows.append({"symbol": symbol, "base": base, "version": int(version or 1), "thread": thread or "",
                     "returns": "CUresult", "params": params})
    if len(rows) < 400:
        raise TableError(f"only {len(rows)} functions found in {include}/cuda.h: its layout is not the expected one")
    return rows


def _typedef_rows(include):
    groups = {}
    for header in _TYPEDEF_HEADERS:
        path = os.path.join(include, header)
        with open(path, encoding="utf-8", errors="replace") as file:
            for line in file:
                match = _ROW.search(line) if line.lstrip().startswith("typedef") else None
                if match:
                    base, since, thread = match.groups()
                    groups.setdefault((base, thread or ""), set()).add(int(since))
    return groups


def lookups(include, table):
    """Rows sorted by version answer, in order, to the exports sorted by version (one to one, checked)."""
    exports = {}
    for row in table:
        exports.setdefault((row["base"], row["thread"]), []).append((row["version"], row["symbol"]))
    rows, problems = [], []
    for (base, thread), versions in sorted(_typedef_rows(include).items()):
        symbols = [s for _, s in sorted(exports.get((base, thread), []))]
        if len(symbols) != len(versions):
            problems.append(f"{base}{'_' + thread if thread else ''}: {sorted(versions)} against {symbols}")
            continue
        for since, symbol in zip(sorted(versions), symbols):
            rows.append({"base": base, "since": since, "thread": thread, "symbol": symbol})
    if problems:
        raise TableError("typedefs and exports do not pair up: " + "; ".join(problems))
    return rows
