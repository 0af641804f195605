#include "xform/transforms/ranges.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "ptx/dataflow.h"
#include "xform/transforms/integers.h"

namespace ttt::xform {
namespace {

using ptx::Mod;
using ptx::Opcode;
using ptx::Operand;
using ptx::Stmt;
using ptx::Type;
using Wide = unsigned __int128;
using MaybeRange = std::optional<Range>;

uint64_t largest(uint32_t bits) { return truncate(~uint64_t{0}, bits); }

// An interval of sums, reduced modulo 2^bits when both ends wrap the same number of times.
MaybeRange modular(Wide low, Wide high, uint32_t bits) {
    if (low >> bits != high >> bits) return std::nullopt;
    return Range{truncate(static_cast<uint64_t>(low), bits),
                 truncate(static_cast<uint64_t>(high), bits)};
}

MaybeRange sum(const Range& a, const Range& b, uint32_t bits) {
    return modular(Wide{a.low} + b.low, Wide{a.high} + b.high, bits);
}

MaybeRange product(const Range& a, const Range& b, uint32_t bits) {
    const Wide high = Wide{a.high} * b.high;
    if (high > largest(bits)) return std::nullopt;
    return Range{a.low * b.low, static_cast<uint64_t>(high)};
}

// Ranges of source operands as the instruction's type reads them: for a signed one, no negative
// values.
struct Operands {
    std::vector<Range> in;
    Type type;
    uint32_t bits;

    MaybeRange multiply() const {
        if (in[0].high > limit() || in[1].high > limit()) return std::nullopt;
        return product(in[0], in[1], 2 * bits > 64 ? 64 : 2 * bits);
    }
    uint64_t limit() const { return ptx::is_signed(type) ? largest(bits - 1) : largest(bits); }
    bool not_negative() const {
        return std::all_of(in.begin(), in.end(), [&](const Range& r) { return r.high <= limit(); });
    }
    bool constant(size_t k) const { return in[k].low == in[k].high; }
};

MaybeRange shift(const Stmt& stmt, const Operands& o) {
    if (!o.constant(1) || o.in[1].low >= o.bits) return std::nullopt;
    const auto by = static_cast<uint32_t>(o.in[1].low);
    const Range& a = o.in[0];
    if (stmt.op == Opcode::kShr) {
        if (a.high > o.limit()) return std::nullopt;
        return Range{a.low >> by, a.high >> by};
    }
    if (Wide{a.high} << by > largest(o.bits)) return std::nullopt;
    return Range{a.low << by, a.high << by};
}

MaybeRange divide(const Stmt& stmt, const Operands& o) {
    if (!o.not_negative() || o.in[1].low == 0) return std::nullopt;
    const Range &n = o.in[0], &d = o.in[1];
    if (stmt.op == Opcode::kDiv) return Range{n.low / d.high, n.high / d.low};
    if (n.high < d.low) return n;
    return Range{0, std::min(n.high, d.high - 1)};
}

MaybeRange arithmetic(const Stmt& stmt, const Operands& o) {
    const std::vector<Range>& in = o.in;
    const uint32_t bits = o.bits;
    switch (stmt.op) {
        case Opcode::kMov:
            return in[0];
        case Opcode::kAdd:
            return sum(in[0], in[1], bits);
        case Opcode::kSub: {
            const Wide wrap = Wide{1} << bits;
            return modular(wrap + in[0].low - in[1].high, wrap + in[0].high - in[1].low, bits);
        }
        case Opcode::kMul:
            if (stmt.has(Mod::kWide)) return o.multiply();
            return stmt.has(Mod::kLo) ? product(in[0], in[1], bits) : std::nullopt;
        case Opcode::kMad: {
            const bool wide = stmt.has(Mod::kWide);
            if (!wide && !stmt.has(Mod::kLo)) return std::nullopt;
            const MaybeRange p = wide ? o.multiply() : product(in[0], in[1], bits);
            return p ? sum(*p, in[2], wide ? 2 * bits : bits) : p;
        }
        case Opcode::kDiv:
        case Opcode::kRem:
            return divide(stmt, o);
        case Opcode::kShl:
        case Opcode::kShr:
            return shift(stmt, o);
        case Opcode::kAnd:
            return Range{0, std::min(in[0].high, in[1].high)};
        case Opcode::kOr:
        case Opcode::kXor:
            return Range{0,
                         largest(static_cast<uint32_t>(std::bit_width(in[0].high | in[1].high)))};
        case Opcode::kMin:
            if (!o.not_negative()) return std::nullopt;
            return Range{std::min(in[0].low, in[1].low), std::min(in[0].high, in[1].high)};
        case Opcode::kMax:
            if (!o.not_negative()) return std::nullopt;
            return Range{std::max(in[0].low, in[1].low), std::max(in[0].high, in[1].high)};
        default:
            return std::nullopt;
    }
}

// cvt between integers whose value stays the same.
MaybeRange converted(const Stmt& stmt, const Range& from) {
    const Type to = stmt.type(0), source = stmt.type(1);
    if (stmt.mod_count != 2 || !is_integer(to) || !is_integer(source)) return std::nullopt;
    const auto limit = [](Type t) {
        return largest(ptx::bit_size(t) - (ptx::is_signed(t) ? 1 : 0));
    };
    if (from.high > limit(source) || from.high > limit(to)) return std::nullopt;
    return from;
}

}  // namespace

Ranges::Ranges(const ptx::Module& module, uint32_t function, const Dim3& grid, const Dim3& block)
    : module_(module), grid_(grid), block_(block) {
    std::vector<ptx::Sym> regs;
    for (const Stmt& stmt : module.functions[function].body) {
        ptx::written_registers(stmt, regs);
        for (ptx::Sym r : regs) {
            const auto [it, first] = definitions_.try_emplace(r, &stmt);
            if (!first || stmt.guard != ptx::kNoSym || stmt.operands[0].sym != r)
                it->second = nullptr;
        }
    }
}

std::optional<Range> Ranges::special(const Operand& operand) const {
    if (operand.component > 2) return std::nullopt;
    const bool of_block = operand.text == "tid" || operand.text == "ntid";
    const Dim3& size = of_block ? block_ : grid_;
    const uint32_t extent[] = {size.x, size.y, size.z};
    const uint32_t n = extent[operand.component];
    if (n == 0) return std::nullopt;  // launch not known
    if (operand.text == "tid" || operand.text == "ctaid") return Range{0, n - 1};
    if (operand.text == "ntid" || operand.text == "nctaid") return Range{n, n};
    return std::nullopt;
}

std::optional<Range> Ranges::of(const Operand& operand, uint32_t bits) {
    switch (operand.kind) {
        case Operand::Kind::kImmediate: {
            if (operand.literal != Operand::Literal::kInt) return std::nullopt;
            const uint64_t value = truncate(operand.value, bits);
            return Range{value, value};
        }
        case Operand::Kind::kSpecial:
            return special(operand);
        case Operand::Kind::kRegister:
            break;
        default:
            return std::nullopt;
    }
    if (operand.component != 4 || operand.negated ||
        ptx::bit_size(module_.at(operand.sym).type) != bits)
        return std::nullopt;
    // While it is being found out, a register that depends on itself has no range.
    const auto [it, unseen] = known_.try_emplace(operand.sym, std::nullopt);
    if (!unseen) return it->second;
    const auto definition = definitions_.find(operand.sym);
    if (definition == definitions_.end() || definition->second == nullptr) return std::nullopt;
    const std::optional<Range> found = result(*definition->second);
    if (found && found->high > largest(bits)) return std::nullopt;
    return known_[operand.sym] = found;
}

std::optional<Range> Ranges::result(const Stmt& stmt) {
    const Type type = stmt.last_type();
    if (stmt.op == Opcode::kOpaque || !is_integer(type) || stmt.has(Mod::kSat) ||
        stmt.has(Mod::kCc) || stmt.has(Mod::kHi) || stmt.operands.size() < 2)
        return std::nullopt;
    Operands o{{}, type, ptx::bit_size(type)};
    for (size_t k = 1; k < stmt.operands.size(); ++k) {
        uint32_t bits = o.bits;
        if ((stmt.op == Opcode::kShl || stmt.op == Opcode::kShr) && k == 2) bits = 32;
        if (stmt.op == Opcode::kMad && stmt.has(Mod::kWide) && k == 3) bits *= 2;
        const std::optional<Range> one = of(stmt.operands[k], bits);
        if (!one) return std::nullopt;
        o.in.push_back(*one);
    }
    if (stmt.op == Opcode::kCvt) return converted(stmt, o.in[0]);
    const bool unary = stmt.op == Opcode::kMov;
    if (!unary && o.in.size() != (stmt.op == Opcode::kMad ? 3u : 2u)) return std::nullopt;
    return arithmetic(stmt, o);
}

std::optional<bool> Ranges::decided(const Stmt& setp) {
    if (!setp.is(Opcode::kSetp) || setp.operands.size() != 3 || setp.mod_count != 2)
        return std::nullopt;
    const Type type = setp.last_type();
    if (!is_integer(type)) return std::nullopt;
    const uint32_t bits = ptx::bit_size(type);
    const std::optional<Range> a = of(setp.operands[1], bits), b = of(setp.operands[2], bits);
    if (!a || !b) return std::nullopt;
    // In the type's own order an interval must not pass from the largest to the least value.
    const uint64_t half = largest(bits - 1);
    const auto ordered = [&](const Range& r) {
        return !ptx::is_signed(type) || (r.low <= half) == (r.high <= half);
    };
    if (!ordered(*a) || !ordered(*b)) return std::nullopt;
    // A comparison is monotone in each operand, but for equality: that holds for all values or none
    // only if the intervals are one same value or do not meet.
    const bool equality = setp.mods[0] == Mod::kEq || setp.mods[0] == Mod::kNe;
    if (equality) {
        const bool apart = a->high < b->low || b->high < a->low;
        const bool same = a->low == a->high && b->low == b->high && a->low == b->low;
        if (!apart && !same) return std::nullopt;
    }
    const auto one = compare(setp, a->low, b->high), other = compare(setp, a->high, b->low);
    return one && one == other ? one : std::nullopt;
}

}  // namespace ttt::xform
