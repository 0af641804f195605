// cvt and cvt.pack.
#include <algorithm>
#include <optional>

#include "ptx/exec_float.h"
#include "ptx/exec_lanes.h"
#include "ptx/float_soft.h"

namespace ttt::ptx::exec {
namespace {

using soft::Format;
using soft::kBF16;
using soft::kF16;
using soft::kF32;
using soft::kF64;
using soft::Round;

// Op::sub of conversions: FloatBits, with these besides.
enum : uint16_t { kSatFinite = 256 };

Format format_of(Type t) {
    switch (t) {
        case Type::kF16:
        case Type::kF16x2:
            return kF16;
        case Type::kBF16:
        case Type::kBF16x2:
            return kBF16;
        case Type::kTF32:
            return soft::kTF32;
        case Type::kF64:
            return kF64;
        default:
            return kF32;
    }
}

int64_t sign_extended(uint64_t x, uint32_t bits) {
    return static_cast<int64_t>(x << (64 - bits)) >> (64 - bits);
}
uint64_t zero_extended(uint64_t x, uint32_t bits) {
    return bits == 64 ? x : x & ((uint64_t{1} << bits) - 1);
}

// The register takes the value extended by the operation type's own sign.
uint64_t as_register(Type t, uint64_t x) {
    const uint32_t bits = bit_size(t);
    return is_signed(t) ? static_cast<uint64_t>(sign_extended(x, bits)) : zero_extended(x, bits);
}

uint64_t top_of(Type t) { return ~uint64_t{0} >> (64 - bit_size(t) + (is_signed(t) ? 1 : 0)); }

uint64_t clamped(Type t, bool negative, bool huge, uint64_t magnitude) {
    const uint64_t top = top_of(t);
    if (!negative) return huge || magnitude > top ? top : magnitude;
    if (!is_signed(t)) return 0;
    return ~(huge || magnitude > top + 1 ? top + 1 : magnitude) + 1;
}

uint64_t integer_to_integer(const uint64_t* s, const Op& op) {
    const uint32_t bits = bit_size(op.type2);
    const bool negative = is_signed(op.type2) && sign_extended(s[0], bits) < 0;
    const uint64_t value = is_signed(op.type2) ? static_cast<uint64_t>(sign_extended(s[0], bits))
                                               : zero_extended(s[0], bits);
    if ((op.sub & kFloatSat) == 0) return as_register(op.type, value);
    return as_register(op.type, clamped(op.type, negative, false, negative ? ~value + 1 : value));
}

Round mode_of(const Op& op) { return static_cast<Round>(op.sub & kFloatRound); }

uint64_t flush(Format f, uint64_t a) { return f.is_subnormal(a) ? a & f.sign_bit() : a; }

uint64_t one_of(Format f) { return static_cast<uint64_t>(f.bias()) << f.mantissa_bits; }

uint64_t finish(Format f, uint64_t r, const Op& op) {
    // Only f32 has a flush mode in conversions.
    if ((op.sub & kFloatFtz) != 0 && f.mantissa_bits == 23) r = flush(f, r);
    if ((op.sub & kFloatSat) != 0) {
        if (f.is_nan(r) || f.negative(r)) return 0;
        return std::min(r, one_of(f));
    }
    if ((op.sub & kFloatRelu) != 0 && !f.is_nan(r) && f.negative(r)) return 0;
    if ((op.sub & kSatFinite) != 0 && f.is_inf(r)) return r - 1;
    return r;
}

uint64_t integer_to_float(const uint64_t* s, const Op& op) {
    const uint32_t bits = bit_size(op.type2);
    const Format f = format_of(op.type);
    bool negative = false;
    uint64_t magnitude = zero_extended(s[0], bits);
    if (is_signed(op.type2)) {
        const int64_t value = sign_extended(s[0], bits);
        negative = value < 0;
        magnitude = negative ? ~static_cast<uint64_t>(value) + 1 : static_cast<uint64_t>(value);
    }
    return finish(f, soft::from_integer(f, negative, magnitude, mode_of(op)), op);
}

uint64_t source_bits(Format f, uint64_t a, const Op& op) {
    return (op.sub & kFloatFtz) != 0 && f.mantissa_bits == 23 ? flush(f, a) : a;
}

uint64_t float_to_integer(const uint64_t* s, const Op& op) {
    const Format f = format_of(op.type2);
    const uint64_t a = source_bits(f, zero_extended(s[0], bit_size(op.type2)), op);
    if (f.is_nan(a)) {
        const bool wide = op.type2 == Type::kF64 || bit_size(op.type) == 64;
        return as_register(op.type, wide ? uint64_t{1} << (bit_size(op.type) - 1) : 0);
    }
    const soft::Integer n = soft::to_integer(f, a, mode_of(op));
    return as_register(
        op.type, clamped(op.type, n.negative && (n.huge || n.magnitude != 0), n.huge, n.magnitude));
}

uint64_t float_to_float(const uint64_t* s, const Op& op) {
    const Format from = format_of(op.type2), to = format_of(op.type);
    const uint64_t a = source_bits(from, zero_extended(s[0], bit_size(op.type2)), op);
    return finish(to, soft::convert(from, to, a, mode_of(op)), op);
}

// cvt.rni.f32.f32 and friends.
uint64_t to_integral(const uint64_t* s, const Op& op) {
    const Format f = format_of(op.type);
    return finish(f, soft::round_to_integral(f, source_bits(f, s[0], op), mode_of(op)), op);
}

// tf32 lives in a 32-bit register, its low 13 bits zero. A NaN is only cut (measured on an H200):
// one whose payload lies below becomes an infinity.
uint64_t to_tf32(const uint64_t* s, const Op& op) {
    if (kF32.is_nan(s[0])) return s[0] & ~uint64_t{0x1FFF};
    const uint64_t r = soft::convert(kF32, soft::kTF32, s[0], mode_of(op));
    return finish(soft::kTF32, r, op) << 13;
}

// cvt.rn.f16x2.f32 d, a, b: a goes to the upper half.
uint64_t pair_from_f32(const uint64_t* s, const Op& op) {
    const Format f = format_of(op.type);
    uint64_t halves[2];
    for (int i = 0; i < 2; ++i) {
        const uint64_t a = source_bits(kF32, s[i], op);
        uint64_t r = soft::convert(kF32, f, a, mode_of(op));
        halves[i] = finish(f, r, op);
    }
    return halves[0] << 16 | halves[1];
}

// The 8-bit formats: e5m2 is the upper byte of f16; e4m3 has no infinity and one NaN per sign. Only
// .satfinite forms.
constexpr Format kE5M2{5, 2}, kE4M3{4, 3};
uint64_t to_byte(bool e5m2, Format from, uint64_t a, bool relu) {
    if (from.is_nan(a)) return 0x7F;
    if (relu && from.negative(a)) return 0;
    const uint64_t sign = from.negative(a) ? 0x80 : 0;
    const uint64_t largest = e5m2 ? 0x7B : 0x7E;
    if (from.is_inf(a)) return sign | largest;
    const uint64_t magnitude = a & (from.sign_bit() - 1);
    if (from.is_zero(a)) return sign;
    if (e5m2)
        return sign |
               std::min(soft::pack(kE5M2, soft::unpack(from, magnitude), Round::kNearest), largest);
    // e4m3 uses the exponent that IEEE reserves: round as if one exponent bit more, then rebias.
    constexpr Format kWide{5, 3};
    const soft::Value v = soft::unpack(from, magnitude);
    const uint64_t narrow = soft::pack(kE4M3, v, Round::kNearest);
    if (narrow < kE4M3.infinity() - 1) return sign | narrow;
    const uint64_t wide = soft::pack(kWide, v, Round::kNearest);
    if (kWide.is_inf(wide)) return sign | largest;
    const uint64_t rebias = static_cast<uint64_t>(kWide.bias() - kE4M3.bias()) << 3;
    return sign | std::min(wide - rebias, largest);
}
uint64_t half_of_byte(bool e5m2, uint64_t b) {
    if (e5m2) return kE5M2.is_nan(b & 0xFF) ? 0x7FFF : (b & 0xFF) << 8;
    const uint64_t sign = (b & 0x80) << 8, rest = b & 0x7F;
    if (rest == 0x7F) return 0x7FFF;
    if (rest == 0) return sign;
    if (rest >= 8) return sign | ((rest + (uint64_t{8} << 3)) << 7);
    return sign | soft::pack(kF16, {false, -9, rest}, Round::kNearest);
}
// Op::imm: 1 for e5m2.
uint64_t bytes_from_f32(const uint64_t* s, const Op& op) {
    const bool relu = (op.sub & kFloatRelu) != 0;
    return to_byte(op.imm == 1, kF32, s[0], relu) << 8 | to_byte(op.imm == 1, kF32, s[1], relu);
}
uint64_t bytes_from_half(const uint64_t* s, const Op& op) {
    const bool relu = (op.sub & kFloatRelu) != 0;
    return to_byte(op.imm == 1, kF16, s[0] >> 16 & 0xFFFF, relu) << 8 |
           to_byte(op.imm == 1, kF16, s[0] & 0xFFFF, relu);
}
uint64_t half_from_bytes(const uint64_t* s, const Op& op) {
    uint64_t halves[2] = {half_of_byte(op.imm == 1, s[0]), half_of_byte(op.imm == 1, s[0] >> 8)};
    for (uint64_t& h : halves) h = finish(kF16, h, op);
    return halves[1] << 16 | halves[0];
}

// cvt.pack.sat.{u16,s16}.s32 d, a, b and cvt.pack.sat.{u8,s8,…}.s32.b32 d, a, b, c: c's low part
// moves up.
uint64_t pack(const uint64_t* s, const Op& op) {
    const uint32_t bits = bit_size(op.type);
    uint64_t out = op.sources == 3 && bits < 16 ? s[2] << (2 * bits) : 0;
    for (uint32_t i = 0; i < 2; ++i) {
        const auto value = static_cast<int32_t>(static_cast<uint32_t>(s[1 - i]));
        const uint64_t magnitude =
            value < 0 ? 0 - static_cast<uint64_t>(int64_t{value}) : static_cast<uint64_t>(value);
        out |= zero_extended(clamped(op.type, value < 0, false, magnitude), bits) << (i * bits);
    }
    return out & 0xFFFFFFFF;
}

// Fast forms.
struct Extend {
    static uint64_t apply(uint32_t x) { return x; }
    static int64_t apply(int32_t x) { return x; }
};
struct Truncate {
    static uint32_t apply(uint64_t x) { return static_cast<uint32_t>(x); }
};
struct ToFloat {
    static float apply(int32_t x) { return static_cast<float>(x); }
    static float apply(uint32_t x) { return static_cast<float>(x); }
};
struct HalfToFloat {
    static float apply(uint16_t x) { return soft::half_to_float(x); }
};
struct FloatToHalf {
    static uint16_t apply(uint32_t x) {
        const uint32_t rest = x & 0x7FFFFFFFu;
        if (rest >= 0x47800000u || rest < 0x38800000u)
            return static_cast<uint16_t>(soft::float_to_half(std::bit_cast<float>(x)));
        const uint32_t rounded = rest - 0x38000000u + 0xFFFu + (rest >> 13 & 1);
        return static_cast<uint16_t>((x >> 16 & 0x8000u) | rounded >> 13);
    }
};
struct Widen {
    static uint64_t apply(uint32_t x) {
        const float f = std::bit_cast<float>(x);
        return f != f ? soft::convert(kF32, kF64, x, Round::kNearest)
                      : std::bit_cast<uint64_t>(static_cast<double>(f));
    }
};

Handler fast_form(const Op& op) {
    const auto widths = [&](Width d, Width s) {
        return op.dst[0].width == d && op.src[0].width == s;
    };
    const uint32_t to = bit_size(op.type), from = bit_size(op.type2);
    if (op.sub != 0) return nullptr;
    if (!is_float(op.type) && !is_float(op.type2)) {
        if (to == 64 && op.type2 == Type::kU32 && widths(Width::kLong, Width::kWord))
            return each<Extend, uint64_t, uint32_t>();
        if (to == 64 && op.type2 == Type::kS32 && widths(Width::kLong, Width::kWord))
            return each<Extend, int64_t, int32_t>();
        if (to == 32 && from == 64 && widths(Width::kWord, Width::kLong))
            return each<Truncate, uint32_t, uint64_t>();
        return nullptr;
    }
    if (op.type == Type::kF32 && widths(Width::kWord, Width::kWord)) {
        if (op.type2 == Type::kS32) return each<ToFloat, float, int32_t>();
        if (op.type2 == Type::kU32) return each<ToFloat, float, uint32_t>();
    }
    if (op.type == Type::kF32 && op.type2 == Type::kF16 && widths(Width::kWord, Width::kHalf))
        return each<HalfToFloat, float, uint16_t>();
    if (op.type == Type::kF16 && op.type2 == Type::kF32 && widths(Width::kHalf, Width::kWord))
        return each<FloatToHalf, uint16_t, uint32_t>();
    if (op.type == Type::kF64 && op.type2 == Type::kF32 && widths(Width::kLong, Width::kWord))
        return each<Widen, uint64_t, uint32_t>();
    return nullptr;
}

uint16_t flags_of(const Stmt& s) {
    static constexpr std::pair<Mod, Round> kModes[] = {
        {Mod::kRz, Round::kZero},        {Mod::kRzi, Round::kZero}, {Mod::kRm, Round::kDown},
        {Mod::kRmi, Round::kDown},       {Mod::kRp, Round::kUp},    {Mod::kRpi, Round::kUp},
        {Mod::kRna, Round::kNearestAway}};
    uint16_t flags = 0;
    for (const auto& [mod, mode] : kModes)
        if (s.has(mod)) flags = static_cast<uint16_t>(mode);
    if (s.has(Mod::kFtz)) flags |= kFloatFtz;
    if (s.has(Mod::kSat)) flags |= kFloatSat;
    if (s.has(Mod::kRelu)) flags |= kFloatRelu;
    if (s.has(Mod::kSatfinite)) flags |= kSatFinite;
    return flags;
}

bool use_scalar(Op& op, Scalar scalar) {
    op.scalar = scalar;
    op.run = run_scalar;
    return true;
}

bool to_whole_number(const Stmt& s) {
    return s.has(Mod::kRni) || s.has(Mod::kRzi) || s.has(Mod::kRmi) || s.has(Mod::kRpi);
}

bool is_number(Type t) { return t != Type::kNone && t != Type::kPred && bit_size(t) <= 64; }

// Conversions between the 8-bit formats and wider ones; nullopt when the statement is none.
std::optional<bool> select_bytes(const Stmt& s, Op& op) {
    const bool e4m3 = s.has(Mod::kE4m3x2), e5m2 = s.has(Mod::kE5m2x2);
    if (!e4m3 && !e5m2) return std::nullopt;
    op.imm = e5m2 ? 1 : 0;
    const Mod first = s.has(Mod::kE4m3x2) ? Mod::kE4m3x2 : Mod::kE5m2x2;
    bool narrow = true;  // the byte format comes before the other type when it is the destination
    for (uint8_t i = 0; i < s.mod_count; ++i) {
        if (s.mods[i] == first) break;
        if (type_of(s.mods[i]) != Type::kNone) narrow = false;
    }
    const Type other = s.last_type();
    if (!narrow) return other == Type::kF16x2 && use_scalar(op, half_from_bytes);
    if (!s.has(Mod::kSatfinite)) return false;
    if (other == Type::kF32) return op.sources == 2 && use_scalar(op, bytes_from_f32);
    return other == Type::kF16x2 && use_scalar(op, bytes_from_half);
}

bool select_pack(const Stmt& s, Op& op) {
    op.type = s.type(0);
    if (s.type(1) != Type::kS32) return false;
    return (op.sources == 2 || op.sources == 3) && bit_size(op.type) <= 16 && use_scalar(op, pack);
}

}  // namespace

bool select_convert(const Stmt& s, Op& op) {
    if (s.has(Mod::kPack)) return select_pack(s, op);
    op.sub = flags_of(s);
    if (const auto done = select_bytes(s, op)) return *done;
    op.type = s.type(0);
    op.type2 = s.type(1);
    if (!is_number(op.type) || !is_number(op.type2)) return false;
    if (op.type == Type::kTF32) return op.type2 == Type::kF32 && use_scalar(op, to_tf32);
    if (op.type == Type::kF16x2 || op.type == Type::kBF16x2)
        return op.type2 == Type::kF32 && op.sources == 2 && use_scalar(op, pair_from_f32);
    if (op.sources != 1) return false;
    const bool whole = to_whole_number(s);
    if (is_float(op.type) && is_float(op.type2) && whole)
        return op.type == op.type2 && use_scalar(op, to_integral);
    if (const Handler run = fast_form(op)) {
        op.run = run;
        return true;
    }
    if (is_float(op.type))
        return use_scalar(op, is_float(op.type2) ? float_to_float : integer_to_float);
    return use_scalar(op, is_float(op.type2) ? float_to_integer : integer_to_integer);
}

}  // namespace ttt::ptx::exec
