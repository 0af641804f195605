// Comparison and selection: setp, set, selp, slct, testp.
#include <optional>

#include "ptx/exec_lanes.h"
#include "ptx/float_soft.h"

namespace ttt::ptx::exec {
namespace {

enum class Test : uint16_t {
    kEq,
    kNe,
    kLt,
    kLe,
    kGt,
    kGe,
    kEqu,
    kNeu,
    kLtu,
    kLeu,
    kGtu,
    kGeu,
    kNum,
    kNan
};
enum class Combine : uint16_t { kNone, kAnd, kOr, kXor };

template <typename T, class F>
uint32_t bits_where(const T* a, const T* b, F&& f) {
    uint32_t bits = 0;
    for (uint32_t i = 0; i < kLanes; ++i)
        bits |= static_cast<uint32_t>(f(a[i], b[i]) ? 1u : 0u) << i;
    return bits;
}

template <typename T>
bool unordered(T x, T y) {
    return x != x || y != y;
}

// One bit per lane.
template <typename T>
uint32_t compare(Test test, const T* a, const T* b) {
    switch (test) {
        case Test::kEq:
            return bits_where(a, b, [](T x, T y) { return x == y; });
        case Test::kLt:
            return bits_where(a, b, [](T x, T y) { return x < y; });
        case Test::kLe:
            return bits_where(a, b, [](T x, T y) { return x <= y; });
        case Test::kGt:
            return bits_where(a, b, [](T x, T y) { return x > y; });
        case Test::kGe:
            return bits_where(a, b, [](T x, T y) { return x >= y; });
        case Test::kNe:
            return bits_where(a, b, [](T x, T y) { return !unordered(x, y) && x != y; });
        case Test::kEqu:
            return bits_where(a, b, [](T x, T y) { return unordered(x, y) || x == y; });
        case Test::kNeu:
            return bits_where(a, b, [](T x, T y) { return !(x == y); });
        case Test::kLtu:
            return bits_where(a, b, [](T x, T y) { return !(x >= y); });
        case Test::kLeu:
            return bits_where(a, b, [](T x, T y) { return !(x > y); });
        case Test::kGtu:
            return bits_where(a, b, [](T x, T y) { return !(x <= y); });
        case Test::kGeu:
            return bits_where(a, b, [](T x, T y) { return !(x < y); });
        case Test::kNum:
            return bits_where(a, b, [](T x, T y) { return !unordered(x, y); });
        case Test::kNan:
            return bits_where(a, b, [](T x, T y) { return unordered(x, y); });
    }
    return 0;
}

// Source operand `k` as values of T; `half` picks the upper element of a packed pair.
template <typename T>
void load(const Context& c, const Op& op, uint32_t k, bool half, T* out) {
    const bool ftz = op.imm != 0;
    for (uint32_t i = 0; i < kLanes; ++i) {
        if constexpr (std::is_same_v<T, float>) {
            uint32_t bits = static_cast<uint32_t>(c.lane(op.src[k], i));
            if (half) bits >>= 16;
            if (op.type2 == Type::kF16 || op.type2 == Type::kF16x2) {
                if (ftz && soft::kF16.is_subnormal(bits & 0xFFFF)) bits &= 0x8000;
                out[i] = soft::half_to_float(bits & 0xFFFF);
            } else if (op.type2 == Type::kBF16 || op.type2 == Type::kBF16x2) {
                out[i] = std::bit_cast<float>(bits << 16);
            } else {
                if (ftz && soft::kF32.is_subnormal(bits)) bits &= 0x80000000u;
                out[i] = std::bit_cast<float>(bits);
            }
        } else {
            out[i] = static_cast<T>(c.lane(op.src[k], i));
        }
    }
}

template <typename T>
uint32_t compare_lanes(const Context& c, const Op& op, bool half) {
    T a[kLanes], b[kLanes];
    load(c, op, 0, half, a);
    load(c, op, 1, half, b);
    return compare(static_cast<Test>(op.sub), a, b);
}

template <typename T>
uint32_t compare_direct(const Context& c, const Op& op) {
    Storage<T> x[kLanes], y[kLanes];
    std::memcpy(x, c.read<Storage<T>>(op.src[0]), sizeof x);
    std::memcpy(y, c.read<Storage<T>>(op.src[1]), sizeof y);
    T a[kLanes], b[kLanes];
    std::memcpy(a, x, sizeof a);
    std::memcpy(b, y, sizeof b);
    return compare(static_cast<Test>(op.sub), a, b);
}

uint32_t test_lanes(const Context& c, const Op& op, bool half) {
    switch (op.type2) {
        case Type::kU16:
        case Type::kB16:
            return compare_direct<uint16_t>(c, op);
        case Type::kS16:
            return compare_direct<int16_t>(c, op);
        case Type::kU32:
        case Type::kB32:
            return compare_direct<uint32_t>(c, op);
        case Type::kS32:
            return compare_direct<int32_t>(c, op);
        case Type::kU64:
        case Type::kB64:
            return compare_direct<uint64_t>(c, op);
        case Type::kS64:
            return compare_direct<int64_t>(c, op);
        case Type::kF64:
            return compare_direct<double>(c, op);
        case Type::kF32:
            return op.imm == 0 ? compare_direct<float>(c, op) : compare_lanes<float>(c, op, false);
        default:
            return compare_lanes<float>(c, op, half);
    }
}

uint32_t combined(const Context& c, const Op& op, uint32_t test) {
    if (op.sub2 == 0) return test;
    const uint32_t other = c.predicate(op.src[2]);
    switch (static_cast<Combine>(op.sub2)) {
        case Combine::kAnd:
            return test & other;
        case Combine::kOr:
            return test | other;
        case Combine::kXor:
            return test ^ other;
        case Combine::kNone:
            break;
    }
    return test;
}

bool packed(Type t) { return t == Type::kF16x2 || t == Type::kBF16x2; }

void run_setp(Context& c, const Op& op, uint32_t mask) {
    const uint32_t first = test_lanes(c, op, false);
    const uint32_t second = packed(op.type2) ? test_lanes(c, op, true) : ~first;
    const uint32_t p = combined(c, op, first);
    const uint32_t q = combined(c, op, second);
    c.set_predicate(op.dst[0].offset, p, mask);
    if (op.dst[1].offset != kNowhere) c.set_predicate(op.dst[1].offset, q, mask);
}

// What `set` writes for true, by destination type.
uint64_t truth(Type t) {
    switch (t) {
        case Type::kF32:
            return 0x3F800000;
        case Type::kF16:
        case Type::kF16x2:
            return 0x3C00;
        case Type::kBF16:
        case Type::kBF16x2:
            return 0x3F80;
        case Type::kU16:
        case Type::kS16:
            return 0xFFFF;
        default:
            return 0xFFFFFFFF;
    }
}

void run_set(Context& c, const Op& op, uint32_t mask) {
    const uint32_t low = combined(c, op, test_lanes(c, op, false));
    const bool pair = packed(op.type2);
    const uint32_t high = pair ? combined(c, op, test_lanes(c, op, true)) : 0;
    const uint64_t yes = pair && !packed(op.type) ? 0xFFFF : truth(op.type);
    for_lanes(mask, [&](uint32_t i) {
        uint64_t r = (low >> i & 1) != 0 ? yes : 0;
        if (pair && (high >> i & 1) != 0) r |= yes << 16;
        c.set_lane(op.dst[0], i, r);
    });
}

template <typename T>
void run_selp(Context& c, const Op& op, uint32_t mask) {
    const uint32_t pick = c.predicate(op.src[2]);
    const T* a = c.read<T>(op.src[0]);
    const T* b = c.read<T>(op.src[1]);
    T* d = c.write<T>(op.dst[0]);
    TTT_IVDEP
    for (uint32_t i = 0; i < kLanes; ++i) {
        const T chosen = (pick >> i & 1) != 0 ? a[i] : b[i];
        d[i] = (mask >> i & 1) != 0 ? chosen : d[i];
    }
}

uint64_t slct(const uint64_t* s, const Op& op) {
    const auto c = static_cast<uint32_t>(s[2]);
    if (op.type2 == Type::kS32) return static_cast<int32_t>(c) >= 0 ? s[0] : s[1];
    // A subnormal, flushed or not, and −0 compare like their sign says, except that −0 ≥ 0.
    uint32_t bits = c;
    if (op.imm != 0 && soft::kF32.is_subnormal(bits)) bits &= 0x80000000u;
    return std::bit_cast<float>(bits) >= 0 ? s[0] : s[1];
}

enum : uint16_t { kFinite, kInfinite, kNumber, kNotANumber, kNormal, kSubnormal };
uint64_t testp(const uint64_t* s, const Op& op) {
    const soft::Format f = op.type == Type::kF64 ? soft::kF64 : soft::kF32;
    const uint64_t a = s[0];
    switch (op.sub) {
        case kFinite:
            return !f.is_nan(a) && !f.is_inf(a);
        case kInfinite:
            return f.is_inf(a);
        case kNumber:
            return !f.is_nan(a);
        case kNotANumber:
            return f.is_nan(a);
        case kNormal:
            return !f.is_nan(a) && !f.is_inf(a) && !f.is_subnormal(a);
        default:
            return f.is_subnormal(a);
    }
}

std::optional<Test> test_of(const Stmt& s) {
    static constexpr std::pair<Mod, Test> kTests[] = {
        {Mod::kEq, Test::kEq},   {Mod::kNe, Test::kNe},   {Mod::kLt, Test::kLt},
        {Mod::kLe, Test::kLe},   {Mod::kGt, Test::kGt},   {Mod::kGe, Test::kGe},
        {Mod::kLo, Test::kLt},   {Mod::kLs, Test::kLe},   {Mod::kHi, Test::kGt},
        {Mod::kHs, Test::kGe},   {Mod::kEqu, Test::kEqu}, {Mod::kNeu, Test::kNeu},
        {Mod::kLtu, Test::kLtu}, {Mod::kLeu, Test::kLeu}, {Mod::kGtu, Test::kGtu},
        {Mod::kGeu, Test::kGeu}, {Mod::kNum, Test::kNum}, {Mod::kNan, Test::kNan}};
    for (const auto& [mod, test] : kTests)
        if (s.has(mod)) return test;
    return std::nullopt;
}

bool select_test(const Stmt& s, Op& op) {
    const auto test = test_of(s);
    if (!test) return false;
    const bool is_set = s.op == Opcode::kSet;
    op.type = is_set ? s.type(0) : Type::kPred;
    op.type2 = s.type(is_set ? 1 : 0);
    if (op.type2 == Type::kNone || op.type2 == Type::kPred || bit_size(op.type2) < 16) return false;
    op.sub = static_cast<uint16_t>(*test);
    op.imm = s.has(Mod::kFtz) ? 1 : 0;
    op.sub2 = static_cast<uint16_t>(s.has(Mod::kAnd)   ? Combine::kAnd
                                    : s.has(Mod::kOr)  ? Combine::kOr
                                    : s.has(Mod::kXor) ? Combine::kXor
                                                       : Combine::kNone);
    if ((op.sub2 != 0) != (op.sources == 3)) return false;
    op.run = is_set ? run_set : run_setp;
    return true;
}

bool select_testp(const Stmt& s, Op& op) {
    static constexpr std::pair<Mod, uint16_t> kKinds[] = {
        {Mod::kFinite, kFinite}, {Mod::kInfinite, kInfinite},
        {Mod::kNumber, kNumber}, {Mod::kNotanumber, kNotANumber},
        {Mod::kNormal, kNormal}, {Mod::kSubnormal, kSubnormal}};
    op.type = s.last_type();
    if (op.type != Type::kF32 && op.type != Type::kF64) return false;
    for (const auto& [mod, kind] : kKinds)
        if (s.has(mod)) {
            op.sub = kind;
            op.scalar = testp;
            op.run = run_scalar;
            return true;
        }
    return false;
}

}  // namespace

bool select_compare(const Stmt& s, Op& op) {
    switch (s.op) {
        case Opcode::kSetp:
        case Opcode::kSet:
            return select_test(s, op);
        case Opcode::kTestp:
            return select_testp(s, op);
        case Opcode::kSelp:
            op.run = op.dst[0].width == Width::kHalf   ? run_selp<uint16_t>
                     : op.dst[0].width == Width::kWord ? run_selp<uint32_t>
                     : op.dst[0].width == Width::kLong ? run_selp<uint64_t>
                                                       : Handler{nullptr};
            return op.run != nullptr;
        case Opcode::kSlct:
            op.type2 = s.type(1);
            op.imm = s.has(Mod::kFtz) ? 1 : 0;
            op.scalar = slct;
            op.run = run_scalar;
            return op.type2 == Type::kS32 || op.type2 == Type::kF32;
        default:
            return false;
    }
}

}  // namespace ttt::ptx::exec
