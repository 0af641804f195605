// Floating-point arithmetic: f16, bf16, f32, f64, their packed pairs, and the approximate
// functions.
#include "ptx/exec_float.h"

#include <cmath>

#include "ptx/exec_lanes.h"
#include "ptx/float_soft.h"

namespace ttt::ptx::exec {
namespace {

using soft::Format;
using soft::kF32;
using soft::kF64;
using soft::Round;

struct Layout {
    Format format;
    uint32_t bits, count;
};
Layout layout_of(Type type) {
    switch (type) {
        case Type::kF16:
            return {soft::kF16, 16, 1};
        case Type::kF16x2:
            return {soft::kF16, 16, 2};
        case Type::kBF16:
            return {soft::kBF16, 16, 1};
        case Type::kBF16x2:
            return {soft::kBF16, 16, 2};
        case Type::kF32x2:
            return {kF32, 32, 2};
        case Type::kF64:
            return {kF64, 64, 1};
        default:
            return {kF32, 32, 1};
    }
}

Round mode_of(uint16_t flags) { return static_cast<Round>(flags & kFloatRound); }

uint64_t flush(Format f, uint64_t a) { return f.is_subnormal(a) ? a & f.sign_bit() : a; }

uint64_t one_of(Format f) { return static_cast<uint64_t>(f.bias()) << f.mantissa_bits; }

// .ftz, .sat and .relu of a result.
uint64_t finish(Format f, uint64_t r, uint16_t flags) {
    if ((flags & kFloatFtz) != 0) r = flush(f, r);
    if ((flags & kFloatSat) != 0) {
        if (f.is_nan(r) || f.negative(r)) return 0;
        return r > one_of(f) ? one_of(f) : r;
    }
    if ((flags & kFloatRelu) != 0 && !f.is_nan(r) && f.negative(r)) return 0;
    return r;
}

// One element of an operation, on bits.
using Element = uint64_t (*)(Format, uint64_t a, uint64_t b, uint64_t c, uint16_t flags);

template <Element E>
uint64_t elements(const uint64_t* s, const Op& op) {
    const Layout layout = layout_of(op.type);
    const uint64_t mask = layout.bits == 64 ? ~uint64_t{0} : (uint64_t{1} << layout.bits) - 1;
    uint64_t out = 0;
    for (uint32_t i = 0; i < layout.count; ++i) {
        const uint32_t at = i * layout.bits;
        uint64_t a = s[0] >> at & mask, b = s[1] >> at & mask, c = s[2] >> at & mask;
        if ((op.sub & kFloatFtz) != 0) {
            a = flush(layout.format, a);
            b = flush(layout.format, b);
            c = flush(layout.format, c);
        }
        out |= finish(layout.format, E(layout.format, a, b, c, op.sub), op.sub) << at;
    }
    return out;
}

uint64_t add(Format f, uint64_t a, uint64_t b, uint64_t, uint16_t flags) {
    return soft::add(f, a, b, mode_of(flags));
}
uint64_t sub(Format f, uint64_t a, uint64_t b, uint64_t, uint16_t flags) {
    return soft::add(f, a, f.is_nan(b) ? b : b ^ f.sign_bit(), mode_of(flags));
}
uint64_t mul(Format f, uint64_t a, uint64_t b, uint64_t, uint16_t flags) {
    return soft::mul(f, a, b, mode_of(flags));
}
uint64_t fma(Format f, uint64_t a, uint64_t b, uint64_t c, uint16_t flags) {
    return soft::fma(f, a, b, c, mode_of(flags));
}
uint64_t div(Format f, uint64_t a, uint64_t b, uint64_t, uint16_t flags) {
    return soft::div(f, a, b, mode_of(flags));
}
uint64_t rcp(Format f, uint64_t a, uint64_t, uint64_t, uint16_t flags) {
    return soft::div(f, one_of(f), a, mode_of(flags));
}
uint64_t sqrt_exact(Format f, uint64_t a, uint64_t, uint64_t, uint16_t flags) {
    return soft::sqrt(f, a, mode_of(flags));
}
// f64 passes NaNs through unchanged; the narrower formats answer the canonical one.
uint64_t abs_bits(Format f, uint64_t a, uint64_t, uint64_t, uint16_t) {
    if (f.is_nan(a)) return f.mantissa_bits == 52 ? a : f.canonical_nan();
    return a & ~f.sign_bit();
}
uint64_t neg_bits(Format f, uint64_t a, uint64_t, uint64_t, uint16_t) {
    if (f.is_nan(a)) return f.mantissa_bits == 52 ? a : f.canonical_nan();
    return a ^ f.sign_bit();
}
uint64_t copysign_bits(Format f, uint64_t a, uint64_t b, uint64_t, uint16_t) {
    return (a & f.sign_bit()) | (b & ~f.sign_bit());
}

// Orders finite values and infinities of both signs, −0 below +0.
int64_t order_of(Format f, uint64_t a) {
    const auto magnitude = static_cast<int64_t>(a & (f.sign_bit() - 1));
    return f.negative(a) ? ~magnitude : magnitude;
}
template <bool kMax>
uint64_t extreme(Format f, uint64_t a, uint64_t b, uint16_t flags) {
    if (f.is_nan(a) || f.is_nan(b)) {
        if ((flags & kFloatNan) != 0 || (f.is_nan(a) && f.is_nan(b))) return soft::nan_of(f, a, b);
        return f.is_nan(a) ? b : a;
    }
    uint64_t sign = 0;
    if ((flags & kFloatXorsign) != 0) {
        sign = (a ^ b) & f.sign_bit();
        a &= ~f.sign_bit();
        b &= ~f.sign_bit();
    }
    const bool first = kMax ? order_of(f, a) >= order_of(f, b) : order_of(f, a) <= order_of(f, b);
    return (first ? a : b) | sign;
}
template <bool kMax>
uint64_t extreme2(Format f, uint64_t a, uint64_t b, uint64_t, uint16_t flags) {
    return extreme<kMax>(f, a, b, flags);
}
template <bool kMax>
uint64_t extreme3(Format f, uint64_t a, uint64_t b, uint64_t c, uint16_t flags) {
    return extreme<kMax>(f, extreme<kMax>(f, a, b, flags), c, flags);
}

// Approximations: correctly rounded from the C library's f64 result, far within the stated error.
double widen(Format f, uint64_t a) {
    return soft::f64_of(soft::convert(f, kF64, a, Round::kNearest));
}
uint64_t narrow(Format f, double x) {
    if (std::isnan(x)) return f.canonical_nan();
    return soft::convert(kF64, f, soft::bits_of(x), Round::kNearest);
}
template <double (*F)(double)>
uint64_t approximate(Format f, uint64_t a, uint64_t, uint64_t, uint16_t) {
    return narrow(f, F(widen(f, a)));
}
double reciprocal(double x) { return 1.0 / x; }
double reciprocal_root(double x) { return x == 0 ? 1.0 / x : 1.0 / std::sqrt(x); }
double root(double x) { return std::sqrt(x); }
double sine(double x) { return std::sin(x); }
double cosine(double x) { return std::cos(x); }
double log_2(double x) { return std::log2(x); }
double exp_2(double x) { return std::exp2(x); }
double tan_h(double x) { return std::tanh(x); }

uint64_t div_full(Format f, uint64_t a, uint64_t b, uint64_t, uint16_t) {
    return soft::div(f, a, b, Round::kNearest);
}
// div.approx: a divisor beyond 2^126 underflows to zero inside.
uint64_t div_approx(Format f, uint64_t a, uint64_t b, uint64_t, uint16_t) {
    const double divisor = std::fabs(widen(f, b));
    if (divisor > 0x1p126 && std::isfinite(divisor)) {
        if (f.is_nan(a) || f.is_inf(a)) return f.canonical_nan();
        return (a ^ b) & f.sign_bit();
    }
    return soft::div(f, a, b, Round::kNearest);
}
// The f64 approximations look at and produce the upper word only.
template <double (*F)(double)>
uint64_t approximate_upper(Format f, uint64_t a, uint64_t, uint64_t, uint16_t flags) {
    const uint64_t upper = ~uint64_t{0xFFFFFFFF};
    if (f.is_nan(a)) return soft::nan_of(f, a, a) & upper;
    uint64_t x = a & upper;
    if ((flags & kFloatFtz) != 0) x = flush(f, x);
    const double r = F(soft::f64_of(x));
    return (std::isnan(r) ? f.canonical_nan() : soft::bits_of(r)) & upper;
}

// The machine's own arithmetic, for round to nearest without modifiers.
uint32_t canonical(float r) { return r != r ? 0x7FFFFFFFu : std::bit_cast<uint32_t>(r); }
uint64_t quiet(double x) { return std::bit_cast<uint64_t>(x) | uint64_t{1} << 51; }
uint64_t canonical(double r, double a, double b) {
    const uint64_t nan = a != a ? quiet(a) : b != b ? quiet(b) : 0xFFF8000000000000ull;
    return r != r ? nan : std::bit_cast<uint64_t>(r);
}
struct NativeAdd {
    static uint32_t apply(float a, float b) { return canonical(a + b); }
    static uint64_t apply(double a, double b) { return canonical(a + b, a, b); }
};
struct NativeSub {
    static uint32_t apply(float a, float b) { return canonical(a - b); }
    static uint64_t apply(double a, double b) { return canonical(a - b, a, b); }
};
struct NativeMul {
    static uint32_t apply(float a, float b) { return canonical(a * b); }
    static uint64_t apply(double a, double b) { return canonical(a * b, a, b); }
};
struct NativeDiv {
    static uint32_t apply(float a, float b) { return canonical(a / b); }
    static uint64_t apply(double a, double b) { return canonical(a / b, a, b); }
};
struct NativeFma {
    static uint32_t apply(float a, float b, float c) { return canonical(std::fma(a, b, c)); }
    static uint64_t apply(double a, double b, double c) {
        return canonical(std::fma(a, b, c), a, b != b ? b : c);
    }
};
struct NativeSqrt {
    static uint32_t apply(float a) { return canonical(std::sqrt(a)); }
    static uint64_t apply(double a) { return canonical(std::sqrt(a), a, a); }
};
struct NativeNeg {
    static uint32_t apply(float a) {
        return a != a ? 0x7FFFFFFFu : std::bit_cast<uint32_t>(a) ^ 0x80000000u;
    }
};
struct NativeAbs {
    static uint32_t apply(float a) {
        return a != a ? 0x7FFFFFFFu : std::bit_cast<uint32_t>(a) & 0x7FFFFFFFu;
    }
};
template <bool kMax>
struct NativeExtreme {
    static uint32_t apply(float a, float b) {
        const auto x = std::bit_cast<uint32_t>(a), y = std::bit_cast<uint32_t>(b);
        const uint32_t equal = kMax ? x & y : x | y;  // only the sign of zero can differ
        const uint32_t ordered = (kMax ? a > b : a < b) ? x : y;
        const uint32_t numbers = a == b ? equal : ordered;
        const uint32_t first = b != b ? x : numbers;
        const uint32_t second = a != a ? y : first;
        return a != a && b != b ? 0x7FFFFFFFu : second;
    }
};

// Half precision through f32: sums and products of f16 and bf16 round the same there and back,
// since f32 has more than twice their bits (and two more).
uint32_t narrow_half(float x) {
    const auto bits = std::bit_cast<uint32_t>(x);
    const uint32_t rest = bits & 0x7FFFFFFFu;
    if (rest >= 0x47800000u || rest < 0x38800000u) return soft::float_to_half(x);
    const uint32_t rounded = rest - 0x38000000u + 0xFFFu + (rest >> 13 & 1);
    return (bits >> 16 & 0x8000u) | rounded >> 13;
}
template <class F>
struct HalfPairs {
    static uint16_t apply(uint16_t a, uint16_t b) { return static_cast<uint16_t>(one(a, b)); }
    static uint32_t apply(uint32_t a, uint32_t b) {
        return one(a & 0xFFFF, b & 0xFFFF) | one(a >> 16, b >> 16) << 16;
    }
    static uint32_t one(uint32_t a, uint32_t b) {
        const float r = F::of(soft::half_to_float(a), soft::half_to_float(b));
        return r != r ? 0x7FFFu : narrow_half(r);
    }
};
struct PlainAdd {
    static float of(float a, float b) { return a + b; }
};
struct PlainSub {
    static float of(float a, float b) { return a - b; }
};
struct PlainMul {
    static float of(float a, float b) { return a * b; }
};

bool use(Op& op, Handler run) {
    op.run = run;
    return run != nullptr;
}
bool use_elements(Op& op, Scalar scalar) {
    op.scalar = scalar;
    op.run = run_scalar;
    return true;
}

uint16_t flags_of(const Stmt& s) {
    uint16_t flags = static_cast<uint16_t>(Round::kNearest);
    if (s.has(Mod::kRz)) flags = static_cast<uint16_t>(Round::kZero);
    if (s.has(Mod::kRm)) flags = static_cast<uint16_t>(Round::kDown);
    if (s.has(Mod::kRp)) flags = static_cast<uint16_t>(Round::kUp);
    if (s.has(Mod::kFtz)) flags |= kFloatFtz;
    if (s.has(Mod::kSat)) flags |= kFloatSat;
    if (s.has(Mod::kRelu)) flags |= kFloatRelu;
    if (s.has(Mod::kNaN)) flags |= kFloatNan;
    if (s.has(Mod::kXorsign) || s.has(Mod::kXorsignAbs)) flags |= kFloatXorsign;
    return flags;
}

// A handler when the form is plain f32 or f64 rounding to nearest.
template <class F>
Handler plain2(const Op& op) {
    if (op.sub != 0) return nullptr;
    if (op.type == Type::kF32) return each<F, uint32_t, float, float>();
    return op.type == Type::kF64 ? each<F, uint64_t, double, double>() : nullptr;
}
template <class F>
Handler plain_half(const Op& op) {
    if (op.sub != 0) return nullptr;
    if (op.type == Type::kF16) return each<HalfPairs<F>, uint16_t, uint16_t, uint16_t>();
    return op.type == Type::kF16x2 ? each<HalfPairs<F>, uint32_t, uint32_t, uint32_t>() : nullptr;
}

template <class F, class Half>
bool select_two(Op& op, Scalar scalar) {
    if (const Handler run = plain2<F>(op)) return use(op, run);
    if (const Handler run = plain_half<Half>(op)) return use(op, run);
    return use_elements(op, scalar);
}

bool select_fma(Op& op) {
    if (op.sub == 0 && op.type == Type::kF32)
        return use(op, each<NativeFma, uint32_t, float, float, float>());
    if (op.sub == 0 && op.type == Type::kF64)
        return use(op, each<NativeFma, uint64_t, double, double, double>());
    return use_elements(op, elements<fma>);
}

template <bool kMax>
bool select_extreme(Op& op) {
    if (op.sources == 3) return use_elements(op, elements<extreme3<kMax>>);
    if (op.sub == 0 && op.type == Type::kF32)
        return use(op, each<NativeExtreme<kMax>, uint32_t, float, float>());
    return use_elements(op, elements<extreme2<kMax>>);
}

bool select_div(const Stmt& s, Op& op) {
    if (op.type != Type::kF32 && op.type != Type::kF64) return false;
    if (s.has(Mod::kApprox)) return op.type == Type::kF32 && use_elements(op, elements<div_approx>);
    if (s.has(Mod::kFull)) return op.type == Type::kF32 && use_elements(op, elements<div_full>);
    if (const Handler run = plain2<NativeDiv>(op)) return use(op, run);
    return use_elements(op, elements<div>);
}

bool select_root(const Stmt& s, Op& op) {
    const bool f64 = op.type == Type::kF64;
    if (!f64 && op.type != Type::kF32) return false;
    if (s.op == Opcode::kRsqrt)
        return use_elements(op, f64 ? elements<approximate_upper<reciprocal_root>>
                                    : elements<approximate<reciprocal_root>>);
    if (s.op == Opcode::kRcp) {
        if (!s.has(Mod::kApprox)) return use_elements(op, elements<rcp>);
        return use_elements(
            op, f64 ? elements<approximate_upper<reciprocal>> : elements<approximate<reciprocal>>);
    }
    if (s.has(Mod::kApprox)) return !f64 && use_elements(op, elements<approximate<root>>);
    if (op.sub == 0)
        return use(
            op, f64 ? each<NativeSqrt, uint64_t, double>() : each<NativeSqrt, uint32_t, float>());
    return use_elements(op, elements<sqrt_exact>);
}

bool select_function(const Stmt& s, Op& op) {
    if (op.type == Type::kF64 || op.type == Type::kF32x2) return false;
    switch (s.op) {
        case Opcode::kSin:
            return op.type == Type::kF32 && use_elements(op, elements<approximate<sine>>);
        case Opcode::kCos:
            return op.type == Type::kF32 && use_elements(op, elements<approximate<cosine>>);
        case Opcode::kLg2:
            return op.type == Type::kF32 && use_elements(op, elements<approximate<log_2>>);
        case Opcode::kEx2:
            return use_elements(op, elements<approximate<exp_2>>);
        case Opcode::kTanh:
            return use_elements(op, elements<approximate<tan_h>>);
        default:
            return false;
    }
}

}  // namespace

bool select_float(const Stmt& s, Op& op) {
    op.type = s.last_type();
    op.sub = flags_of(s);
    const bool plain_f32 = op.sub == 0 && op.type == Type::kF32;
    switch (s.op) {
        case Opcode::kAdd:
            return select_two<NativeAdd, PlainAdd>(op, elements<add>);
        case Opcode::kSub:
            return select_two<NativeSub, PlainSub>(op, elements<sub>);
        case Opcode::kMul:
            return select_two<NativeMul, PlainMul>(op, elements<mul>);
        case Opcode::kFma:
        case Opcode::kMad:
            return select_fma(op);
        case Opcode::kDiv:
            return select_div(s, op);
        case Opcode::kMin:
            return select_extreme<false>(op);
        case Opcode::kMax:
            return select_extreme<true>(op);
        case Opcode::kAbs:
            return plain_f32 ? use(op, each<NativeAbs, uint32_t, float>())
                             : use_elements(op, elements<abs_bits>);
        case Opcode::kNeg:
            return plain_f32 ? use(op, each<NativeNeg, uint32_t, float>())
                             : use_elements(op, elements<neg_bits>);
        case Opcode::kCopysign:
            return use_elements(op, elements<copysign_bits>);
        case Opcode::kRcp:
        case Opcode::kSqrt:
        case Opcode::kRsqrt:
            return select_root(s, op);
        default:
            return select_function(s, op);
    }
}

}  // namespace ttt::ptx::exec
