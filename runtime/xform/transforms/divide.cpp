#include "xform/transforms/divide.h"

#include <bit>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include "xform/transforms/integers.h"

namespace ttt::xform {
namespace {

using ptx::Mod;
using ptx::Opcode;
using ptx::Operand;
using ptx::Stmt;
using ptx::Type;
using Wide = unsigned __int128;

// m = floor(2^(N+s) / d) + 1 for the least s with m*d - 2^(N+s) <= 2^(s+slack).
std::pair<Wide, uint32_t> least_multiplier(uint32_t bits, uint64_t divisor, uint32_t slack) {
    Wide quotient = (Wide{1} << bits) / divisor, remainder = (Wide{1} << bits) % divisor;
    uint32_t s = 0;
    while (divisor - remainder > Wide{1} << (s + slack)) {
        quotient *= 2;
        remainder *= 2;
        if (remainder >= divisor) {
            ++quotient;
            remainder -= divisor;
        }
        ++s;
    }
    return {quotient + 1, s};
}

// Writes the sequence for one division in front of where it stood.
class Sequence {
  public:
    Sequence(ptx::Module& module, uint32_t function, uint32_t bits, std::vector<Stmt>& out)
        : module_(module), function_(function), bits_(bits), out_(out) {}

    Operand unsigned_quotient(const Operand& n, uint64_t d, uint32_t numerator_bits) {
        if (std::has_single_bit(d)) return right(n, static_cast<uint32_t>(std::countr_zero(d)));
        Multiplier m = unsigned_multiplier(bits_, d, numerator_bits);
        Operand from = n;
        if (const auto even = static_cast<uint32_t>(std::countr_zero(d)); m.extra && even > 0) {
            from = right(n, even);
            m = unsigned_multiplier(bits_, d >> even, numerator_bits - even);
        }
        const Operand high =
            emit(Opcode::kMul, {Mod::kHi, unsigned_type()}, {from, literal(m.factor)});
        if (!m.extra) return right(high, m.shift);
        // (high + from) >> shift without the sum's carry being lost.
        const Operand half = right(emit(Opcode::kSub, {unsigned_type()}, {from, high}), 1);
        return right(emit(Opcode::kAdd, {unsigned_type()}, {half, high}), m.shift - 1);
    }

    Operand unsigned_remainder(const Operand& n, uint64_t d, uint32_t numerator_bits) {
        if (std::has_single_bit(d)) return emit(Opcode::kAnd, {plain_type()}, {n, literal(d - 1)});
        return minus_product(n, unsigned_quotient(n, d, numerator_bits), d);
    }

    Operand signed_quotient(const Operand& n, uint64_t d) {
        if (std::has_single_bit(d))
            return signed_right(rounded_up(n, d), static_cast<uint32_t>(std::countr_zero(d)));
        const Multiplier m = signed_multiplier(bits_, d);
        Operand high = emit(Opcode::kMul, {Mod::kHi, signed_type()}, {n, literal(m.factor)});
        if (m.extra) high = emit(Opcode::kAdd, {signed_type()}, {high, n});
        const Operand floor = m.shift == 0 ? high : signed_right(high, m.shift);
        return emit(Opcode::kAdd, {signed_type()}, {floor, right(n, bits_ - 1)});
    }

    Operand signed_remainder(const Operand& n, uint64_t d) {
        if (!std::has_single_bit(d)) return minus_product(n, signed_quotient(n, d), d);
        const Operand multiple =
            emit(Opcode::kAnd, {plain_type()}, {rounded_up(n, d), literal(0 - d)});
        return emit(Opcode::kSub, {signed_type()}, {n, multiple});
    }

    Operand negated(const Operand& n) { return emit(Opcode::kNeg, {signed_type()}, {n}); }

    Operand converted(Mod to, Mod from, const Operand& n) {
        return emit(Opcode::kCvt, {to, from}, {n});
    }

    // Literals as wide as the operation, which a set bit above it would not assemble as.
    Operand literal(uint64_t value) { return integer_literal(module_, truncate(value, bits_)); }

    Operand emit(Opcode op, std::initializer_list<Mod> mods, std::initializer_list<Operand> from) {
        Stmt stmt;
        stmt.op = op;
        stmt.id = module_.next_id++;
        stmt.offset = 0xFFFFFFFFu;
        for (Mod m : mods) stmt.mods[stmt.mod_count++] = m;
        Operand dest;
        dest.kind = Operand::Kind::kRegister;
        const bool wide = op == Opcode::kCvt ? stmt.type(0) == Type::kU64 : bits_ == 64;
        dest.sym = module_.add_register(function_, wide ? Type::kB64 : Type::kB32, "div");
        stmt.operands.push_back(dest);
        stmt.operands.insert(stmt.operands.end(), from);
        out_.push_back(std::move(stmt));
        return dest;
    }

  private:
    Mod unsigned_type() const { return bits_ == 64 ? Mod::kU64 : Mod::kU32; }
    Mod signed_type() const { return bits_ == 64 ? Mod::kS64 : Mod::kS32; }
    Mod plain_type() const { return bits_ == 64 ? Mod::kB64 : Mod::kB32; }

    Operand count(uint32_t by) { return integer_literal(module_, by); }
    Operand right(const Operand& n, uint32_t by) {
        return by == 0 ? n : emit(Opcode::kShr, {unsigned_type()}, {n, count(by)});
    }
    Operand signed_right(const Operand& n, uint32_t by) {
        return emit(Opcode::kShr, {signed_type()}, {n, count(by)});
    }
    // n, plus d-1 where it is negative: its multiple of d towards 0 is then the one below.
    Operand rounded_up(const Operand& n, uint64_t d) {
        const auto k = static_cast<uint32_t>(std::countr_zero(d));
        const Operand sign = k == 1 ? n : signed_right(n, bits_ - 1);
        return emit(Opcode::kAdd, {signed_type()}, {n, right(sign, bits_ - k)});
    }
    Operand minus_product(const Operand& n, const Operand& q, uint64_t d) {
        return emit(Opcode::kMad, {Mod::kLo, unsigned_type()}, {q, literal(0 - d), n});
    }

    ptx::Module& module_;
    uint32_t function_, bits_;
    std::vector<Stmt>& out_;
};

struct Division {
    bool quotient, is_signed, negative;
    uint32_t bits;
    uint64_t magnitude;  // of the divisor
};

std::optional<Division> division(const Stmt& stmt) {
    if (!stmt.is(Opcode::kDiv) && !stmt.is(Opcode::kRem)) return std::nullopt;
    const Type type = stmt.last_type();
    const uint32_t bits = ptx::bit_size(type);
    if (!is_integer(type) || bits < 32 || stmt.mod_count != 1 || stmt.operands.size() != 3)
        return std::nullopt;
    const Operand &dest = stmt.operands[0], &n = stmt.operands[1], &d = stmt.operands[2];
    if (dest.kind != Operand::Kind::kRegister || dest.component != 4 ||
        n.kind != Operand::Kind::kRegister || n.component != 4 ||
        d.kind != Operand::Kind::kImmediate || d.literal != Operand::Literal::kInt)
        return std::nullopt;
    Division out{stmt.is(Opcode::kDiv), ptx::is_signed(type), false, bits, truncate(d.value, bits)};
    if (out.is_signed && as_signed(out.magnitude, bits) < 0) {
        out.negative = true;
        out.magnitude = truncate(0 - out.magnitude, bits);
    }
    if (out.magnitude == 0 || (out.magnitude == 1 && !out.quotient)) return std::nullopt;
    return out;
}

class Divider {
  public:
    Divider(ptx::Module& module, uint32_t function, Ranges* ranges)
        : module_(module), function_(function), ranges_(ranges) {}

    uint32_t run() {
        uint32_t count = 0;
        // The ranges look at the old body until the end.
        for (const Stmt& stmt : module_.functions[function_].body) {
            if (const auto d = division(stmt)) {
                replace(stmt, *d);
                ++count;
            } else {
                out_.push_back(stmt);
            }
        }
        if (count > 0) module_.functions[function_].body = std::move(out_);
        return count;
    }

    bool used_ranges() const { return used_ranges_; }

  private:
    void replace(const Stmt& stmt, const Division& d) {
        const size_t before = out_.size();
        const Operand result = sequence(stmt.operands[1], d);
        const bool ours = out_.size() > before && out_.back().operands[0].sym == result.sym;
        if (!ours) {  // the numerator itself, or a literal
            Sequence(module_, function_, d.bits, out_)
                .emit(Opcode::kMov, {d.bits == 64 ? Mod::kB64 : Mod::kB32}, {result});
        }
        // The last instruction writes where the division did, under its guard; what comes before
        // only writes registers of its own.
        Stmt& last = out_.back();
        module_.functions[function_].fresh_registers.pop_back();
        last.operands[0] = stmt.operands[0];
        last.guard = stmt.guard;
        last.guard_negated = stmt.guard_negated;
    }

    Operand sequence(const Operand& n, const Division& d) {
        Sequence s(module_, function_, d.bits, out_);
        const std::optional<Range> range = positive(n, d);
        if (range) used_ranges_ = true;
        Operand q;
        if (range && range->high < d.magnitude)
            return d.quotient ? s.literal(0) : n;
        else if (range && d.bits == 64 && range->high >> 32 == 0)
            q = narrow(n, d, *range);
        else if (range || !d.is_signed)
            q = not_negative(s, n, d, range ? bits_of(*range) : d.bits);
        else if (d.magnitude == 1)
            q = n;
        else
            q = d.quotient ? s.signed_quotient(n, d.magnitude) : s.signed_remainder(n, d.magnitude);
        return d.quotient && d.negative ? s.negated(q) : q;
    }

    static uint32_t bits_of(const Range& range) {
        return static_cast<uint32_t>(std::bit_width(range.high));
    }

    // The numerator's range where it tells more than its type.
    std::optional<Range> positive(const Operand& n, const Division& d) {
        if (ranges_ == nullptr) return std::nullopt;
        const std::optional<Range> range = ranges_->of(n, d.bits);
        return range && bits_of(*range) < d.bits ? range : std::nullopt;
    }

    Operand not_negative(Sequence& s, const Operand& n, const Division& d, uint32_t bits) {
        return d.quotient ? s.unsigned_quotient(n, d.magnitude, bits)
                          : s.unsigned_remainder(n, d.magnitude, bits);
    }

    Operand narrow(const Operand& n, const Division& d, const Range& range) {
        Sequence s(module_, function_, 32, out_);
        const Operand low = s.converted(Mod::kU32, Mod::kU64, n);
        return s.converted(Mod::kU64, Mod::kU32, not_negative(s, low, d, bits_of(range)));
    }

    ptx::Module& module_;
    uint32_t function_;
    Ranges* ranges_;
    std::vector<Stmt> out_;
    bool used_ranges_ = false;
};

}  // namespace

Multiplier unsigned_multiplier(uint32_t bits, uint64_t divisor, uint32_t numerator_bits) {
    const auto [m, s] = least_multiplier(bits, divisor, bits - numerator_bits);
    return {truncate(static_cast<uint64_t>(m), bits), s, m >> bits != 0};
}

Multiplier signed_multiplier(uint32_t bits, uint64_t divisor) {
    const auto [m, s] = least_multiplier(bits, divisor, 1);
    return {static_cast<uint64_t>(m), s, m >> (bits - 1) != 0};
}

uint32_t divide_by_literals(ptx::Module& module, uint32_t function, Ranges* ranges,
                            bool* used_ranges) {
    Divider divider(module, function, ranges);
    const uint32_t count = divider.run();
    *used_ranges = *used_ranges || divider.used_ranges();
    return count;
}

}  // namespace ttt::xform
