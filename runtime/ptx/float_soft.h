// IEEE 754 arithmetic on bit patterns, for every format and rounding that PTX has. Exact and slow
// (tens of ns): the interpreter uses it for directed rounding, half precision and conversions, and
// the machine's own f32/f64 for the rest. Pure functions.
#pragma once

#include <bit>
#include <cstdint>

namespace ttt::ptx::soft {

using U128 = unsigned __int128;

enum class Round : uint8_t { kNearest, kZero, kDown, kUp, kNearestAway };

struct Format {
    uint32_t exponent_bits, mantissa_bits;  // mantissa without the hidden bit
    constexpr int32_t bias() const { return (1 << (exponent_bits - 1)) - 1; }
    constexpr uint64_t sign_bit() const { return uint64_t{1} << (exponent_bits + mantissa_bits); }
    constexpr uint64_t infinity() const {
        return ((uint64_t{1} << exponent_bits) - 1) << mantissa_bits;
    }
    constexpr uint64_t mantissa_mask() const { return (uint64_t{1} << mantissa_bits) - 1; }
    // What the hardware writes for "not a number": all ones below the sign, but IEEE's default in
    // f64.
    constexpr uint64_t canonical_nan() const {
        return mantissa_bits == 52 ? 0xFFF8000000000000ull : sign_bit() - 1;
    }
    constexpr bool is_nan(uint64_t a) const { return (a & (sign_bit() - 1)) > infinity(); }
    constexpr bool is_inf(uint64_t a) const { return (a & (sign_bit() - 1)) == infinity(); }
    constexpr bool is_zero(uint64_t a) const { return (a & (sign_bit() - 1)) == 0; }
    constexpr bool is_subnormal(uint64_t a) const {
        return (a & infinity()) == 0 && (a & mantissa_mask()) != 0;
    }
    constexpr bool negative(uint64_t a) const { return (a & sign_bit()) != 0; }
};
inline constexpr Format kF16{5, 10}, kBF16{8, 7}, kTF32{8, 10}, kF32{8, 23}, kF64{11, 52};

// A finite nonzero value: mantissa · 2^exponent. A set lowest mantissa bit may stand for "and a bit
// more" (sticky).
struct Value {
    bool negative = false;
    int32_t exponent = 0;
    U128 mantissa = 0;
};

inline int leading_zeros(U128 x) {
    const auto hi = static_cast<uint64_t>(x >> 64);
    return hi != 0 ? std::countl_zero(hi) : 64 + std::countl_zero(static_cast<uint64_t>(x));
}

// Shift right keeping a set lowest bit when anything was lost.
inline U128 shift_right_sticky(U128 x, uint32_t by) {
    if (by == 0) return x;
    if (by >= 128) return x != 0 ? 1 : 0;
    const U128 lost = x & ((U128{1} << by) - 1);
    return (x >> by) | (lost != 0 ? 1 : 0);
}

inline Value unpack(Format f, uint64_t a) {
    const auto biased = static_cast<int32_t>((a & f.infinity()) >> f.mantissa_bits);
    const uint64_t fraction = a & f.mantissa_mask();
    const int32_t shift = f.bias() + static_cast<int32_t>(f.mantissa_bits);
    if (biased == 0) return {f.negative(a), 1 - shift, fraction};
    return {f.negative(a), biased - shift, fraction | (uint64_t{1} << f.mantissa_bits)};
}

// Top bit of the mantissa at bit 126, so that a sum of two cannot overflow.
inline Value normalised(Value v) {
    const int up = leading_zeros(v.mantissa) - 1;
    return {v.negative, v.exponent - up, v.mantissa << up};
}

inline bool round_up(Round mode, bool negative, bool odd, bool at_least_half,
                     bool above_half_or_inexact, bool exactly_half) {
    switch (mode) {
        case Round::kNearest:
            return at_least_half && (!exactly_half || odd);
        case Round::kNearestAway:
            return at_least_half;
        case Round::kZero:
            return false;
        case Round::kDown:
            return negative && above_half_or_inexact;
        case Round::kUp:
            return !negative && above_half_or_inexact;
    }
    return false;
}

inline uint64_t overflowed(Format f, bool negative, Round mode) {
    const bool to_infinity = mode == Round::kNearest || mode == Round::kNearestAway ||
                             (mode == Round::kDown && negative) ||
                             (mode == Round::kUp && !negative);
    return (negative ? f.sign_bit() : 0) | (f.infinity() - (to_infinity ? 0 : 1));
}

// Rounds to the format; subnormals are kept. Precondition: v.mantissa != 0.
inline uint64_t pack(Format f, Value v, Round mode) {
    const int zeros = leading_zeros(v.mantissa);
    const U128 m = v.mantissa << zeros;
    const int32_t e = v.exponent + 127 - zeros;
    const int32_t lowest = 1 - f.bias();
    int32_t keep = static_cast<int32_t>(f.mantissa_bits) + 1;
    if (e < lowest) keep -= lowest - e;
    uint64_t kept = 0;
    U128 rest = 1;  // far below half a unit
    if (keep > 0) {
        kept = static_cast<uint64_t>(m >> (128 - keep));
        rest = m << keep;
    } else if (keep == 0) {
        rest = m;
    }
    const U128 half = U128{1} << 127;
    if (round_up(mode, v.negative, (kept & 1) != 0, rest >= half, rest != 0, rest == half)) ++kept;
    uint64_t bits = kept;
    if (e >= lowest) {
        if (e > f.bias()) return overflowed(f, v.negative, mode);
        // Adding lets a carry out of the mantissa raise the exponent.
        bits = (static_cast<uint64_t>(e + f.bias()) << f.mantissa_bits) + kept -
               (f.mantissa_mask() + 1);
    }
    if (bits >= f.infinity()) return overflowed(f, v.negative, mode);
    return (v.negative ? f.sign_bit() : 0) | bits;
}

// The NaN an operation answers when `a` or `b` is one: f64 passes the first one on, made quiet.
inline uint64_t nan_of(Format f, uint64_t a, uint64_t b) {
    if (f.mantissa_bits != 52) return f.canonical_nan();
    const uint64_t quiet = uint64_t{1} << 51;
    if (f.is_nan(a)) return a | quiet;
    return f.is_nan(b) ? b | quiet : f.canonical_nan();
}

// a + b of nonzero finite values.
inline uint64_t add_values(Format f, Value a, Value b, Round mode) {
    a = normalised(a);
    b = normalised(b);
    if (a.exponent < b.exponent) {
        const Value swap = a;
        a = b;
        b = swap;
    }
    b.mantissa = shift_right_sticky(b.mantissa, static_cast<uint32_t>(a.exponent - b.exponent));
    Value sum{a.negative, a.exponent, 0};
    if (a.negative == b.negative) {
        sum.mantissa = a.mantissa + b.mantissa;
    } else if (a.mantissa >= b.mantissa) {
        sum.mantissa = a.mantissa - b.mantissa;
    } else {
        sum.negative = b.negative;
        sum.mantissa = b.mantissa - a.mantissa;
    }
    if (sum.mantissa == 0) return mode == Round::kDown ? f.sign_bit() : 0;
    return pack(f, sum, mode);
}

inline uint64_t zero_sum(Format f, bool a_negative, bool b_negative, Round mode) {
    const bool negative = a_negative == b_negative ? a_negative : mode == Round::kDown;
    return negative ? f.sign_bit() : 0;
}

inline uint64_t add(Format f, uint64_t a, uint64_t b, Round mode) {
    if (f.is_nan(a) || f.is_nan(b)) return nan_of(f, a, b);
    if (f.is_inf(a)) return f.is_inf(b) && f.negative(a) != f.negative(b) ? f.canonical_nan() : a;
    if (f.is_inf(b)) return b;
    if (f.is_zero(a)) return f.is_zero(b) ? zero_sum(f, f.negative(a), f.negative(b), mode) : b;
    if (f.is_zero(b)) return a;
    return add_values(f, unpack(f, a), unpack(f, b), mode);
}

inline uint64_t mul(Format f, uint64_t a, uint64_t b, Round mode) {
    if (f.is_nan(a) || f.is_nan(b)) return nan_of(f, a, b);
    const bool negative = f.negative(a) != f.negative(b);
    const uint64_t sign = negative ? f.sign_bit() : 0;
    const bool zero = f.is_zero(a) || f.is_zero(b);
    if (f.is_inf(a) || f.is_inf(b)) return zero ? f.canonical_nan() : sign | f.infinity();
    if (zero) return sign;
    const Value x = unpack(f, a), y = unpack(f, b);
    return pack(f, {negative, x.exponent + y.exponent, x.mantissa * y.mantissa}, mode);
}

inline uint64_t fma(Format f, uint64_t a, uint64_t b, uint64_t c, Round mode) {
    if (f.is_nan(a) || f.is_nan(b)) return nan_of(f, a, b);
    const bool negative = f.negative(a) != f.negative(b);
    const bool zero = f.is_zero(a) || f.is_zero(b);
    if (f.is_nan(c)) return nan_of(f, c, c);
    if (f.is_inf(a) || f.is_inf(b)) {
        if (zero || (f.is_inf(c) && f.negative(c) != negative)) return f.canonical_nan();
        return (negative ? f.sign_bit() : 0) | f.infinity();
    }
    if (f.is_inf(c)) return c;
    if (zero) return f.is_zero(c) ? zero_sum(f, negative, f.negative(c), mode) : c;
    const Value x = unpack(f, a), y = unpack(f, b);
    const Value product{negative, x.exponent + y.exponent, x.mantissa * y.mantissa};
    if (f.is_zero(c)) return pack(f, product, mode);
    return add_values(f, product, unpack(f, c), mode);
}

inline uint64_t div(Format f, uint64_t a, uint64_t b, Round mode) {
    if (f.is_nan(a) || f.is_nan(b)) return nan_of(f, a, b);
    const bool negative = f.negative(a) != f.negative(b);
    const uint64_t sign = negative ? f.sign_bit() : 0;
    if (f.is_inf(a)) return f.is_inf(b) ? f.canonical_nan() : sign | f.infinity();
    if (f.is_inf(b)) return sign;
    if (f.is_zero(b)) return f.is_zero(a) ? f.canonical_nan() : sign | f.infinity();
    if (f.is_zero(a)) return sign;
    const Value x = normalised(unpack(f, a)), y = unpack(f, b);  // quotient has at least 73 bits
    const U128 quotient = x.mantissa / y.mantissa;
    const U128 sticky = x.mantissa % y.mantissa != 0 ? 1 : 0;
    return pack(f, {negative, x.exponent - y.exponent - 1, quotient << 1 | sticky}, mode);
}

inline uint64_t sqrt(Format f, uint64_t a, Round mode) {
    if (f.is_nan(a)) return nan_of(f, a, a);
    if (f.is_zero(a)) return a;
    if (f.negative(a)) return f.canonical_nan();
    if (f.is_inf(a)) return a;
    Value x = normalised(unpack(f, a));
    if (x.exponent % 2 != 0) {
        x.mantissa >>= 1;  // far below the operand's own bits: nothing is lost
        ++x.exponent;
    }
    uint64_t root = 0;
    for (uint64_t bit = uint64_t{1} << 63; bit != 0; bit >>= 1) {
        const U128 trial = root | bit;
        if (trial * trial <= x.mantissa) root |= bit;
    }
    const U128 sticky = U128{root} * root != x.mantissa ? 1 : 0;
    return pack(f, {false, x.exponent / 2 - 1, U128{root} << 1 | sticky}, mode);
}

inline uint64_t convert(Format from, Format to, uint64_t a, Round mode) {
    const uint64_t sign = from.negative(a) ? to.sign_bit() : 0;
    if (from.is_nan(a)) {
        // To and from f64 the payload is kept, cut from below, and the NaN made quiet; between the
        // smaller formats it is lost (measured on an H200).
        if (to.mantissa_bits != 52 && from.mantissa_bits != 52) return to.canonical_nan();
        const uint64_t payload =
            (a & from.mantissa_mask()) << (52 - from.mantissa_bits) >> (52 - to.mantissa_bits);
        return sign | to.infinity() | payload | uint64_t{1} << (to.mantissa_bits - 1);
    }
    if (from.is_inf(a)) return sign | to.infinity();
    if (from.is_zero(a)) return sign;
    return pack(to, unpack(from, a), mode);
}

// Integer value to the format; `negative` is the sign of the value whose magnitude is given.
inline uint64_t from_integer(Format f, bool negative, uint64_t magnitude, Round mode) {
    return magnitude == 0 ? 0 : pack(f, {negative, 0, magnitude}, mode);
}

// Rounds to an integer in the same format. The result's sign is kept, also for zero.
inline uint64_t round_to_integral(Format f, uint64_t a, Round mode) {
    if (f.is_nan(a)) return nan_of(f, a, a);
    if (f.is_inf(a) || f.is_zero(a)) return a;
    const Value v = unpack(f, a);
    if (v.exponent >= 0) return a;
    const auto down = static_cast<uint32_t>(-v.exponent);
    const U128 whole = down >= 128 ? 0 : v.mantissa >> down;
    const U128 rest = down >= 128 ? 1 : v.mantissa << (128 - down);  // down >= 1 here
    const U128 half = U128{1} << 127;
    const bool up =
        round_up(mode, v.negative, (whole & 1) != 0, rest >= half, rest != 0, rest == half);
    const uint64_t magnitude = static_cast<uint64_t>(whole) + (up ? 1 : 0);
    const uint64_t sign = v.negative ? f.sign_bit() : 0;
    return sign | from_integer(f, false, magnitude, Round::kZero);
}

struct Integer {
    bool negative = false, huge = false;  // huge: beyond 64 bits
    uint64_t magnitude = 0;
};
// Precondition: a is not NaN.
inline Integer to_integer(Format f, uint64_t a, Round mode) {
    if (f.is_inf(a)) return {f.negative(a), true, 0};
    const uint64_t whole = round_to_integral(f, a, mode);
    if (f.is_zero(whole)) return {f.negative(a), false, 0};
    const Value v = unpack(f, whole);
    if (v.exponent <= 0)
        return {v.negative, false,
                static_cast<uint64_t>(v.mantissa >> (v.exponent < -127 ? 127 : -v.exponent))};
    if (v.exponent > 63 || leading_zeros(v.mantissa) - 64 < v.exponent)
        return {v.negative, true, 0};
    return {v.negative, false, static_cast<uint64_t>(v.mantissa) << v.exponent};
}

inline uint64_t bits_of(double x) { return std::bit_cast<uint64_t>(x); }
inline uint64_t bits_of(float x) { return std::bit_cast<uint32_t>(x); }
inline float f32_of(uint64_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits)); }
inline double f64_of(uint64_t bits) { return std::bit_cast<double>(bits); }

// f16 and bf16 widen exactly; the result is the value as f32.
inline float half_to_float(uint32_t h) {
    const uint32_t sign = (h & 0x8000u) << 16;
    const uint32_t rest = h & 0x7FFFu;
    if (rest > 0x7C00u) return f32_of(0x7FFFFFFFu);
    if (rest == 0x7C00u) return f32_of(sign | 0x7F800000u);
    if (rest >= 0x0400u) return f32_of(sign | ((rest << 13) + 0x38000000u));
    const float tiny = static_cast<float>(rest) * 0x1p-24f;  // exact
    return f32_of(sign | static_cast<uint32_t>(bits_of(tiny)));
}
inline uint32_t float_to_half(float x, Round mode = Round::kNearest) {
    return static_cast<uint32_t>(convert(kF32, kF16, bits_of(x), mode));
}

}  // namespace ttt::ptx::soft
