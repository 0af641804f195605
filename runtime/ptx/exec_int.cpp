// Integer arithmetic, logic and shifts.
#include "ptx/exec_int.h"

#include <algorithm>
#include <type_traits>

#include "ptx/exec_lanes.h"

namespace ttt::ptx::exec {
namespace {

// Arithmetic wraps: computed in an unsigned type at least as wide as int.
template <typename T>
constexpr auto wide_of(T x) {
    if constexpr (sizeof(T) == 8)
        return static_cast<uint64_t>(x);
    else
        return static_cast<uint32_t>(x);
}

struct Add {
    template <typename T>
    static T apply(T a, T b) {
        return static_cast<T>(wide_of(a) + wide_of(b));
    }
};
struct Sub {
    template <typename T>
    static T apply(T a, T b) {
        return static_cast<T>(wide_of(a) - wide_of(b));
    }
};
struct MulLo {
    template <typename T>
    static T apply(T a, T b) {
        return static_cast<T>(wide_of(a) * wide_of(b));
    }
};
template <typename T>
T mul_high(T a, T b) {
    if constexpr (sizeof(T) == 8) {
        if constexpr (std::is_signed_v<T>)
            return static_cast<T>((__int128{a} * b) >> 64);
        else
            return static_cast<T>((static_cast<unsigned __int128>(a) * b) >> 64);
    } else {
        // For 16 bits exactly twice the width: from 64 bits g++ 12's vectoriser takes the unsigned
        // high part.
        using Twice = std::conditional_t<sizeof(T) == 2, int32_t, int64_t>;
        using W = std::conditional_t<std::is_signed_v<T>, Twice, std::make_unsigned_t<Twice>>;
        return static_cast<T>((W{a} * W{b}) >> (8 * sizeof(T)));
    }
}
struct MulHi {
    template <typename T>
    static T apply(T a, T b) {
        return mul_high(a, b);
    }
};
struct MadLo {
    template <typename T>
    static T apply(T a, T b, T c) {
        return static_cast<T>(wide_of(a) * wide_of(b) + wide_of(c));
    }
};
struct MadHi {
    template <typename T>
    static T apply(T a, T b, T c) {
        return Add::apply<T>(mul_high(a, b), c);
    }
};
template <typename W>
struct Wide {
    template <typename T>
    static W apply(T a, T b) {
        return static_cast<W>(W{a} * W{b});
    }
    template <typename T>
    static W apply(T a, T b, W c) {
        return Add::apply<W>(static_cast<W>(W{a} * W{b}), c);
    }
};
// The machine's own long division answers all ones for a zero divisor, quotient and remainder
// alike.
struct Div {
    template <typename T>
    static T apply(T a, T b) {
        if (b == 0) return static_cast<T>(~T{0});
        if constexpr (std::is_signed_v<T>)
            if (b == -1) return static_cast<T>(0 - wide_of(a));
        return static_cast<T>(a / b);
    }
};
struct Rem {
    template <typename T>
    static T apply(T a, T b) {
        if (b == 0) return static_cast<T>(~T{0});
        if constexpr (std::is_signed_v<T>)
            if (b == -1) return 0;
        return static_cast<T>(a % b);
    }
};
struct Min {
    template <typename T>
    static T apply(T a, T b) {
        return b < a ? b : a;
    }
};
struct Max {
    template <typename T>
    static T apply(T a, T b) {
        return a < b ? b : a;
    }
};
struct MinRelu {
    static int32_t apply(int32_t a, int32_t b) { return std::max(std::min(a, b), 0); }
};
struct MaxRelu {
    static int32_t apply(int32_t a, int32_t b) { return std::max(std::max(a, b), 0); }
};
struct Neg {
    template <typename T>
    static T apply(T a) {
        return static_cast<T>(0 - wide_of(a));
    }
};
struct Abs {
    template <typename T>
    static T apply(T a) {
        return a < 0 ? static_cast<T>(0 - wide_of(a)) : a;
    }
};
struct And {
    template <typename T>
    static T apply(T a, T b) {
        return static_cast<T>(a & b);
    }
};
struct Or {
    template <typename T>
    static T apply(T a, T b) {
        return static_cast<T>(a | b);
    }
};
struct Xor {
    template <typename T>
    static T apply(T a, T b) {
        return static_cast<T>(a ^ b);
    }
};
struct Not {
    template <typename T>
    static T apply(T a) {
        return static_cast<T>(~a);
    }
};
struct Cnot {
    template <typename T>
    static T apply(T a) {
        return a == 0 ? 1 : 0;
    }
};
struct Shl {
    template <typename T>
    static T apply(T a, uint32_t by) {
        return by >= 8 * sizeof(T) ? T{0} : static_cast<T>(wide_of(a) << by);
    }
};
struct Shr {
    template <typename T>
    static T apply(T a, uint32_t by) {
        constexpr uint32_t kBits = 8 * sizeof(T);
        if constexpr (std::is_signed_v<T>)
            return static_cast<T>(a >> (by < kBits ? by : kBits - 1));
        return by >= kBits ? T{0} : static_cast<T>(a >> by);
    }
};

// Saturating and mixed forms, one lane at a time.
int32_t clamp32(int64_t x) {
    return static_cast<int32_t>(std::clamp<int64_t>(x, INT32_MIN, INT32_MAX));
}
int64_t as_s32(uint64_t x) { return static_cast<int32_t>(static_cast<uint32_t>(x)); }
uint64_t low32(int64_t x) { return static_cast<uint32_t>(x); }

uint64_t add_sat(const uint64_t* s, const Op&) {
    return low32(clamp32(as_s32(s[0]) + as_s32(s[1])));
}
uint64_t sub_sat(const uint64_t* s, const Op&) {
    return low32(clamp32(as_s32(s[0]) - as_s32(s[1])));
}
uint64_t mad_hi_sat(const uint64_t* s, const Op&) {
    return low32(clamp32(((as_s32(s[0]) * as_s32(s[1])) >> 32) + as_s32(s[2])));
}
template <typename T>
uint64_t sad(const uint64_t* s, const Op&) {
    const auto a = static_cast<T>(s[0]), b = static_cast<T>(s[1]);
    const uint64_t apart =
        a < b ? uint64_t{wide_of(b)} - wide_of(a) : uint64_t{wide_of(a)} - wide_of(b);
    return apart + s[2];
}

// mul24/mad24 take the low 24 bits; .hi gives bits 47..16 of the product.
template <bool kSigned>
uint64_t product24(const uint64_t* s, const Op& op) {
    uint64_t product;
    if constexpr (kSigned) {
        const int64_t a = static_cast<int32_t>(static_cast<uint32_t>(s[0]) << 8) >> 8;
        const int64_t b = static_cast<int32_t>(static_cast<uint32_t>(s[1]) << 8) >> 8;
        product = static_cast<uint64_t>((a * b) >> (op.sub == 1 ? 16 : 0));
    } else {
        product = ((s[0] & 0xFFFFFF) * (s[1] & 0xFFFFFF)) >> (op.sub == 1 ? 16 : 0);
    }
    return product & 0xFFFFFFFF;
}
template <bool kSigned>
uint64_t mad24(const uint64_t* s, const Op& op) {
    const uint64_t product = product24<kSigned>(s, op);
    if (op.sub2 == 1) return low32(clamp32(as_s32(product) + as_s32(s[2])));
    return product + s[2];
}

// Two 16-bit values in a word.
template <class F, typename T>
uint64_t pair16(const uint64_t* s, const Op&) {
    uint64_t out = 0;
    for (uint32_t h = 0; h < 2; ++h) {
        const auto a = static_cast<T>(s[0] >> (16 * h) & 0xFFFF),
                   b = static_cast<T>(s[1] >> (16 * h) & 0xFFFF);
        out |= uint64_t{static_cast<uint16_t>(F::template apply<T>(a, b))} << (16 * h);
    }
    return out;
}
template <class F>
uint64_t pair16_relu(const uint64_t* s, const Op&) {
    uint64_t out = 0;
    for (uint32_t h = 0; h < 2; ++h) {
        const auto a = static_cast<int16_t>(s[0] >> (16 * h) & 0xFFFF),
                   b = static_cast<int16_t>(s[1] >> (16 * h) & 0xFFFF);
        out |=
            uint64_t{static_cast<uint16_t>(std::max<int16_t>(F::template apply<int16_t>(a, b), 0))}
            << (16 * h);
    }
    return out;
}

// Chains through the condition code: sub bits say which operation, and whether the carry is read
// and written.
template <typename U>
void run_carry(Context& c, const Op& op, uint32_t mask) {
    using W = unsigned __int128;
    const uint32_t carry_in = (op.sub & kCarryIn) != 0 ? c.predicate(c.code->carry) : 0;
    uint32_t carry_out = 0;
    for_lanes(mask, [&](uint32_t i) {
        const W cin = carry_in >> i & 1;
        W a = static_cast<U>(c.lane(op.src[0], i)), b = static_cast<U>(c.lane(op.src[1], i));
        if ((op.sub & kCarryMul) != 0) {
            using S = std::make_signed_t<U>;
            const U high = (op.sub & kCarrySigned) != 0
                               ? static_cast<U>(mul_high<S>(static_cast<S>(static_cast<U>(a)),
                                                            static_cast<S>(static_cast<U>(b))))
                               : mul_high<U>(static_cast<U>(a), static_cast<U>(b));
            a = (op.sub & kCarryHigh) != 0 ? high : static_cast<U>(a * b);
            b = static_cast<U>(c.lane(op.src[2], i));
        }
        const W sum = (op.sub & kCarrySub) != 0 ? a - b - cin : a + b + cin;
        carry_out |= static_cast<uint32_t>((sum >> (8 * sizeof(U))) & 1) << i;
        c.set_lane(op.dst[0], i, static_cast<U>(sum));
    });
    if ((op.sub & kCarryOut) != 0) c.set_predicate(c.code->carry, carry_out, mask);
}

template <class F>
Handler by_type(Type type) {
    switch (type) {
        case Type::kU16:
        case Type::kB16:
            return each<F, uint16_t, uint16_t, uint16_t>();
        case Type::kS16:
            return each<F, int16_t, int16_t, int16_t>();
        case Type::kU32:
        case Type::kB32:
            return each<F, uint32_t, uint32_t, uint32_t>();
        case Type::kS32:
            return each<F, int32_t, int32_t, int32_t>();
        case Type::kU64:
        case Type::kB64:
            return each<F, uint64_t, uint64_t, uint64_t>();
        case Type::kS64:
            return each<F, int64_t, int64_t, int64_t>();
        default:
            return nullptr;
    }
}
// Operations that do not care about signs.
template <class F>
Handler by_size(Type type) {
    switch (bit_size(type)) {
        case 16:
            return each<F, uint16_t, uint16_t, uint16_t>();
        case 32:
            return each<F, uint32_t, uint32_t, uint32_t>();
        case 64:
            return each<F, uint64_t, uint64_t, uint64_t>();
        default:
            return nullptr;
    }
}
template <class F>
Handler unary_by_size(Type type) {
    switch (bit_size(type)) {
        case 16:
            return each<F, uint16_t, uint16_t>();
        case 32:
            return each<F, uint32_t, uint32_t>();
        case 64:
            return each<F, uint64_t, uint64_t>();
        default:
            return nullptr;
    }
}
template <class F>
Handler unary_signed(Type type) {
    switch (bit_size(type)) {
        case 16:
            return each<F, int16_t, int16_t>();
        case 32:
            return each<F, int32_t, int32_t>();
        case 64:
            return each<F, int64_t, int64_t>();
        default:
            return nullptr;
    }
}
template <class F>
Handler shift(Type type) {
    switch (type) {
        case Type::kU16:
        case Type::kB16:
            return each<F, uint16_t, uint16_t, uint32_t>();
        case Type::kS16:
            return each<F, int16_t, int16_t, uint32_t>();
        case Type::kU32:
        case Type::kB32:
            return each<F, uint32_t, uint32_t, uint32_t>();
        case Type::kS32:
            return each<F, int32_t, int32_t, uint32_t>();
        case Type::kU64:
        case Type::kB64:
            return each<F, uint64_t, uint64_t, uint32_t>();
        case Type::kS64:
            return each<F, int64_t, int64_t, uint32_t>();
        default:
            return nullptr;
    }
}
template <class F>
Handler three(Type type) {
    switch (type) {
        case Type::kU16:
            return each<F, uint16_t, uint16_t, uint16_t, uint16_t>();
        case Type::kS16:
            return each<F, int16_t, int16_t, int16_t, int16_t>();
        case Type::kU32:
            return each<F, uint32_t, uint32_t, uint32_t, uint32_t>();
        case Type::kS32:
            return each<F, int32_t, int32_t, int32_t, int32_t>();
        case Type::kU64:
            return each<F, uint64_t, uint64_t, uint64_t, uint64_t>();
        case Type::kS64:
            return each<F, int64_t, int64_t, int64_t, int64_t>();
        default:
            return nullptr;
    }
}

bool use(Op& op, Handler run) {
    op.run = run;
    return run != nullptr;
}
bool use_scalar(Op& op, Scalar scalar) {
    op.scalar = scalar;
    op.run = scalar != nullptr ? run_scalar : nullptr;
    return scalar != nullptr;
}

bool carry_chain(const Stmt& s, Op& op, uint16_t bits) {
    const Type t = s.last_type();
    const bool wide = bit_size(t) == 64;
    if (bit_size(t) != 32 && !wide) return false;
    if (s.has(Mod::kCc)) bits |= kCarryOut;
    if (s.has(Mod::kHi)) bits |= kCarryHigh;
    if (is_signed(t)) bits |= kCarrySigned;
    op.sub = bits;
    return use(op, wide ? Handler{run_carry<uint64_t>} : Handler{run_carry<uint32_t>});
}

bool select_add(const Stmt& s, Op& op, bool subtract) {
    const Type t = s.last_type();
    if (s.has(Mod::kCc)) return carry_chain(s, op, subtract ? kCarrySub : 0);
    if (s.has(Mod::kSat)) return t == Type::kS32 && use_scalar(op, subtract ? sub_sat : add_sat);
    if (t == Type::kU16x2 || t == Type::kS16x2)
        return use_scalar(op, subtract ? pair16<Sub, uint16_t> : pair16<Add, uint16_t>);
    return use(op, subtract ? by_size<Sub>(t) : by_size<Add>(t));
}

Handler wide_product(Type t, bool add) {
    switch (t) {
        case Type::kU16:
            return add ? each<Wide<uint32_t>, uint32_t, uint16_t, uint16_t, uint32_t>()
                       : each<Wide<uint32_t>, uint32_t, uint16_t, uint16_t>();
        case Type::kS16:
            return add ? each<Wide<int32_t>, int32_t, int16_t, int16_t, int32_t>()
                       : each<Wide<int32_t>, int32_t, int16_t, int16_t>();
        case Type::kU32:
            return add ? each<Wide<uint64_t>, uint64_t, uint32_t, uint32_t, uint64_t>()
                       : each<Wide<uint64_t>, uint64_t, uint32_t, uint32_t>();
        case Type::kS32:
            return add ? each<Wide<int64_t>, int64_t, int32_t, int32_t, int64_t>()
                       : each<Wide<int64_t>, int64_t, int32_t, int32_t>();
        default:
            return nullptr;
    }
}

bool select_mul(const Stmt& s, Op& op, bool add) {
    const Type t = s.last_type();
    if (s.has(Mod::kCc)) return add && carry_chain(s, op, kCarryMul);
    if (s.has(Mod::kWide)) return use(op, wide_product(t, add));
    if (s.has(Mod::kHi)) {
        if (s.has(Mod::kSat)) return add && t == Type::kS32 && use_scalar(op, mad_hi_sat);
        return use(op, add ? three<MadHi>(t) : by_type<MulHi>(t));
    }
    if (!s.has(Mod::kLo)) return false;
    if (!add) return use(op, by_size<MulLo>(t));
    switch (bit_size(t)) {
        case 16:
            return use(op, three<MadLo>(Type::kU16));
        case 32:
            return use(op, three<MadLo>(Type::kU32));
        case 64:
            return use(op, three<MadLo>(Type::kU64));
        default:
            return false;
    }
}

bool select_mul24(const Stmt& s, Op& op, bool add) {
    const Type t = s.last_type();
    if (t != Type::kU32 && t != Type::kS32) return false;
    op.sub = s.has(Mod::kHi) ? 1 : 0;
    op.sub2 = s.has(Mod::kSat) ? 1 : 0;
    if (add) return use_scalar(op, t == Type::kS32 ? mad24<true> : mad24<false>);
    return use_scalar(op, t == Type::kS32 ? product24<true> : product24<false>);
}

template <class F, class FRelu>
bool select_min(const Stmt& s, Op& op) {
    const Type t = s.last_type();
    const bool relu = s.has(Mod::kRelu);
    if (t == Type::kU16x2) return !relu && use_scalar(op, pair16<F, uint16_t>);
    if (t == Type::kS16x2) return use_scalar(op, relu ? pair16_relu<F> : pair16<F, int16_t>);
    if (relu) return t == Type::kS32 && use(op, each<FRelu, int32_t, int32_t, int32_t>());
    return use(op, by_type<F>(t));
}

bool select_sad(Type t, Op& op) {
    switch (t) {
        case Type::kU16:
            return use_scalar(op, sad<uint16_t>);
        case Type::kS16:
            return use_scalar(op, sad<int16_t>);
        case Type::kU32:
            return use_scalar(op, sad<uint32_t>);
        case Type::kS32:
            return use_scalar(op, sad<int32_t>);
        case Type::kU64:
            return use_scalar(op, sad<uint64_t>);
        case Type::kS64:
            return use_scalar(op, sad<int64_t>);
        default:
            return false;
    }
}

uint64_t and_pred(const uint64_t* s, const Op&) { return s[0] & s[1]; }
uint64_t or_pred(const uint64_t* s, const Op&) { return s[0] | s[1]; }
uint64_t xor_pred(const uint64_t* s, const Op&) { return s[0] ^ s[1]; }
uint64_t not_pred(const uint64_t* s, const Op&) { return s[0] ^ 1; }

bool select_logic(const Stmt& s, Op& op) {
    const Type t = s.last_type();
    const bool pred = t == Type::kPred;
    switch (s.op) {
        case Opcode::kAnd:
            return pred ? use_scalar(op, and_pred) : use(op, by_size<And>(t));
        case Opcode::kOr:
            return pred ? use_scalar(op, or_pred) : use(op, by_size<Or>(t));
        case Opcode::kXor:
            return pred ? use_scalar(op, xor_pred) : use(op, by_size<Xor>(t));
        case Opcode::kNot:
            return pred ? use_scalar(op, not_pred) : use(op, unary_by_size<Not>(t));
        default:
            return use(op, unary_by_size<Cnot>(t));
    }
}

}  // namespace

bool select_integer(const Stmt& s, Op& op) {
    const Type t = s.last_type();
    switch (s.op) {
        case Opcode::kAdd:
            return select_add(s, op, false);
        case Opcode::kSub:
            return select_add(s, op, true);
        case Opcode::kAddc:
            return carry_chain(s, op, kCarryIn);
        case Opcode::kSubc:
            return carry_chain(s, op, kCarryIn | kCarrySub);
        case Opcode::kMadc:
            return carry_chain(s, op, kCarryIn | kCarryMul);
        case Opcode::kMul:
            return select_mul(s, op, false);
        case Opcode::kMad:
            return select_mul(s, op, true);
        case Opcode::kMul24:
            return select_mul24(s, op, false);
        case Opcode::kMad24:
            return select_mul24(s, op, true);
        case Opcode::kSad:
            return select_sad(t, op);
        case Opcode::kDiv:
            return use(op, by_type<Div>(t));
        case Opcode::kRem:
            return use(op, by_type<Rem>(t));
        case Opcode::kMin:
            return select_min<Min, MinRelu>(s, op);
        case Opcode::kMax:
            return select_min<Max, MaxRelu>(s, op);
        case Opcode::kNeg:
            return use(op, unary_by_size<Neg>(t));
        case Opcode::kAbs:
            return use(op, unary_signed<Abs>(t));
        case Opcode::kAnd:
        case Opcode::kOr:
        case Opcode::kXor:
        case Opcode::kNot:
        case Opcode::kCnot:
            return select_logic(s, op);
        case Opcode::kShl:
            return use(op, shift<Shl>(is_signed(t) ? Type::kNone : t));
        case Opcode::kShr:
            return use(op, shift<Shr>(t));
        default:
            return select_bits(s, op);
    }
}

}  // namespace ttt::ptx::exec
