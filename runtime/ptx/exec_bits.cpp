// Instructions on bits and bytes of a register: bit fields, counts, permutations, dot products.
#include <algorithm>
#include <bit>
#include <type_traits>

#include "ptx/exec_int.h"
#include "ptx/exec_state.h"

namespace ttt::ptx::exec {
namespace {

template <typename T>
using Unsigned = std::make_unsigned_t<T>;

template <typename T>
uint64_t popc(const uint64_t* s, const Op&) {
    return static_cast<uint64_t>(std::popcount(static_cast<T>(s[0])));
}
template <typename T>
uint64_t clz(const uint64_t* s, const Op&) {
    return static_cast<uint64_t>(std::countl_zero(static_cast<T>(s[0])));
}
// Position of the most significant bit that differs from the sign; sub 1: as a shift amount.
template <typename T>
uint64_t bfind(const uint64_t* s, const Op& op) {
    using U = Unsigned<T>;
    U x = static_cast<U>(s[0]);
    if (std::is_signed_v<T> && static_cast<T>(x) < 0) x = static_cast<U>(~x);
    if (x == 0) return 0xFFFFFFFF;
    const auto zeros = static_cast<uint64_t>(std::countl_zero(x));
    return op.sub == 1 ? zeros : 8 * sizeof(T) - 1 - zeros;
}
template <typename T>
uint64_t brev(const uint64_t* s, const Op&) {
    T out = 0;
    for (uint32_t i = 0; i < 8 * sizeof(T); ++i)
        out = static_cast<T>(out << 1 | (static_cast<T>(s[0]) >> i & 1));
    return out;
}
template <typename T>
uint64_t bfe(const uint64_t* s, const Op&) {
    constexpr uint32_t kTop = 8 * sizeof(T) - 1;
    const auto a = static_cast<Unsigned<T>>(s[0]);
    const uint32_t pos = s[1] & 0xFF, len = s[2] & 0xFF;
    uint64_t sign = 0;
    if (std::is_signed_v<T> && len != 0) sign = a >> std::min(pos + len - 1, kTop) & 1;
    uint64_t out = 0;
    for (uint32_t i = 0; i <= kTop; ++i) {
        const uint64_t bit = i < len && pos + i <= kTop ? a >> (pos + i) & 1 : sign;
        out |= bit << i;
    }
    return out;
}
template <typename T>
uint64_t bfi(const uint64_t* s, const Op&) {
    constexpr uint32_t kBits = 8 * sizeof(T);
    const uint32_t pos = s[2] & 0xFF, len = s[3] & 0xFF;
    uint64_t out = s[1];
    for (uint32_t i = 0; i < len && pos + i < kBits; ++i) {
        const uint64_t bit = uint64_t{1} << (pos + i);
        out = (out & ~bit) | ((s[0] >> i & 1) << (pos + i));
    }
    return out;
}
// sub 1: the amount wraps at 32, else it clamps.
template <bool kSigned>
uint64_t szext(const uint64_t* s, const Op& op) {
    const auto a = static_cast<uint32_t>(s[0]);
    const uint64_t n = op.sub == 1 ? s[1] & 31 : s[1] & 0xFFFFFFFF;
    if (n >= 32) return a;
    if (n == 0) return 0;
    const uint32_t kept = a & ((1u << n) - 1);
    const bool negative = kSigned && (a >> (n - 1) & 1) != 0;
    return negative ? kept | ~((1u << n) - 1) : kept;
}
uint64_t bmsk(const uint64_t* s, const Op& op) {
    const uint64_t a = op.sub == 1 ? s[0] & 31 : s[0] & 0xFFFFFFFF;
    const uint64_t b = op.sub == 1 ? s[1] & 31 : s[1] & 0xFFFFFFFF;
    if (a >= 32 || b == 0) return 0;
    const uint64_t ones = b >= 32 ? 0xFFFFFFFF : (uint64_t{1} << b) - 1;
    return (ones << a) & 0xFFFFFFFF;
}
// The offset-th set bit at or after (before, when negative) the base position.
uint64_t fns(const uint64_t* s, const Op&) {
    const auto mask = static_cast<uint32_t>(s[0]);
    const auto base = static_cast<uint32_t>(s[1]);
    const auto offset = static_cast<int32_t>(static_cast<uint32_t>(s[2]));
    if (base > 31) return 0xFFFFFFFF;
    if (offset == 0) return (mask >> base & 1) != 0 ? base : 0xFFFFFFFF;
    const int step = offset > 0 ? 1 : -1;
    uint32_t left = offset > 0 ? static_cast<uint32_t>(offset) : 0u - static_cast<uint32_t>(offset);
    for (int pos = static_cast<int>(base); pos >= 0 && pos < 32; pos += step)
        if ((mask >> pos & 1) != 0 && --left == 0) return static_cast<uint64_t>(pos);
    return 0xFFFFFFFF;
}

// sub bit 0: a is signed, bit 1: b is signed; sub2: dp2a takes the upper two bytes of b.
int32_t part(uint64_t x, uint32_t index, uint32_t bits, bool is_signed) {
    const auto raw = static_cast<uint32_t>(x >> (index * bits)) & ((1u << bits) - 1);
    return is_signed ? static_cast<int32_t>(raw << (32 - bits)) >> (32 - bits)
                     : static_cast<int32_t>(raw);
}
uint64_t dp4a(const uint64_t* s, const Op& op) {
    uint64_t sum = s[2];
    for (uint32_t i = 0; i < 4; ++i)
        sum += static_cast<uint64_t>(int64_t{part(s[0], i, 8, (op.sub & 1) != 0)} *
                                     part(s[1], i, 8, (op.sub & 2) != 0));
    return sum;
}
uint64_t dp2a(const uint64_t* s, const Op& op) {
    uint64_t sum = s[2];
    for (uint32_t i = 0; i < 2; ++i)
        sum += static_cast<uint64_t>(int64_t{part(s[0], i, 16, (op.sub & 1) != 0)} *
                                     part(s[1], i + 2u * op.sub2, 8, (op.sub & 2) != 0));
    return sum;
}

struct Lop3 {
    static uint32_t of(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
        uint32_t out = 0;
        if (table & 0x01) out |= ~a & ~b & ~c;
        if (table & 0x02) out |= ~a & ~b & c;
        if (table & 0x04) out |= ~a & b & ~c;
        if (table & 0x08) out |= ~a & b & c;
        if (table & 0x10) out |= a & ~b & ~c;
        if (table & 0x20) out |= a & ~b & c;
        if (table & 0x40) out |= a & b & ~c;
        if (table & 0x80) out |= a & b & c;
        return out;
    }
};
uint64_t lop3(const uint64_t* s, const Op& op) {
    return Lop3::of(static_cast<uint32_t>(s[0]), static_cast<uint32_t>(s[1]),
                    static_cast<uint32_t>(s[2]), static_cast<uint32_t>(op.imm));
}
// lop3.and/.or: also a predicate, (d != 0) combined with the last source.
void run_lop3_bool(Context& c, const Op& op, uint32_t mask) {
    const uint32_t q = c.predicate(op.src[3]);
    for_lanes(mask, [&](uint32_t i) {
        const uint64_t s[3] = {c.lane(op.src[0], i), c.lane(op.src[1], i), c.lane(op.src[2], i)};
        const uint64_t d = lop3(s, op);
        const bool p = d != 0, other = (q >> i & 1) != 0;
        c.set_lane(op.dst[0], i, d);
        c.set_lane(op.dst[1], i, op.sub == 1 ? p && other : p || other);
    });
}

template <bool kLeft>
uint64_t funnel(const uint64_t* s, const Op& op) {
    const uint64_t n = op.sub == 1 ? s[2] & 31 : std::min<uint64_t>(s[2] & 0xFFFFFFFF, 32);
    const uint64_t both = (s[1] & 0xFFFFFFFF) << 32 | (s[0] & 0xFFFFFFFF);
    if constexpr (kLeft) return n == 32 ? both & 0xFFFFFFFF : (both << n) >> 32;
    return (both >> n) & 0xFFFFFFFF;
}

enum : uint16_t { kPrmtIndex, kPrmtF4e, kPrmtB4e, kPrmtRc8, kPrmtEcl, kPrmtEcr, kPrmtRc16 };
uint64_t prmt(const uint64_t* s, const Op& op) {
    const uint64_t bytes = (s[1] & 0xFFFFFFFF) << 32 | (s[0] & 0xFFFFFFFF);
    const auto control = static_cast<uint32_t>(s[2]);
    const uint32_t n = control & 3;
    uint64_t out = 0;
    for (uint32_t i = 0; i < 4; ++i) {
        uint32_t pick = i;
        switch (op.sub) {
            case kPrmtIndex:
                pick = control >> (4 * i) & 15;
                break;
            case kPrmtF4e:
                pick = (n + i) & 7;
                break;
            case kPrmtB4e:
                pick = (n - i) & 7;
                break;
            case kPrmtRc8:
                pick = n;
                break;
            case kPrmtEcl:
                pick = std::max(i, n);
                break;
            case kPrmtEcr:
                pick = std::min(i, n);
                break;
            default:
                pick = (n & 1) * 2 + (i & 1);
                break;
        }
        uint64_t byte = bytes >> (8 * (pick & 7)) & 0xFF;
        if ((pick & 8) != 0) byte = (byte & 0x80) != 0 ? 0xFF : 0;
        out |= byte << (8 * i);
    }
    return out;
}

bool use_scalar(Op& op, Scalar scalar) {
    op.scalar = scalar;
    op.run = scalar != nullptr ? run_scalar : nullptr;
    return scalar != nullptr;
}

template <template <typename> class Pick>
Scalar by_int(Type t) {
    switch (t) {
        case Type::kU32:
        case Type::kB32:
            return Pick<uint32_t>::value;
        case Type::kS32:
            return Pick<int32_t>::value;
        case Type::kU64:
        case Type::kB64:
            return Pick<uint64_t>::value;
        case Type::kS64:
            return Pick<int64_t>::value;
        default:
            return nullptr;
    }
}
template <typename T>
struct PickBfind {
    static constexpr Scalar value = bfind<T>;
};
template <typename T>
struct PickBfe {
    static constexpr Scalar value = bfe<T>;
};
template <typename T>
struct PickBfi {
    static constexpr Scalar value = bfi<T>;
};
template <typename T>
struct PickPopc {
    static constexpr Scalar value = popc<Unsigned<T>>;
};
template <typename T>
struct PickClz {
    static constexpr Scalar value = clz<Unsigned<T>>;
};
template <typename T>
struct PickBrev {
    static constexpr Scalar value = brev<Unsigned<T>>;
};

bool select_prmt(const Stmt& s, Op& op) {
    static constexpr std::pair<Mod, uint16_t> kModes[] = {
        {Mod::kF4e, kPrmtF4e}, {Mod::kB4e, kPrmtB4e}, {Mod::kRc8, kPrmtRc8},
        {Mod::kEcl, kPrmtEcl}, {Mod::kEcr, kPrmtEcr}, {Mod::kRc16, kPrmtRc16}};
    op.sub = kPrmtIndex;
    for (const auto& [mod, mode] : kModes)
        if (s.has(mod)) op.sub = mode;
    return use_scalar(op, prmt);
}

bool select_lop3(const Stmt& s, Op& op) {
    const bool combine = s.has(Mod::kAnd) || s.has(Mod::kOr);
    if (!combine) return use_scalar(op, lop3);
    op.sub = s.has(Mod::kAnd) ? 1 : 0;
    op.run = run_lop3_bool;
    return true;
}

bool select_dot(const Stmt& s, Op& op) {
    op.sub = static_cast<uint16_t>((is_signed(s.type(0)) ? 1 : 0) | (is_signed(s.type(1)) ? 2 : 0));
    op.sub2 = s.has(Mod::kHi) ? 1 : 0;
    return use_scalar(op, s.op == Opcode::kDp4a ? dp4a : dp2a);
}
}  // namespace

bool select_bits(const Stmt& s, Op& op) {
    const Type t = s.last_type();
    const uint16_t wrap = s.has(Mod::kWrap) ? 1 : 0;
    switch (s.op) {
        case Opcode::kPopc:
            return use_scalar(op, by_int<PickPopc>(t));
        case Opcode::kClz:
            return use_scalar(op, by_int<PickClz>(t));
        case Opcode::kBrev:
            return use_scalar(op, by_int<PickBrev>(t));
        case Opcode::kBfind:
            op.sub = s.has(Mod::kShiftamt) ? 1 : 0;
            return use_scalar(op, by_int<PickBfind>(t));
        case Opcode::kBfe:
            return use_scalar(op, by_int<PickBfe>(t));
        case Opcode::kBfi:
            return use_scalar(op, by_int<PickBfi>(t));
        case Opcode::kSzext:
            op.sub = wrap;
            return use_scalar(op, is_signed(t) ? szext<true> : szext<false>);
        case Opcode::kBmsk:
            op.sub = wrap;
            return use_scalar(op, bmsk);
        case Opcode::kFns:
            return use_scalar(op, fns);
        case Opcode::kDp4a:
        case Opcode::kDp2a:
            return select_dot(s, op);
        case Opcode::kLop3:
            return select_lop3(s, op);
        case Opcode::kShf:
            op.sub = wrap;
            return use_scalar(op, s.has(Mod::kL) ? funnel<true> : funnel<false>);
        case Opcode::kPrmt:
            return select_prmt(s, op);
        default:
            return false;
    }
}

}  // namespace ttt::ptx::exec
