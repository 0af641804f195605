#include <bit>
#include <charconv>
#include <limits>

#include "ptx/parser.h"

namespace ttt::ptx {
namespace {

using Literal = Operand::Literal;

struct Operator {
    std::string_view spelling;
    int level;
};
// Longest spelling first; levels as in C. Level 1 is ?:.
constexpr Operator kOperators[] = {{"||", 2}, {"&&", 3}, {"==", 7}, {"!=", 7}, {"<=", 8},
                                   {">=", 8}, {"<<", 9}, {">>", 9}, {"|", 4},  {"^", 5},
                                   {"&", 6},  {"<", 8},  {">", 8},  {"+", 10}, {"-", 10},
                                   {"*", 11}, {"/", 11}, {"%", 11}};

const Operator* operator_at(std::string_view text) {
    for (const Operator& o : kOperators)
        if (text.starts_with(o.spelling)) return &o;
    return nullptr;
}

bool divides(std::string_view op) { return op == "/" || op == "%"; }

// Constant expressions are 64-bit; we compute as signed, as the assembler does unless told
// otherwise.
uint64_t apply(std::string_view op, uint64_t a, uint64_t b) {
    const auto sa = static_cast<int64_t>(a), sb = static_cast<int64_t>(b);
    if (op == "+") return a + b;
    if (op == "-") return a - b;
    if (op == "*") return a * b;
    if (divides(op) && sb == -1) return op == "/" ? ~a + 1 : 0;  // INT64_MIN / -1 would trap
    if (op == "/") return static_cast<uint64_t>(sa / sb);
    if (op == "%") return static_cast<uint64_t>(sa % sb);
    if (op == "<<") return b < 64 ? a << b : 0;
    if (op == ">>") return static_cast<uint64_t>(sa >> (b < 64 ? b : 63));
    if (op == "&") return a & b;
    if (op == "|") return a | b;
    if (op == "^") return a ^ b;
    if (op == "<") return sa < sb;
    if (op == "<=") return sa <= sb;
    if (op == ">") return sa > sb;
    if (op == ">=") return sa >= sb;
    if (op == "==") return a == b;
    if (op == "!=") return a != b;
    return op == "&&" ? (a != 0 && b != 0) : (a != 0 || b != 0);
}

double as_double(const Constant& c) {
    if (c.literal == Literal::kF64) return std::bit_cast<double>(c.bits);
    if (c.literal == Literal::kF32) return std::bit_cast<float>(static_cast<uint32_t>(c.bits));
    return static_cast<double>(static_cast<int64_t>(c.bits));
}

bool apply_float(std::string_view op, Constant& a, const Constant& b) {
    const double x = as_double(a), y = as_double(b);
    double r = 0;
    if (op == "+")
        r = x + y;
    else if (op == "-")
        r = x - y;
    else if (op == "*")
        r = x * y;
    else if (op == "/")
        r = x / y;
    else
        return false;
    a = {Literal::kF64, std::bit_cast<uint64_t>(r)};
    return true;
}

bool digits_in_base(std::string_view digits, int base, uint64_t& value) {
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    return error == std::errc() && end == digits.data() + digits.size() && !digits.empty();
}

bool read_integer(std::string_view text, uint64_t& value) {
    if (text.ends_with('U')) text.remove_suffix(1);
    if (text.starts_with("0x") || text.starts_with("0X"))
        return digits_in_base(text.substr(2), 16, value);
    if (text.starts_with("0b") || text.starts_with("0B"))
        return digits_in_base(text.substr(2), 2, value);
    const bool octal = text.size() > 1 && text[0] == '0';
    return digits_in_base(text, octal ? 8 : 10, value);
}

bool read_literal(std::string_view text, Constant& value) {
    const char kind = text.size() > 2 && text[0] == '0' ? text[1] : '\0';
    if (kind == 'f' || kind == 'F' || kind == 'd' || kind == 'D') {
        const bool single = kind == 'f' || kind == 'F';
        value.literal = single ? Literal::kF32 : Literal::kF64;
        return text.size() == (single ? 10u : 18u) &&
               digits_in_base(text.substr(2), 16, value.bits);
    }
    value.literal = Literal::kInt;
    if (read_integer(text, value.bits)) return true;
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (end != text.data() + text.size() || error == std::errc::invalid_argument) return false;
    if (text.find_first_of(".eE") == std::string_view::npos) return false;  // integer too large
    if (error == std::errc::result_out_of_range) {
        const bool tiny =
            text.find("e-") != std::string_view::npos || text.find("E-") != std::string_view::npos;
        number = tiny ? 0.0 : std::numeric_limits<double>::infinity();
    }
    value = {Literal::kF64, std::bit_cast<uint64_t>(number)};
    return true;
}

// Bits of an initialiser's constant in the variable's own type.
uint64_t bits_as(const Constant& c, Type type) {
    if (type == Type::kF32 && c.literal != Literal::kF32)
        return std::bit_cast<uint32_t>(static_cast<float>(as_double(c)));
    if (type == Type::kF64 && c.literal != Literal::kF64)
        return std::bit_cast<uint64_t>(as_double(c));
    return c.bits;
}

}  // namespace

bool Parser::parse_unsigned(uint64_t& value, const char* what) {
    if (token_.kind != Kind::kNumber) return unexpected(what);
    if (!read_integer(token_.text, value)) return fail(std::string("bad number: expected ") + what);
    advance();
    return true;
}

// condition ? a : b, or a binary expression
bool Parser::parse_constant(Constant& value, uint32_t depth) {
    if (!deeper(depth)) return false;
    if (!parse_binary(value, 2, depth)) return false;
    if (!take('?')) return true;
    Constant yes, no;
    if (!parse_constant(yes, depth) || !expect(':', "in the conditional constant")) return false;
    if (!parse_constant(no, depth)) return false;
    value = value.bits != 0 ? yes : no;
    return true;
}

bool Parser::parse_binary(Constant& value, int min_level, uint32_t depth) {
    if (!parse_unary(value, depth)) return false;
    while (token_.kind == Kind::kPunct && !is_plain_end()) {
        const Operator* op = operator_at(lexer_.text().substr(token_.begin, 2));
        if (op == nullptr || op->level < min_level) return true;
        const uint32_t begin = token_.begin;
        advance();
        if (op->spelling.size() == 2) advance();
        Constant right;
        uint32_t below = depth;
        if (!deeper(below) || !parse_binary(right, op->level + 1, below)) return false;
        if (value.literal != Literal::kInt || right.literal != Literal::kInt) {
            if (!apply_float(op->spelling, value, right))
                return fail_at(begin, "operator needs integer operands");
            continue;
        }
        if (divides(op->spelling) && right.bits == 0)
            return fail_at(begin, "division by zero in a constant");
        value.bits = apply(op->spelling, value.bits, right.bits);
    }
    return true;
}

bool Parser::parse_unary(Constant& value, uint32_t depth) {
    if (!deeper(depth)) return false;
    if (token_.kind != Kind::kPunct) return parse_literal(value);
    const char op = token_.punct;
    if (op == '(') return parse_cast(value, depth);
    if (op != '-' && op != '+' && op != '~' && op != '!') return unexpected("a constant");
    const uint32_t begin = token_.begin;
    advance();
    if (!parse_unary(value, depth)) return false;
    if (op == '+') return true;
    if (value.literal != Literal::kInt) {
        if (op != '-') return fail_at(begin, "operator needs an integer operand");
        value.bits ^= value.literal == Literal::kF32 ? uint64_t{1} << 31 : uint64_t{1} << 63;
        return true;
    }
    value.bits = op == '-' ? ~value.bits + 1 : op == '~' ? ~value.bits : value.bits == 0;
    return true;
}

// (expression), (.s64)expression, (.u64)expression
bool Parser::parse_cast(Constant& value, uint32_t depth) {
    advance();
    if (at_dot()) {
        if (token_.text != "s64" && token_.text != "u64") return unexpected("(.s64) or (.u64)");
        advance();
        return expect(')', "after the cast") && parse_unary(value, depth);
    }
    return parse_constant(value, depth) && expect(')', "after the constant");
}

bool Parser::parse_literal(Constant& value) {
    if (token_.kind == Kind::kWord && token_.text == "WARP_SZ") {
        value = {Literal::kInt, 32};
    } else if (token_.kind != Kind::kNumber) {
        return unexpected("a constant");
    } else if (!read_literal(token_.text, value)) {
        return fail("bad number");
    }
    advance();
    return true;
}

bool Parser::parse_initialiser(Variable& variable, const std::vector<uint64_t>& extents) {
    variable.initialised = true;
    const Symbol& symbol = module_.symbols[variable.sym];
    // Samplers and textures list named properties, which only the assembler understands.
    const bool properties = symbol.type == Type::kTexRef || symbol.type == Type::kSamplerRef ||
                            symbol.type == Type::kSurfRef || symbol.type == Type::kNone;
    if (properties && at('{')) return skip_group();
    std::vector<uint64_t> shape = extents;
    if (symbol.vector > 1) shape.push_back(symbol.vector);
    std::vector<uint64_t> strides(shape.size(), 1);
    for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
    if (at('{')) return parse_init_list(variable, strides, 0);
    return parse_init_element(variable);
}

// A nested list fills one sub-array; what it leaves out is zero.
bool Parser::parse_init_list(Variable& v, const std::vector<uint64_t>& strides, size_t level) {
    uint32_t depth = static_cast<uint32_t>(level);
    if (!deeper(depth)) return false;
    advance();
    const size_t start = v.init.size();
    size_t lists = 0;
    while (!at('}')) {
        if (at('{')) {
            const uint64_t stride = level < strides.size() ? strides[level] : 1;
            const uint64_t next = start + ++lists * stride;
            if (!parse_init_list(v, strides, level + 1)) return false;
            if (at('}') || v.init.size() >= next) {
                take(',');
                continue;
            }
            // A few bytes of text may not claim gigabytes.
            padding_ += next - v.init.size();
            if (padding_ > (uint64_t{1} << 22)) return fail("initialisers leave out too much");
            v.init.resize(next);
        } else if (!parse_init_element(v)) {
            return false;
        }
        if (!take(',')) break;
    }
    return expect('}', "after the initialiser");
}

bool Parser::parse_init_element(Variable& v) {
    Init init;
    const Type type = module_.symbols[v.sym].type;
    if (token_.kind == Kind::kWord && token_.text != "WARP_SZ") {
        if (!parse_init_symbol(v, init)) return false;
    } else {
        Constant constant;
        if (!parse_constant(constant, 0)) return false;
        if (at('(')) {  // 0xFF00(symbol): one byte of an address
            if (constant.bits == 0) return fail("empty byte mask");
            init.mask_shift = static_cast<uint8_t>(std::countr_zero(constant.bits) / 8);
            advance();
            if (!parse_init_symbol(v, init) || !expect(')', "after the masked symbol"))
                return false;
        } else {
            init.value = bits_as(constant, type);
        }
    }
    v.init.push_back(init);
    return true;
}

bool Parser::parse_init_symbol(Variable& v, Init& init) {
    if (token_.kind != Kind::kWord) return unexpected("a symbol");
    init.generic = token_.text == "generic";
    if (init.generic) {
        advance();
        if (!expect('(', "after generic")) return false;
        if (token_.kind != Kind::kWord) return unexpected("a symbol in generic()");
    }
    const Name name = token_.text;
    init.sym = scopes_.find(name, function_).sym;
    if (init.sym == kNoSym)
        pending_inits_.push_back({static_cast<uint32_t>(module_.variables.size()),
                                  static_cast<uint32_t>(v.init.size()), name});
    advance();
    if (!parse_addend(init.value)) return false;
    if (init.generic && !expect(')', "after generic(symbol")) return false;
    return parse_addend(init.value);
}

}  // namespace ttt::ptx
