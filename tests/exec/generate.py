#!/usr/bin/env python3
"""Writes the instruction tests next to this file. Each kernel runs many forms of a family on chosen and random operands;
thread i takes operand set i. Expected results come from isa.py, never from the interpreter."""
import json
import os
import random
import struct
from decimal import Decimal, getcontext
from fractions import Fraction

import isa
from isa import BF16, F16, F32, F64

HERE = os.path.dirname(os.path.abspath(__file__))
N = 32  # operand sets per form
MASK = {1: 1, 8: 0xFF, 16: 0xFFFF, 32: 0xFFFFFFFF, 64: 0xFFFFFFFFFFFFFFFF}
FORMATS = {"f16": F16, "bf16": BF16, "f32": F32, "f64": F64}
REG = {1: "%p", 16: "%h", 32: "%r", 64: "%d"}
getcontext().prec = 60


class Form:
    """One instruction: text with {d}, {a}, {b}, {c}, {e} for its registers, operand widths, and a reference function."""

    def __init__(self, text, dest, sources, reference, pools, approx=None):
        self.text, self.dest, self.sources, self.reference = text, dest, sources, reference
        self.pools, self.approx = pools, approx


def pool_int(bits):
    edge = [0, 1, 2, MASK[bits], 1 << (bits - 1), (1 << (bits - 1)) - 1, 0x55555555 & MASK[bits], 7, MASK[bits] - 4]
    return lambda rng: rng.choice(edge) if rng.random() < 0.45 else rng.getrandbits(rng.randint(1, bits))


def pool_nonzero(bits):
    inner = pool_int(bits)

    def draw(rng):
        while True:
            x = inner(rng)
            if x not in (0, MASK[bits]):
                return x

    return draw


def pool_range(low, high):
    return lambda rng: rng.randint(low, high)


def pool_of(values):
    return lambda rng: rng.choice(values)


# With payloads, for the conversions that keep them.
NANS = {"f16": [], "bf16": [], "f32": [0x7FFABCDE, 0xFF800001], "f64": [0x7FFABCDE12345678, 0xFFF0000000000001, 0x7FF4000000000000]}


def pool_float(fmt, nans=True, more=()):
    top = isa.width(fmt) - 1
    one = isa.bias(fmt) << fmt[1]
    edge = [0, 1 << top, one, one | 1 << top, isa.inf(fmt), isa.inf(fmt, 1), 1, (1 << fmt[1]) - 1, 1 << fmt[1],
            isa.inf(fmt) - 1, one + 1, one - 1, (one + (1 << fmt[1])) | 1 << top]
    if nans:
        edge += [isa.nan(fmt), *more]

    def draw(rng):
        k = rng.random()
        if k < 0.3:
            return rng.choice(edge)
        if k < 0.75:  # near one, so that sums round
            e = isa.bias(fmt) + rng.randint(-4, 4)
            return rng.getrandbits(1) << top | e << fmt[1] | rng.getrandbits(fmt[1])
        x = rng.getrandbits(top + 1)
        return one if isa.is_nan(fmt, x) else x

    return draw


def pool_pair(fmt):
    inner = pool_float(fmt)
    return lambda rng: inner(rng) << 16 | inner(rng)


def hexed(values):
    return struct.pack("<%dQ" % len(values), *values).hex()


def write(name, header, body):
    with open(os.path.join(HERE, name + ".ptx"), "w") as f:
        f.write("// Written by generate.py.\n" + header + body)


def head(entry, block, args, expect, forms, approx=(), grid=(1, 1, 1), shared=0):
    launch = {"entry": entry, "grid": list(grid), "block": block, "shared": shared, "args": args}
    lines = ["// launch: " + json.dumps(launch, separators=(",", ":")),
             "// expect: " + json.dumps(expect, separators=(",", ":")), "// forms: %d" % forms]
    lines += ["// approx: " + a for a in approx]
    return "\n".join(lines) + "\n"


def family(name, forms, approx=None, target="sm_90", version="8.7"):
    """in: per form and operand, N 64-bit slots; out: per form, N 64-bit slots (or elements of the approximate type, each
    form within its own stated error)."""
    rng = random.Random(name)
    inputs, outputs, body = [], [], []
    offset = 0
    step = {"f16": 2, "f32": 4, "f64": 8}[approx] if approx else 8
    for index, form in enumerate(forms):
        columns = [[pool(rng) & MASK[w] for _ in range(N)] for pool, w in zip(form.pools, form.sources)]
        names = {}
        body.append("\t// " + form.text.replace("{", "").replace("}", "").replace("\n", " "))
        for k, w in enumerate(form.sources):
            letter = "abce"[k]
            register = REG[w] + letter
            body.append("\tld.global.b64 %%d%s, [%%in+%d];" % (letter, offset))
            if w in (16, 32):
                body.append("\tcvt.u%d.u64 %s, %%d%s;" % (w, register, letter))
            elif w == 1:
                body.append("\tsetp.ne.u64 %s, %%d%s, 0;" % (register, letter))
            names[letter] = register
            offset += 8 * N
            inputs += columns[k]
        names["d"] = REG[form.dest] + "x"
        names["q"] = "%py"
        for line in form.text.split("\n"):
            body.append("\t" + line.format(**names))
        if step == 8:
            if form.dest in (16, 32):
                body.append("\tcvt.u64.u%d %%dx, %s;" % (form.dest, names["d"]))
            elif form.dest == 1:
                body.append("\tselp.u64 %dx, 1, 0, %px;")
            body.append("\tst.global.b64 [%%out+%d], %%dx;" % (8 * N * index))
        else:
            body.append("\tst.global.b%d [%%out+%d], %s;" % (8 * step, step * N * index, names["d"]))
        for i in range(N):
            r = form.reference(*[c[i] for c in columns])
            outputs.append(int(r) & MASK[form.dest])
    text = ".version %s\n.target %s\n.address_size 64\n\n" % (version, target)
    text += ".visible .entry k(.param .u64 pin, .param .u64 pout)\n{\n"
    text += "\t.reg .b64 %in, %out, %t, %da, %db, %dc, %de, %dx;\n\t.reg .b32 %ra, %rb, %rc, %re, %rx, %thread, %ry;\n"
    text += "\t.reg .b16 %ha, %hb, %hc, %he, %hx;\n\t.reg .pred %pa, %pb, %pc, %pe, %px, %py;\n"
    text += "\tld.param.u64 %in, [pin];\n\tld.param.u64 %out, [pout];\n\tmov.u32 %thread, %tid.x;\n"
    text += "\tmul.wide.u32 %t, %thread, 8;\n\tadd.s64 %in, %in, %t;\n"
    if step != 8:
        text += "\tmul.wide.u32 %%t, %%thread, %d;\n" % step
    text += "\tadd.s64 %out, %out, %t;\n" + "\n".join(body) + "\n\tret;\n}\n"
    code = {2: "H", 4: "I", 8: "Q"}[step]
    want = struct.pack("<%d%s" % (len(outputs), code), *outputs).hex()
    args = [{"buffer": {"bytes": 8 * len(inputs), "hex": hexed(inputs)}}, {"buffer": {"bytes": step * len(outputs)}}]
    write(name, head("k", [N, 1, 1], args, [{"arg": 1, "hex": want}], len(forms),
                     ["1 %s %s" % (approx, " ".join(f.approx for f in forms))] if approx else []), text)
    return len(forms)


# Integer ---------------------------------------------------------------------------------------------------------

def bits_of(t):
    return int(t.lstrip("usbf"))


def num(t, x):
    return isa.signed(x, bits_of(t)) if t[0] == "s" else x & MASK[bits_of(t)]


def binary(op, t, f, pools=None):
    w = bits_of(t)
    return Form(op + "." + t + " {d}, {a}, {b};", w, [w, w], lambda a, b: f(num(t, a), num(t, b)),
                pools or [pool_int(w)] * 2)


def ternary(op, t, f, dest=None, third=None):
    w = bits_of(t)
    dest, third = dest or w, third or w
    return Form(op + "." + t + " {d}, {a}, {b}, {c};", dest, [w, w, third],
                lambda a, b, c: f(num(t, a), num(t, b), isa.signed(c, third) if t[0] == "s" else c),
                [pool_int(w), pool_int(w), pool_int(third)])


def unary(op, t, f, dest=None):
    w = bits_of(t)
    return Form(op + "." + t + " {d}, {a};", dest or w, [w], lambda a: f(num(t, a)), [pool_int(w)])


ALL = ["u16", "s16", "u32", "s32", "u64", "s64"]


def trunc_div(a, b):
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def integer_arithmetic():
    f = []
    for t in ALL:
        w = bits_of(t)
        f += [binary("add", t, lambda a, b: a + b), binary("sub", t, lambda a, b: a - b),
              binary("mul.lo", t, lambda a, b: a * b), binary("mul.hi", t, lambda a, b, w=w: a * b >> w),
              ternary("mad.lo", t, lambda a, b, c: a * b + c),
              ternary("mad.hi", t, lambda a, b, c, w=w: (a * b >> w) + c),
              binary("div", t, trunc_div, [pool_int(w), pool_nonzero(w)]),
              binary("rem", t, lambda a, b: a - b * trunc_div(a, b), [pool_int(w), pool_nonzero(w)]),
              binary("min", t, min), binary("max", t, max),
              ternary("sad", t, lambda a, b, c: c + abs(a - b))]
        if w < 64:
            f += [Form("mul.wide.%s {d}, {a}, {b};" % t, 2 * w, [w, w], lambda a, b, t=t: num(t, a) * num(t, b),
                       [pool_int(w)] * 2),
                  ternary("mad.wide", t, lambda a, b, c: a * b + c, 2 * w, 2 * w)]
        if t[0] == "s":
            f += [unary("abs", t, abs), unary("neg", t, lambda a: -a)]
    c32 = lambda n: isa.clamp(n, 32, True)
    f += [binary("add.sat", "s32", lambda a, b: c32(a + b)), binary("sub.sat", "s32", lambda a, b: c32(a - b)),
          ternary("mad.hi.sat", "s32", lambda a, b, c: c32((a * b >> 32) + c)),
          binary("min.relu", "s32", lambda a, b: max(0, min(a, b))),
          binary("max.relu", "s32", lambda a, b: max(0, a, b))]

    def s24(x, t):
        return isa.signed(x, 24) if t == "s32" else x & 0xFFFFFF

    for t in ("u32", "s32"):
        prod = lambda a, b, t=t: s24(a, t) * s24(b, t)
        f += [Form("mul24.lo.%s {d}, {a}, {b};" % t, 32, [32, 32], lambda a, b, p=prod: p(a, b), [pool_int(32)] * 2),
              Form("mul24.hi.%s {d}, {a}, {b};" % t, 32, [32, 32], lambda a, b, p=prod: p(a, b) >> 16, [pool_int(32)] * 2),
              Form("mad24.lo.%s {d}, {a}, {b}, {c};" % t, 32, [32] * 3, lambda a, b, c, p=prod: p(a, b) + c, [pool_int(32)] * 3),
              Form("mad24.hi.%s {d}, {a}, {b}, {c};" % t, 32, [32] * 3, lambda a, b, c, p=prod: (p(a, b) >> 16) + c, [pool_int(32)] * 3)]
    f += [Form("mad24.hi.sat.s32 {d}, {a}, {b}, {c};", 32, [32] * 3,
               lambda a, b, c: c32(isa.signed(s24(a, "s32") * s24(b, "s32") >> 16, 32) + isa.signed(c, 32)), [pool_int(32)] * 3)]
    return f


def halves(f, a, b, signed_halves):
    out = 0
    for i in (0, 16):
        x, y = a >> i & 0xFFFF, b >> i & 0xFFFF
        if signed_halves:
            x, y = isa.signed(x, 16), isa.signed(y, 16)
        out |= (f(x, y) & 0xFFFF) << i
    return out


def packed_integer():
    f = []
    for t in ("u16x2", "s16x2"):
        s = t[0] == "s"
        for op, fn in (("add", lambda x, y: x + y), ("min", min), ("max", max)):
            f.append(Form("%s.%s {d}, {a}, {b};" % (op, t), 32, [32, 32],
                          lambda a, b, fn=fn, s=s: halves(fn, a, b, s), [pool_int(32)] * 2))
    f += [Form("min.relu.s16x2 {d}, {a}, {b};", 32, [32, 32], lambda a, b: halves(lambda x, y: max(0, min(x, y)), a, b, True), [pool_int(32)] * 2),
          Form("max.relu.s16x2 {d}, {a}, {b};", 32, [32, 32], lambda a, b: halves(lambda x, y: max(0, x, y), a, b, True), [pool_int(32)] * 2)]
    return f


def parts(x, bits, count, s):
    out = [x >> (bits * i) & ((1 << bits) - 1) for i in range(count)]
    return [isa.signed(v, bits) for v in out] if s else out


def bit_manipulation():
    f = []
    small = pool_of([0, 1, 2, 5, 8, 15, 16, 31, 32, 33, 40, 63, 64, 100, 255])
    for w in (32, 64):
        f += [unary("popc", "b%d" % w, lambda a: bin(a).count("1"), 32),
              unary("clz", "b%d" % w, lambda a, w=w: w - a.bit_length(), 32),
              unary("brev", "b%d" % w, lambda a, w=w: int(format(a, "0%db" % w)[::-1], 2))]
        for t in ("u%d" % w, "s%d" % w):
            def bfind(a, t=t, w=w):
                a = ~a if t[0] == "s" and a < 0 else a
                return a.bit_length() - 1 if a else 0xFFFFFFFF
            f += [unary("bfind", t, bfind, 32),
                  unary("bfind.shiftamt", t, lambda a, g=bfind, w=w: w - 1 - g(a) if g(a) != 0xFFFFFFFF else 0xFFFFFFFF, 32),
                  Form("bfe.%s {d}, {a}, {b}, {c};" % t, w, [w, 32, 32],
                       lambda a, b, c, t=t, w=w: isa.bfe(a, b, c, w, t[0] == "s"), [pool_int(w), small, small])]
        f.append(Form("bfi.b%d {d}, {a}, {b}, {c}, {e};" % w, w, [w, w, 32, 32],
                      lambda a, b, c, e, w=w: isa.bfi(a, b, c, e, w), [pool_int(w), pool_int(w), small, small]))
    for mode in ("wrap", "clamp"):
        def szext(a, n, s, mode=mode):
            n = n & 31 if mode == "wrap" else n
            if n >= 32:
                return a
            kept = a & ((1 << n) - 1)
            return isa.signed(kept, n) if s and n else kept

        def bmsk(a, b, mode=mode):
            if mode == "wrap":
                a, b = a & 31, b & 31
            return 0 if a >= 32 else ((1 << min(b, 32)) - 1) << a
        f += [Form("szext.%s.u32 {d}, {a}, {b};" % mode, 32, [32, 32], lambda a, b, g=szext: g(a, b, False), [pool_int(32), small]),
              Form("szext.%s.s32 {d}, {a}, {b};" % mode, 32, [32, 32], lambda a, b, g=szext: g(a, b, True), [pool_int(32), small]),
              Form("bmsk.%s.b32 {d}, {a}, {b};" % mode, 32, [32, 32], bmsk, [small, small])]
        for side in "lr":
            def shf(a, b, c, side=side, mode=mode):
                n = c & 31 if mode == "wrap" else min(c, 32)
                both = b << 32 | a
                return (both << n) >> 32 if side == "l" else both >> n
            f.append(Form("shf.%s.%s.b32 {d}, {a}, {b}, {c};" % (side, mode), 32, [32] * 3, shf, [pool_int(32), pool_int(32), small]))
    f.append(Form("fns.b32 {d}, {a}, {b}, {c};", 32, [32] * 3, isa.fns,
                  [pool_int(32), pool_range(0, 31), pool_of([0, 1, 2, 3, 7, MASK[32], MASK[32] - 1, MASK[32] - 5])]))
    for mode in ("", "f4e", "b4e", "rc8", "ecl", "ecr", "rc16"):
        f.append(Form("prmt.b32%s {d}, {a}, {b}, {c};" % ("." + mode if mode else ""), 32, [32] * 3,
                      lambda a, b, c, m=mode: isa.prmt(a, b, c, m), [pool_int(32)] * 3))
    for ta in "us":
        for tb in "us":
            f.append(Form("dp4a.%s32.%s32 {d}, {a}, {b}, {c};" % (ta, tb), 32, [32] * 3,
                          lambda a, b, c, ta=ta, tb=tb: c + sum(x * y for x, y in zip(parts(a, 8, 4, ta == "s"), parts(b, 8, 4, tb == "s"))), [pool_int(32)] * 3))
            for half in ("lo", "hi"):
                f.append(Form("dp2a.%s.%s32.%s32 {d}, {a}, {b}, {c};" % (half, ta, tb), 32, [32] * 3,
                              lambda a, b, c, ta=ta, tb=tb, h=half: c + sum(x * y for x, y in zip(parts(a, 16, 2, ta == "s"), parts(b, 8, 4, tb == "s")[2 if h == "hi" else 0:])), [pool_int(32)] * 3))
    return f


def logic_and_shift():
    f = []
    big = pool_of([0, 1, 5, 15, 16, 17, 31, 32, 33, 63, 64, 65, 0x80000000, MASK[32]])
    for w in (16, 32, 64):
        t = "b%d" % w
        f += [binary("and", t, lambda a, b: a & b), binary("or", t, lambda a, b: a | b), binary("xor", t, lambda a, b: a ^ b),
              unary("not", t, lambda a: ~a), unary("cnot", t, lambda a: int(a == 0)),
              Form("shl.%s {d}, {a}, {b};" % t, w, [w, 32], lambda a, b, w=w: a << b if b < w else 0, [pool_int(w), big]),
              Form("shr.u%d {d}, {a}, {b};" % w, w, [w, 32], lambda a, b, w=w: a >> min(b, w), [pool_int(w), big]),
              Form("shr.b%d {d}, {a}, 3;" % w, w, [w], lambda a: a >> 3, [pool_int(w)]),
              Form("shr.s%d {d}, {a}, {b};" % w, w, [w, 32], lambda a, b, w=w: isa.signed(a, w) >> min(b, w), [pool_int(w), big])]
    for op, g in (("and", lambda a, b: a & b), ("or", lambda a, b: a | b), ("xor", lambda a, b: a ^ b)):
        f.append(Form(op + ".pred {d}, {a}, {b};", 1, [1, 1], g, [pool_range(0, 1)] * 2))
    f.append(Form("not.pred {d}, {a};", 1, [1], lambda a: 1 - a, [pool_range(0, 1)]))
    f.append(Form("mov.pred {d}, {a};", 1, [1], lambda a: a, [pool_range(0, 1)]))
    for combine, g in (("or", lambda p, q: p or q), ("and", lambda p, q: p and q)):
        f.append(Form("lop3.%s.b32 {d}|{q}, {a}, {b}, {c}, 0x80, !{e};\n@!{q} add.u32 {d}, {d}, 1;" % combine, 32, [32, 32, 32, 1],
                      lambda a, b, c, e, g=g: (a & b & c) + (0 if g((a & b & c) != 0, not e) else 1),
                      [pool_int(32)] * 3 + [pool_range(0, 1)]))
    for table in (0x80, 0x96, 0xE8, 0x1D, 0x00, 0xFF, 0xCA):
        def lop3(a, b, c, table=table):
            out = 0
            for i in range(32):
                k = (a >> i & 1) << 2 | (b >> i & 1) << 1 | c >> i & 1
                out |= (table >> k & 1) << i
            return out
        f.append(Form("lop3.b32 {d}, {a}, {b}, {c}, 0x%x;" % table, 32, [32] * 3, lop3, [pool_int(32)] * 3))
    return f


def carries():
    f = []
    for w, t in ((32, "u32"), (64, "u64"), (32, "s32")):
        m = MASK[w]
        f += [Form("add.cc.{t} {{d}}, {{a}}, {{b}};\naddc.{t} {{d}}, {{c}}, 0;".format(t=t), w, [w] * 3,
                   lambda a, b, c, w=w: c + (a + b >> w), [pool_int(w)] * 3),
              Form("sub.cc.{t} {{d}}, {{a}}, {{b}};\nsubc.{t} {{d}}, {{c}}, 1;".format(t=t), w, [w] * 3,
                   lambda a, b, c: c - 1 - (1 if a < b else 0), [pool_int(w)] * 3),
              Form("add.cc.{t} {{d}}, {{a}}, {{b}};\naddc.cc.{t} {{d}}, {{b}}, {{c}};\naddc.{t} {{d}}, {{a}}, {{c}};".format(t=t), w, [w] * 3,
                   lambda a, b, c, w=w: a + c + (b + c + (a + b >> w) >> w), [pool_int(w)] * 3)]
        if t[0] == "u":
            f += [Form("mad.lo.cc.{t} {{d}}, {{a}}, {{b}}, {{c}};\nmadc.hi.{t} {{d}}, {{a}}, {{b}}, {{c}};".format(t=t), w, [w] * 3,
                       lambda a, b, c, w=w, m=m: (a * b >> w) + c + ((a * b & m) + c >> w), [pool_int(w)] * 3),
                  Form("mad.hi.cc.{t} {{d}}, {{a}}, {{b}}, {{c}};\naddc.{t} {{d}}, {{a}}, 0;".format(t=t), w, [w] * 3,
                       lambda a, b, c, w=w: a + ((a * b >> w) + c >> w), [pool_int(w)] * 3)]
    return f


# Floating point --------------------------------------------------------------------------------------------------

def wrapped(fmt, f, ftz=False, sat=False, relu=False):
    def g(*xs):
        xs = [isa.flush(fmt, x) if ftz else x for x in xs]
        return isa.finish(fmt, f(*xs), ftz, sat, relu)
    return g


def float_basic(t):
    fmt = FORMATS[t]
    w = isa.width(fmt)
    p = pool_float(fmt, t != "f64")
    f = []
    modes = ("rn", "rz", "rm", "rp") if t in ("f32", "f64") else ("rn",)

    def add(text, n, g, ftz=False, sat=False, relu=False):
        f.append(Form(text + " {d}, " + ", ".join("{%s}" % c for c in "abc"[:n]) + ";", w, [w] * n,
                      wrapped(fmt, g, ftz, sat, relu), [p] * n))
    flushes = (False, True) if t == "f32" else (False,)
    for m in modes:
        for z in flushes:
            zz = ".ftz" if z else ""
            for op, g, n in (("add", isa.fadd, 2), ("sub", isa.fsub, 2), ("mul", isa.fmul, 2), ("fma", isa.ffma, 3)):
                add("%s.%s%s.%s" % (op, m, zz, t), n, lambda *x, g=g, m=m: g(fmt, *x, m), z)
            if t in ("f32", "f64"):
                add("div.%s%s.%s" % (m, zz, t), 2, lambda a, b, m=m: isa.fdiv(fmt, a, b, m), z)
                add("rcp.%s%s.%s" % (m, zz, t), 1, lambda a, m=m: isa.fdiv(fmt, isa.encode(fmt, Fraction(1)), a, m), z)
                add("sqrt.%s%s.%s" % (m, zz, t), 1, lambda a, m=m: isa.fsqrt(fmt, a, m), z)
    for op, g, n in (("add", isa.fadd, 2), ("sub", isa.fsub, 2), ("mul", isa.fmul, 2)):
        add("%s.%s" % (op, t), n, lambda *x, g=g: g(fmt, *x))
    if t == "f32":
        add("add.rn.sat.f32", 2, lambda a, b: isa.fadd(fmt, a, b), sat=True)
        add("mul.rz.ftz.sat.f32", 2, lambda a, b: isa.fmul(fmt, a, b, "rz"), True, True)
        add("fma.rn.sat.f32", 3, lambda a, b, c: isa.ffma(fmt, a, b, c), sat=True)
        add("mad.rn.f32", 3, lambda a, b, c: isa.ffma(fmt, a, b, c))
    if t == "f64":
        add("mad.rn.f64", 3, lambda a, b, c: isa.ffma(fmt, a, b, c))
    if t == "f16":
        add("add.ftz.f16", 2, lambda a, b: isa.fadd(fmt, a, b), True)
        add("mul.sat.f16", 2, lambda a, b: isa.fmul(fmt, a, b), sat=True)
        add("fma.rn.ftz.f16", 3, lambda a, b, c: isa.ffma(fmt, a, b, c), True)
    if t in ("f16", "bf16"):
        add("fma.rn.relu.%s" % t, 3, lambda a, b, c: isa.ffma(fmt, a, b, c), relu=True)
    for want, op in ((False, "min"), (True, "max")):
        add("%s.%s" % (op, t), 2, lambda a, b, w=want: isa.fminmax(fmt, a, b, w))
        if t != "f64":
            add("%s.NaN.%s" % (op, t), 2, lambda a, b, w=want: isa.fminmax(fmt, a, b, w, True))
            add("%s.xorsign.abs.%s" % (op, t), 2, lambda a, b, w=want: isa.fminmax(fmt, a, b, w, False, True))
        if t == "f32":
            add("%s.ftz.f32" % op, 2, lambda a, b, w=want: isa.fminmax(fmt, a, b, w), True)
    clean = lambda g: (lambda a: isa.nan(fmt) if isa.is_nan(fmt, a) else g(a))
    add("abs.%s" % t, 1, clean(lambda a: a & ~(1 << (w - 1))))
    add("neg.%s" % t, 1, clean(lambda a: a ^ 1 << (w - 1)))
    if t == "f32":
        add("abs.ftz.f32", 1, clean(lambda a: a & ~(1 << (w - 1))), True)
        add("neg.ftz.f32", 1, clean(lambda a: a ^ 1 << (w - 1)), True)
    if t in ("f32", "f64"):
        add("copysign.%s" % t, 2, lambda a, b: a & 1 << (w - 1) | b & ~(1 << (w - 1)))
        tests = {"finite": lambda a: not isa.is_nan(fmt, a) and not isa.is_inf(fmt, a), "infinite": lambda a: isa.is_inf(fmt, a),
                 "number": lambda a: not isa.is_nan(fmt, a), "notanumber": lambda a: isa.is_nan(fmt, a),
                 "normal": lambda a: not isa.is_nan(fmt, a) and not isa.is_inf(fmt, a) and not isa.is_subnormal(fmt, a),
                 "subnormal": lambda a: isa.is_subnormal(fmt, a)}
        for name, g in tests.items():
            f.append(Form("testp.%s.%s {d}, {a};" % (name, t), 1, [w], g, [pool_float(fmt)]))
    return f


def float_pairs(t):
    fmt = FORMATS[t]
    x2 = t + "x2"
    f = []

    def add(text, n, g, ftz=False, sat=False, relu=False):
        one = wrapped(fmt, g, ftz, sat, relu)
        f.append(Form(text + "." + x2 + " {d}, " + ", ".join("{%s}" % c for c in "abc"[:n]) + ";", 32, [32] * n,
                      lambda *xs: one(*[x >> 16 for x in xs]) << 16 | one(*[x & 0xFFFF for x in xs]), [pool_pair(fmt)] * n))
    add("add", 2, lambda a, b: isa.fadd(fmt, a, b))
    add("sub", 2, lambda a, b: isa.fsub(fmt, a, b))
    add("mul", 2, lambda a, b: isa.fmul(fmt, a, b))
    add("fma.rn", 3, lambda a, b, c: isa.ffma(fmt, a, b, c))
    add("fma.rn.relu", 3, lambda a, b, c: isa.ffma(fmt, a, b, c), relu=True)
    if t == "f16":
        add("add.rn.ftz", 2, lambda a, b: isa.fadd(fmt, a, b), True)
        add("mul.sat", 2, lambda a, b: isa.fmul(fmt, a, b), sat=True)
    for want, op in ((False, "min"), (True, "max")):
        add(op, 2, lambda a, b, w=want: isa.fminmax(fmt, a, b, w))
        add(op + ".NaN", 2, lambda a, b, w=want: isa.fminmax(fmt, a, b, w, True))
    add("neg", 1, lambda a: isa.nan(fmt) if isa.is_nan(fmt, a) else a ^ 0x8000)
    add("abs", 1, lambda a: isa.nan(fmt) if isa.is_nan(fmt, a) else a & 0x7FFF)
    return f


# Comparison ------------------------------------------------------------------------------------------------------

def comparisons(types):
    f = []
    for t in types:
        fmt = FORMATS.get(t)
        w = isa.width(fmt) if fmt else bits_of(t)
        pool = pool_float(fmt) if fmt else pool_int(w)
        tests = ["eq", "ne"] if t[0] == "b" and not fmt else ["eq", "ne", "lt", "le", "gt", "ge"]
        if fmt:
            tests += ["equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"]
        aliases = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"} if t[0] == "u" else {}

        def holds(test, a, b, t=t, fmt=fmt):
            if not fmt:
                return isa.compare(test, num(t, a), num(t, b), False)
            if isa.is_nan(fmt, a) or isa.is_nan(fmt, b):
                return isa.compare(test, 0, 0, True)
            key = lambda x, w=isa.width(fmt): isa.fkey(fmt, x) if x & ((1 << (w - 1)) - 1) else 0
            return isa.compare(test, key(a), key(b), False)
        near = lambda rng, pool=pool: pool(rng)
        for test in tests + list(aliases):
            real = aliases.get(test, test)
            f.append(Form("setp.%s.%s {d}, {a}, {b};" % (test, t), 1, [w, w], lambda a, b, r=real, h=holds: h(r, a, b), [near] * 2))
        half = t in ("f16", "bf16")  # these have one result
        f.append(Form("setp.%s.and.%s {d}%s, {a}, {b}, {c};" % (tests[1], t, "" if half else "|{q}"), 1, [w, w, 1],
                      lambda a, b, c, h=holds, k=tests[1]: h(k, a, b) and c, [near, near, pool_range(0, 1)]))
        if not half:
            f.append(Form("setp.%s.or.%s {q}|{d}, {a}, {b}, !{c};" % (tests[0], t), 1, [w, w, 1],
                          lambda a, b, c, h=holds, k=tests[0]: (not h(k, a, b)) or not c, [near, near, pool_range(0, 1)]))
        f.append(Form("setp.%s.xor.%s {d}, {a}, {b}, {c};" % (tests[-1], t), 1, [w, w, 1],
                      lambda a, b, c, h=holds, k=tests[-1]: bool(h(k, a, b)) ^ bool(c), [near, near, pool_range(0, 1)]))
        f.append(Form("set.%s.u32.%s {d}, {a}, {b};" % (tests[-1], t), 32, [w, w],
                      lambda a, b, h=holds, k=tests[-1]: MASK[32] if h(k, a, b) else 0, [near] * 2))
        if t != "bf16":
            f.append(Form("set.%s.f32.%s {d}, {a}, {b};" % (tests[0], t), 32, [w, w],
                          lambda a, b, h=holds, k=tests[0]: 0x3F800000 if h(k, a, b) else 0, [near] * 2)) if t != "f16" else None
    return f


def compare_flush():
    p = pool_float(F32)
    z = lambda x: isa.flush(F32, x)
    key = lambda x: isa.fkey(F32, z(x)) if z(x) & 0x7FFFFFFF else 0
    f = [Form("setp.eq.ftz.f32 {d}, {a}, {b};", 1, [32, 32],
              lambda a, b: not isa.is_nan(F32, a) and not isa.is_nan(F32, b) and key(a) == key(b), [pool_of([0, 1, 0x80000000, 0x80000001, 0x7FFFFF, 0x800000])] * 2),
         Form("setp.gtu.ftz.f32 {d}, {a}, {b};", 1, [32, 32],
              lambda a, b: isa.is_nan(F32, a) or isa.is_nan(F32, b) or key(a) > key(b), [p, p])]
    for w in (16, 32, 64):
        f.append(Form("selp.b%d {d}, {a}, {b}, {c};" % w, w, [w, w, 1], lambda a, b, c: a if c else b, [pool_int(w), pool_int(w), pool_range(0, 1)]))
        f.append(Form("slct.u%d.s32 {d}, {a}, {b}, {c};" % w, w, [w, w, 32], lambda a, b, c: a if isa.signed(c, 32) >= 0 else b, [pool_int(w), pool_int(w), pool_int(32)]))
    f.append(Form("slct.f32.f32 {d}, {a}, {b}, {c};", 32, [32] * 3,
                  lambda a, b, c: b if isa.is_nan(F32, c) or (isa.sign(F32, c) and c != 0x80000000) else a, [pool_int(32), pool_int(32), p]))
    def pair_set(a, b):
        out = 0
        for i in (0, 16):
            x, y = a >> i & 0xFFFF, b >> i & 0xFFFF
            if isa.is_nan(F16, x) or isa.is_nan(F16, y):
                continue
            k = lambda v: isa.fkey(F16, v) if v & 0x7FFF else 0
            out |= (0x3C00 if k(x) < k(y) else 0) << i
        return out
    f.append(Form("set.lt.f16x2.f16x2 {d}, {a}, {b};", 32, [32, 32], pair_set, [pool_pair(F16)] * 2))
    return f


# Conversion ------------------------------------------------------------------------------------------------------

def conversions_integer():
    f = []
    kinds = ["u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"]
    reg = lambda t: max(16, bits_of(t))
    for d in kinds:
        for s in kinds:
            if d == s:
                continue
            ref = lambda a, d=d, s=s: num(d, num(s, a & ((1 << bits_of(s)) - 1)))
            f.append(Form("cvt.%s.%s {d}, {a};" % (d, s), reg(d), [reg(s)], lambda a, r=ref: r(a), [pool_int(reg(s))]))
            lo = (isa.clamp(-(1 << 70), bits_of(d), d[0] == "s"), isa.clamp(1 << 70, bits_of(d), d[0] == "s"))
            src = (isa.clamp(-(1 << 70), bits_of(s), s[0] == "s"), isa.clamp(1 << 70, bits_of(s), s[0] == "s"))
            if lo[0] > src[0] or lo[1] < src[1]:
                sat = lambda a, d=d, s=s: isa.clamp(isa.signed(a, bits_of(s)) if s[0] == "s" else a & ((1 << bits_of(s)) - 1), bits_of(d), d[0] == "s")
                f.append(Form("cvt.sat.%s.%s {d}, {a};" % (d, s), reg(d), [reg(s)], sat, [pool_int(reg(s))]))
    return f


def conversions_float_integer(t):
    fmt = FORMATS[t]
    w = isa.width(fmt)
    f = []
    scaled = pool_float(fmt)

    def pool(rng):
        if rng.random() < 0.4:
            return scaled(rng)
        top = min(isa.bias(fmt) + rng.randint(-2, 66), 2 * isa.bias(fmt))
        return rng.getrandbits(1) << (w - 1) | top << fmt[1] | rng.getrandbits(fmt[1])
    for i in ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"):
        bits = bits_of(i)
        reg = max(16, bits)
        modes = ("rni", "rzi", "rmi", "rpi") if t in ("f32", "f64") or i in ("u32", "s32", "s64") else ("rzi",)
        for m in modes:
            if t == "bf16" and i in ("u8", "s8"):
                continue
            f.append(Form("cvt.%s.%s.%s {d}, {a};" % (m, i, t), reg, [w],
                          lambda a, m=m, i=i, bits=bits: isa.to_int(fmt, a, bits, i[0] == "s", m[:2]), [pool]))
        for m in ("rn", "rz", "rm", "rp"):
            if t == "bf16" and i in ("u8", "s8"):
                continue
            def ref(a, m=m, i=i, bits=bits):
                n = isa.signed(a, bits) if i[0] == "s" else a & ((1 << bits) - 1)
                return isa.encode(fmt, Fraction(n), m)
            f.append(Form("cvt.%s.%s.%s {d}, {a};" % (m, t, i), w, [reg], ref, [pool_int(reg)]))
    return f


def conversions_float():
    f = []
    for s in ("f16", "bf16", "f32", "f64"):
        for d in ("f16", "bf16", "f32", "f64"):
            if s == d or (s == "bf16" and d == "f16") or (s == "f16" and d == "bf16"):
                continue
            a, b = FORMATS[s], FORMATS[d]
            p = pool_float(a, d != "f64" or s == "f32", NANS[s])
            narrows = isa.width(b) < isa.width(a)
            for m in ("rn", "rz", "rm", "rp") if narrows else ("",):
                if d == "bf16" and m in ("rm", "rp"):
                    continue
                f.append(Form("cvt.%s%s.%s {d}, {a};" % (m + "." if m else "", d, s), isa.width(b), [isa.width(a)],
                              lambda x, a=a, b=b, m=m: isa.convert(a, b, x, m or "rn"), [p]))
    for t in ("f16", "f32", "f64"):
        fmt = FORMATS[t]
        for m in ("rni", "rzi", "rmi", "rpi"):
            f.append(Form("cvt.%s.%s.%s {d}, {a};" % (m, t, t), isa.width(fmt), [isa.width(fmt)],
                          lambda x, fmt=fmt, m=m: isa.integral(fmt, x, m[:2]), [pool_float(fmt, t != "f64")]))
    p = pool_float(F32)
    f += [Form("cvt.sat.f32.f32 {d}, {a};", 32, [32], lambda x: isa.finish(F32, x, sat=True), [p]),
          Form("cvt.ftz.f64.f32 {d}, {a};", 64, [32], lambda x: isa.convert(F32, F64, isa.flush(F32, x)), [pool_float(F32, False)]),
          Form("cvt.rn.ftz.f32.f64 {d}, {a};", 32, [64], lambda x: isa.flush(F32, isa.convert(F64, F32, x)), [pool_float(F64)]),
          Form("cvt.rni.ftz.s32.f32 {d}, {a};", 32, [32], lambda x: isa.to_int(F32, isa.flush(F32, x), 32, True, "rn"), [p]),
          Form("cvt.rn.relu.f16.f32 {d}, {a};", 16, [32], lambda x: isa.finish(F16, isa.convert(F32, F16, x), relu=True), [p]),
          Form("cvt.rna.tf32.f32 {d}, {a};", 32, [32], lambda x: x & ~0x1FFF if isa.is_nan(F32, x) else isa.convert(F32, isa.TF32, x, "rna") << 13, [p])]
    for t, fmt in (("f16x2", F16), ("bf16x2", BF16)):
        for m in ("rn", "rz"):
            for relu in ("", ".relu"):
                f.append(Form("cvt.%s%s.%s.f32 {d}, {a}, {b};" % (m, relu, t), 32, [32, 32],
                              lambda a, b, fmt=fmt, m=m, r=relu: isa.finish(fmt, isa.convert(F32, fmt, a, m), relu=bool(r)) << 16 | isa.finish(fmt, isa.convert(F32, fmt, b, m), relu=bool(r)), [p, p]))
    small = pool_float(F16)
    narrow = lambda rng: isa.convert(F16, F32, small(rng))
    for t, g in (("e4m3x2", isa.to_e4m3), ("e5m2x2", isa.to_e5m2)):
        f.append(Form("cvt.rn.satfinite.%s.f32 {d}, {a}, {b};" % t, 16, [32, 32], lambda a, b, g=g: g(F32, a) << 8 | g(F32, b), [narrow, narrow]))
        f.append(Form("cvt.rn.satfinite.%s.f16x2 {d}, {a};" % t, 16, [32], lambda a, g=g: g(F16, a >> 16) << 8 | g(F16, a & 0xFFFF), [pool_pair(F16)]))
    f.append(Form("cvt.rn.f16x2.e4m3x2 {d}, {a};", 32, [16], lambda a: isa.from_e4m3(a >> 8) << 16 | isa.from_e4m3(a & 255), [pool_int(16)]))
    f.append(Form("cvt.rn.f16x2.e5m2x2 {d}, {a};", 32, [16],
                  lambda a: sum((isa.nan(F16) if isa.is_nan(isa.E5M2, x) else x << 8) << s for x, s in ((a >> 8, 16), (a & 255, 0))), [pool_int(16)]))
    c = isa.clamp
    f.append(Form("cvt.pack.sat.u16.s32 {d}, {a}, {b};", 32, [32, 32], lambda a, b: c(isa.signed(a, 32), 16, False) << 16 | c(isa.signed(b, 32), 16, False), [pool_int(32)] * 2))
    f.append(Form("cvt.pack.sat.s16.s32 {d}, {a}, {b};", 32, [32, 32], lambda a, b: (c(isa.signed(a, 32), 16, True) & 0xFFFF) << 16 | c(isa.signed(b, 32), 16, True) & 0xFFFF, [pool_int(32)] * 2))
    f.append(Form("cvt.pack.sat.u8.s32.b32 {d}, {a}, {b}, {c};", 32, [32] * 3, lambda a, b, e: (e & 0xFFFF) << 16 | c(isa.signed(a, 32), 8, False) << 8 | c(isa.signed(b, 32), 8, False), [pool_int(32)] * 3))
    return f


def packing():
    return [Form("mov.b32 {d}, {{{a}, {b}}};", 32, [16, 16], lambda a, b: b << 16 | a, [pool_int(16)] * 2),
            Form("mov.b64 {d}, {{{a}, {b}}};", 64, [32, 32], lambda a, b: b << 32 | a, [pool_int(32)] * 2),
            Form("mov.b64 {{{d}, %ry}}, {a};", 32, [64], lambda a: a, [pool_int(64)]),
            Form("mov.b64 {{%ry, {d}}}, {a};", 32, [64], lambda a: a >> 32, [pool_int(64)]),
            Form("mov.b32 {{{d}, %he}}, {a};", 16, [32], lambda a: a, [pool_int(32)]),
            Form("mov.b64 {d}, {{{a}, {b}, {c}, {e}}};", 64, [16] * 4, lambda a, b, c, e: e << 48 | c << 32 | b << 16 | a, [pool_int(16)] * 4),
            Form("mov.u32 {d}, 0xdeadbeef;", 32, [], lambda: 0xDEADBEEF, []),
            Form("mov.f32 {d}, 0f3FC00000;", 32, [], lambda: 0x3FC00000, []),
            Form("mov.f64 {d}, 0d3FF8000000000000;", 64, [], lambda: 0x3FF8000000000000, []),
            Form("mov.s32 {d}, -7;", 32, [], lambda: -7, []),
            Form("add.f32 {d}, {a}, 1.5;", 32, [32], lambda a: isa.fadd(F32, a, 0x3FC00000), [pool_float(F32)])]


# Approximations --------------------------------------------------------------------------------------------------

def decimal_of(fmt, x):
    v = isa.value(fmt, x)
    return Decimal(v.numerator) / Decimal(v.denominator)


PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459")
LN2 = Decimal(2).ln()


def sine(x):
    x = x % (2 * PI)
    if x > PI:
        x -= 2 * PI
    term, total, n = x, x, 1
    while abs(term) > Decimal(10) ** -55:
        term = -term * x * x / ((n + 1) * (n + 2))
        total += term
        n += 2
    return total


def rounded(fmt, d):
    return isa.encode(fmt, Fraction(d), "rn", 1 if d.is_signed() else 0)


def approximations(fmt, t):
    def finite(low, high, negative=True):
        def draw(rng):
            e = isa.bias(fmt) + rng.randint(low, high)
            return (rng.getrandbits(1) if negative else 0) << (isa.width(fmt) - 1) | e << fmt[1] | rng.getrandbits(fmt[1])
        return draw
    w = isa.width(fmt)
    one = lambda text, g, pool, error: Form(text + " {d}, {a};", w, [w], lambda a: rounded(fmt, g(decimal_of(fmt, a))), [pool], error)
    tanh = lambda x: ((2 * x).exp() - 1) / ((2 * x).exp() + 1)
    if t == "f16":
        return [one("ex2.approx.f16", lambda x: (x * LN2).exp(), finite(-4, 2), "2^-9.9rel"),
                one("tanh.approx.f16", tanh, finite(-2, 2), "2^-10.987abs")]
    both = lambda text, g: Form(text + " {d}, {a}, {b};", w, [w, w],
                                lambda a, b: rounded(fmt, g(decimal_of(fmt, a), decimal_of(fmt, b))), [finite(-20, 20)] * 2, "2ulp")
    f = []
    for z in ("", ".ftz"):
        f += [one("rcp.approx%s.f32" % z, lambda x: 1 / x, finite(-40, 40), "1ulp"),
              one("sqrt.approx%s.f32" % z, lambda x: x.sqrt(), finite(-40, 40, False), "2^-23rel"),
              one("rsqrt.approx%s.f32" % z, lambda x: 1 / x.sqrt(), finite(-40, 40, False), "2^-22.9rel"),
              one("ex2.approx%s.f32" % z, lambda x: (x * LN2).exp(), finite(-4, 5), "2ulp"),
              both("div.approx%s.f32" % z, lambda a, b: a / b), both("div.full%s.f32" % z, lambda a, b: a / b)]
    near = lambda rng: rng.randint(0x3F000001, 0x3FFFFFFF)  # (0.5, 2), where lg2's error is absolute
    angle = lambda rng: rng.getrandbits(1) << 31 | rng.randint(0x3C000000, 0x40490FDA)  # up to pi
    return f + [one("lg2.approx.f32", lambda x: x.ln() / LN2, finite(1, 40, False), "2^-22rel"),
                one("lg2.approx.f32", lambda x: x.ln() / LN2, near, "2^-22abs"),
                one("sin.approx.f32", sine, angle, "2^-20.5abs"),
                one("cos.approx.f32", lambda x: sine(x + PI / 2), angle, "2^-20.5abs"),
                one("tanh.approx.f32", tanh, finite(-8, 3), "2^-11rel")]


def main():
    import scenarios
    count = 0
    count += family("int_arithmetic", integer_arithmetic())
    count += family("int_packed", packed_integer())
    count += family("int_bits", bit_manipulation())
    count += family("int_logic", logic_and_shift())
    count += family("int_carry", carries())
    for t in ("f16", "bf16", "f32", "f64"):
        count += family("float_" + t, float_basic(t))
    count += family("float_f16x2", float_pairs("f16"))
    count += family("float_bf16x2", float_pairs("bf16"))
    count += family("compare_int", comparisons(["u16", "s16", "u32", "s32", "u64", "s64", "b16", "b32", "b64"]))
    count += family("compare_float", comparisons(["f16", "bf16", "f32", "f64"]))
    count += family("select", compare_flush())
    count += family("cvt_int", conversions_integer())
    for t in ("f16", "bf16", "f32", "f64"):
        count += family("cvt_int_" + t, conversions_float_integer(t))
    count += family("cvt_float", conversions_float())
    count += family("mov", packing())
    count += family("approx_f32", approximations(F32, "f32"), approx="f32")
    count += family("approx_f16", approximations(F16, "f16"), approx="f16")
    count += scenarios.write_all(write, head)
    print(count, "forms")


if __name__ == "__main__":
    main()
