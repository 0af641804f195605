"""Reference semantics of PTX instructions, written from the ISA text with exact rational arithmetic."""
from fractions import Fraction
from math import isqrt

F16, BF16, TF32, F32, F64 = (5, 10), (8, 7), (8, 10), (8, 23), (11, 52)
E4M3, E5M2 = (4, 3), (5, 2)


def width(fmt):
    return 1 + fmt[0] + fmt[1]


def bias(fmt):
    return (1 << (fmt[0] - 1)) - 1


def inf(fmt, sign=0):
    return sign << (width(fmt) - 1) | ((1 << fmt[0]) - 1) << fmt[1]


def nan(fmt):
    """What the hardware writes; f64 is compared only where it is not a NaN with payload."""
    return 0xFFF8000000000000 if fmt == F64 else (1 << (width(fmt) - 1)) - 1


def is_nan(fmt, x):
    return x & ((1 << (width(fmt) - 1)) - 1) > inf(fmt)


def is_inf(fmt, x):
    return x & ((1 << (width(fmt) - 1)) - 1) == inf(fmt)


def sign(fmt, x):
    return x >> (width(fmt) - 1) & 1


def is_subnormal(fmt, x):
    return x & inf(fmt) == 0 and x & ((1 << fmt[1]) - 1) != 0


def value(fmt, x):
    """Exact value of a finite number."""
    e = x >> fmt[1] & ((1 << fmt[0]) - 1)
    m = x & ((1 << fmt[1]) - 1)
    if e:
        m |= 1 << fmt[1]
    v = Fraction(m) * Fraction(2) ** (max(e, 1) - bias(fmt) - fmt[1])
    return -v if sign(fmt, x) else v


def floor_log2(v):
    e = v.numerator.bit_length() - v.denominator.bit_length()
    if Fraction(2) ** e > v:
        e -= 1
    return e


def whole(v, mode, negative):
    """Rounds the non-negative rational v to an integer; `negative` is the sign of the real value."""
    n, rest = divmod(v, 1)
    n = int(n)
    if mode == "rn":
        up = rest > Fraction(1, 2) or (rest == Fraction(1, 2) and n & 1)
    elif mode == "rna":
        up = rest >= Fraction(1, 2)
    elif mode == "rz":
        up = False
    elif mode == "rm":
        up = rest and negative
    else:
        up = rest and not negative
    return n + (1 if up else 0)


def encode(fmt, v, mode="rn", zero_sign=0):
    if v == 0:
        return zero_sign << (width(fmt) - 1)
    s = 1 if v < 0 else 0
    v = abs(v)
    e = max(floor_log2(v), 1 - bias(fmt))
    m = whole(v / Fraction(2) ** (e - fmt[1]), mode, s == 1)
    top = bias(fmt)
    if m >= 2 << fmt[1]:
        m >>= 1
        e += 1
    if e > top:
        away = mode in ("rn", "rna") or (mode == "rm" and s) or (mode == "rp" and not s)
        return inf(fmt, s) - (0 if away else 1)
    bits = m if m < 1 << fmt[1] else (e + bias(fmt)) << fmt[1] | (m & ((1 << fmt[1]) - 1))
    return s << (width(fmt) - 1) | bits


def flush(fmt, x):
    return x & 1 << (width(fmt) - 1) if is_subnormal(fmt, x) else x


def finish(fmt, r, ftz=False, sat=False, relu=False):
    if ftz:
        r = flush(fmt, r)
    if sat:
        if is_nan(fmt, r) or sign(fmt, r):
            return 0
        return min(r, encode(fmt, Fraction(1)))
    if relu and not is_nan(fmt, r) and sign(fmt, r):
        return 0
    return r


def zero_sum(sa, sb, mode):
    return sa if sa == sb else (1 if mode == "rm" else 0)


def fadd(fmt, a, b, mode="rn"):
    if is_nan(fmt, a) or is_nan(fmt, b):
        return nan(fmt)
    if is_inf(fmt, a):
        return nan(fmt) if is_inf(fmt, b) and a != b else a
    if is_inf(fmt, b):
        return b
    v = value(fmt, a) + value(fmt, b)
    return encode(fmt, v, mode, zero_sum(sign(fmt, a), sign(fmt, b), mode))


def fneg(fmt, a):
    return a ^ 1 << (width(fmt) - 1)


def fsub(fmt, a, b, mode="rn"):
    return fadd(fmt, a, fneg(fmt, b), mode)


def fmul(fmt, a, b, mode="rn"):
    if is_nan(fmt, a) or is_nan(fmt, b):
        return nan(fmt)
    s = sign(fmt, a) ^ sign(fmt, b)
    za, zb = a & ~(1 << (width(fmt) - 1)) == 0, b & ~(1 << (width(fmt) - 1)) == 0
    if is_inf(fmt, a) or is_inf(fmt, b):
        return nan(fmt) if za or zb else inf(fmt, s)
    return encode(fmt, value(fmt, a) * value(fmt, b), mode, s)


def ffma(fmt, a, b, c, mode="rn"):
    if any(is_nan(fmt, x) for x in (a, b, c)):
        return nan(fmt)
    s = sign(fmt, a) ^ sign(fmt, b)
    if is_inf(fmt, a) or is_inf(fmt, b):
        p = fmul(fmt, a, b)
        return nan(fmt) if is_nan(fmt, p) or (is_inf(fmt, c) and sign(fmt, c) != s) else p
    if is_inf(fmt, c):
        return c
    p = value(fmt, a) * value(fmt, b)
    v = p + value(fmt, c)
    return encode(fmt, v, mode, zero_sum(s, sign(fmt, c), mode) if p == 0 else (1 if mode == "rm" else 0))


def fdiv(fmt, a, b, mode="rn"):
    if is_nan(fmt, a) or is_nan(fmt, b):
        return nan(fmt)
    s = sign(fmt, a) ^ sign(fmt, b)
    if is_inf(fmt, a):
        return nan(fmt) if is_inf(fmt, b) else inf(fmt, s)
    if is_inf(fmt, b):
        return s << (width(fmt) - 1)
    if value(fmt, b) == 0:
        return nan(fmt) if value(fmt, a) == 0 else inf(fmt, s)
    return encode(fmt, value(fmt, a) / value(fmt, b), mode, s)


def fsqrt(fmt, a, mode="rn"):
    if is_nan(fmt, a):
        return nan(fmt)
    if a & ~(1 << (width(fmt) - 1)) == 0:
        return a
    if sign(fmt, a):
        return nan(fmt)
    if is_inf(fmt, a):
        return a
    v = value(fmt, a)
    scaled = v * 4**1200
    root = isqrt(int(scaled))
    r = Fraction(root, 2**1200)
    if r * r != v:
        r += Fraction(1, 2**1201)  # strictly between two candidates: enough to round correctly
    return encode(fmt, r, mode)


def fkey(fmt, x):
    m = x & ~(1 << (width(fmt) - 1))
    return -m - 1 if sign(fmt, x) else m


def fminmax(fmt, a, b, want_max, nan_result=False, xorsign=False):
    if is_nan(fmt, a) or is_nan(fmt, b):
        if nan_result or (is_nan(fmt, a) and is_nan(fmt, b)):
            return nan(fmt)
        return b if is_nan(fmt, a) else a
    s = 0
    if xorsign:
        s = (a ^ b) & 1 << (width(fmt) - 1)
        a, b = a & ~(1 << (width(fmt) - 1)), b & ~(1 << (width(fmt) - 1))
    pick = max if want_max else min
    return pick(a, b, key=lambda x: fkey(fmt, x)) | s


def convert(src, dst, x, mode="rn"):
    if is_nan(src, x):
        if F64 not in (src, dst):
            return nan(dst)
        # Payload kept, cut from below, and made quiet (measured on an H200).
        kept = (x & ((1 << src[1]) - 1)) << (52 - src[1]) >> (52 - dst[1])
        return inf(dst, sign(src, x)) | kept | 1 << (dst[1] - 1)
    if is_inf(src, x):
        return inf(dst, sign(src, x))
    return encode(dst, value(src, x), mode, sign(src, x))


def integral(fmt, x, mode):
    if is_nan(fmt, x):
        return nan(fmt)
    if is_inf(fmt, x):
        return x
    n = whole(abs(value(fmt, x)), mode, sign(fmt, x) == 1)
    return sign(fmt, x) << (width(fmt) - 1) | encode(fmt, Fraction(n))


def clamp(n, bits, signed):
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    return max(low, min(high, n))


def to_int(fmt, x, bits, signed, mode):
    if is_nan(fmt, x):
        least = 1 << (bits - 1)
        return (-least if signed else least) if fmt == F64 or bits == 64 else 0
    if is_inf(fmt, x):
        n = -(1 << 70) if sign(fmt, x) else 1 << 70
    else:
        n = whole(abs(value(fmt, x)), mode, sign(fmt, x) == 1)
        n = -n if sign(fmt, x) else n
    return clamp(n, bits, signed)


def signed(x, bits):
    x &= (1 << bits) - 1
    return x - (1 << bits) if x >> (bits - 1) else x


def compare(test, a, b, unordered):
    table = {"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b} if not unordered else {}
    if test == "num":
        return not unordered
    if test == "nan":
        return unordered
    if unordered:
        return test.endswith("u")
    return table[test[:2]]


def prmt(a, b, c, mode=""):
    src = [(a >> (8 * i)) & 255 for i in range(4)] + [(b >> (8 * i)) & 255 for i in range(4)]
    n = c & 3
    if mode == "":
        picks = [(c >> (4 * i)) & 15 for i in range(4)]
    else:
        table = {
            "f4e": [[0, 1, 2, 3], [1, 2, 3, 4], [2, 3, 4, 5], [3, 4, 5, 6]],
            "b4e": [[0, 7, 6, 5], [1, 0, 7, 6], [2, 1, 0, 7], [3, 2, 1, 0]],
            "rc8": [[0] * 4, [1] * 4, [2] * 4, [3] * 4],
            "ecl": [[0, 1, 2, 3], [1, 1, 2, 3], [2, 2, 2, 3], [3, 3, 3, 3]],
            "ecr": [[0, 0, 0, 0], [0, 1, 1, 1], [0, 1, 2, 2], [0, 1, 2, 3]],
            "rc16": [[0, 1, 0, 1], [2, 3, 2, 3], [0, 1, 0, 1], [2, 3, 2, 3]],
        }
        picks = table[mode][n]
    out = 0
    for i, p in enumerate(picks):
        byte = src[p & 7]
        if p & 8:
            byte = 255 if byte & 128 else 0
        out |= byte << (8 * i)
    return out


def bfe(a, pos, length, bits, is_signed):
    pos, length, msb = pos & 255, length & 255, bits - 1
    a &= (1 << bits) - 1
    if not is_signed or length == 0:
        sbit = 0
    else:
        sbit = a >> min(pos + length - 1, msb) & 1
    d = 0
    for i in range(msb + 1):
        d |= ((a >> (pos + i) & 1) if i < length and pos + i <= msb else sbit) << i
    return d


def bfi(a, b, pos, length, bits):
    pos, length = pos & 255, length & 255
    for i in range(length):
        if pos + i < bits:
            b = b & ~(1 << (pos + i)) | (a >> i & 1) << (pos + i)
    return b


def fns(mask, base, offset):
    offset = signed(offset, 32)
    if offset == 0:
        return base if mask >> base & 1 else 0xFFFFFFFF
    pos, count, inc = base - 1 if offset > 0 else base + 1, abs(offset), 1 if offset > 0 else -1
    # Written as the ISA has it: step until `count` set bits have been met.
    while count:
        pos += inc
        if pos < 0 or pos > 31:
            return 0xFFFFFFFF
        if mask >> pos & 1:
            count -= 1
    return pos


def to_e4m3(src, x):
    """satfinite, round to nearest even."""
    if is_nan(src, x):
        return 0x7F
    s = sign(src, x) << 7
    if is_inf(src, x):
        return s | 0x7E
    v = abs(value(src, x))
    if v == 0:
        return s
    e = max(floor_log2(v), -6)
    m = whole(v / Fraction(2) ** (e - 3), "rn", False)
    if m >= 16:
        m, e = m >> 1, e + 1
    bits = m if m < 8 else (e + 7) << 3 | m & 7
    return s | min(bits, 0x7E)


def from_e4m3(x):
    if x & 0x7F == 0x7F:
        return nan(F16)
    e, m = x >> 3 & 15, x & 7
    v = Fraction(m | (8 if e else 0)) * Fraction(2) ** (max(e, 1) - 10)
    return encode(F16, -v if x & 0x80 else v, "rn", x >> 7)


def to_e5m2(src, x):
    if is_nan(src, x):
        return 0x7F
    if is_inf(src, x):
        return sign(src, x) << 7 | 0x7B
    r = encode(E5M2, value(src, x), "rn", sign(src, x))
    return sign(src, x) << 7 | min(r & 0x7F, 0x7B)
