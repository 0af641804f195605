#include "xform/transforms/integers.h"

#include <fmt/format.h>

#include <algorithm>

namespace ttt::xform {
namespace {

using ptx::Mod;
using ptx::Opcode;
using ptx::Stmt;
using ptx::Type;

size_t arity(Opcode op) {
    switch (op) {
        case Opcode::kMov:
        case Opcode::kNot:
        case Opcode::kNeg:
        case Opcode::kCvt:
            return 1;
        case Opcode::kMad:
            return 3;
        default:
            return 2;
    }
}

class Evaluator {
  public:
    explicit Evaluator(const Stmt& stmt)
        : stmt_(stmt), type_(stmt.last_type()), bits_(ptx::bit_size(type_)) {}

    std::optional<uint64_t> run(std::span<const uint64_t> in) const {
        if (!is_integer(type_) || stmt_.has(Mod::kSat) || stmt_.has(Mod::kCc) ||
            stmt_.has(Mod::kHi) || in.size() < arity(stmt_.op)) {
            return std::nullopt;
        }
        switch (stmt_.op) {
            case Opcode::kMov:
                return truncate(in[0], bits_);
            case Opcode::kAdd:
                return truncate(in[0] + in[1], bits_);
            case Opcode::kSub:
                return truncate(in[0] - in[1], bits_);
            case Opcode::kAnd:
                return truncate(in[0] & in[1], bits_);
            case Opcode::kOr:
                return truncate(in[0] | in[1], bits_);
            case Opcode::kXor:
                return truncate(in[0] ^ in[1], bits_);
            case Opcode::kNot:
                return truncate(~in[0], bits_);
            case Opcode::kNeg:
                return truncate(0 - in[0], bits_);
            case Opcode::kMul:
                return product(in[0], in[1]);
            case Opcode::kMad:
                return multiply_add(in);
            case Opcode::kDiv:
            case Opcode::kRem:
                return divide(in[0], in[1]);
            case Opcode::kShl:
                return truncate(in[1], 32) >= bits_ ? 0
                                                    : truncate(in[0] << truncate(in[1], 32), bits_);
            case Opcode::kShr:
                return shift_right(in[0], truncate(in[1], 32));
            case Opcode::kMin:
            case Opcode::kMax:
                return extreme(in[0], in[1]);
            case Opcode::kCvt:
                return convert(in[0]);
            default:
                return std::nullopt;
        }
    }

    bool less(uint64_t a, uint64_t b) const {
        const uint64_t x = widen(a, type_), y = widen(b, type_);
        return ptx::is_signed(type_) ? static_cast<int64_t>(x) < static_cast<int64_t>(y) : x < y;
    }

  private:
    std::optional<uint64_t> product(uint64_t a, uint64_t b) const {
        if (stmt_.has(Mod::kWide)) return truncate(widen(a, type_) * widen(b, type_), 2 * bits_);
        if (stmt_.has(Mod::kLo)) return truncate(a * b, bits_);
        return std::nullopt;
    }
    std::optional<uint64_t> multiply_add(std::span<const uint64_t> in) const {
        const auto p = product(in[0], in[1]);
        if (!p) return std::nullopt;
        return truncate(*p + in[2], stmt_.has(Mod::kWide) ? 2 * bits_ : bits_);
    }
    std::optional<uint64_t> divide(uint64_t a, uint64_t b) const {
        const bool quotient = stmt_.op == Opcode::kDiv;
        const uint64_t x = widen(a, type_), y = widen(b, type_);
        if (y == 0) return std::nullopt;
        if (!ptx::is_signed(type_)) return quotient ? x / y : x % y;
        // The least value over -1 wraps round to itself.
        if (y == ~uint64_t{0}) return quotient ? truncate(0 - x, bits_) : 0;
        const auto n = static_cast<int64_t>(x), d = static_cast<int64_t>(y);
        return truncate(static_cast<uint64_t>(quotient ? n / d : n % d), bits_);
    }
    uint64_t shift_right(uint64_t value, uint64_t count) const {
        if (ptx::is_signed(type_)) {
            return truncate(static_cast<uint64_t>(as_signed(value, bits_) >>
                                                  std::min<uint64_t>(count, bits_ - 1)),
                            bits_);
        }
        return count >= bits_ ? 0 : truncate(value, bits_) >> count;
    }
    uint64_t extreme(uint64_t a, uint64_t b) const {
        return truncate((stmt_.op == Opcode::kMin) == less(a, b) ? a : b, bits_);
    }
    std::optional<uint64_t> convert(uint64_t value) const {
        const Type to = stmt_.type(0), from = stmt_.type(1);
        if (stmt_.mod_count != 2 || !is_integer(to) || !is_integer(from)) return std::nullopt;
        return truncate(widen(value, from), ptx::bit_size(to));
    }

    const Stmt& stmt_;
    Type type_;
    uint32_t bits_;
};

}  // namespace

bool is_integer(Type type) {
    const uint32_t bits = ptx::bit_size(type);
    return type != Type::kNone && !ptx::is_float(type) && bits >= 8 && bits <= 64;
}

uint64_t truncate(uint64_t value, uint32_t bits) {
    return bits >= 64 ? value : value & ((uint64_t{1} << bits) - 1);
}

int64_t as_signed(uint64_t value, uint32_t bits) {
    const uint32_t shift = 64 - bits;
    return static_cast<int64_t>(value << shift) >> shift;
}

uint64_t widen(uint64_t value, Type type) {
    const uint32_t bits = ptx::bit_size(type);
    return ptx::is_signed(type) ? static_cast<uint64_t>(as_signed(value, bits))
                                : truncate(value, bits);
}

std::optional<uint64_t> evaluate(const Stmt& stmt, std::span<const uint64_t> in) {
    return Evaluator(stmt).run(in);
}

std::optional<bool> compare(const Stmt& setp, uint64_t a, uint64_t b) {
    const Type type = setp.last_type();
    if (!is_integer(type) || setp.mod_count != 2) return std::nullopt;
    const bool equal = widen(a, type) == widen(b, type), less = Evaluator(setp).less(a, b);
    switch (setp.mods[0]) {
        case Mod::kEq:
            return equal;
        case Mod::kNe:
            return !equal;
        case Mod::kLt:
            return less;
        case Mod::kGe:
            return !less;
        case Mod::kLe:
            return less || equal;
        case Mod::kGt:
            return !less && !equal;
        default:
            return std::nullopt;
    }
}

ptx::Operand integer_literal(ptx::Module& module, uint64_t bits) {
    ptx::Operand out;
    out.kind = ptx::Operand::Kind::kImmediate;
    out.value = bits;
    out.text = module.intern(fmt::format("{}", bits));
    return out;
}

}  // namespace ttt::xform
