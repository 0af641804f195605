#include "ptx/parser.h"
#include "ptx/words.h"

namespace ttt::ptx {

bool Parser::parse_operands(Stmt& stmt) {
    scratch_.clear();
    do {
        Operand operand;
        if (!parse_operand(operand, 0)) return false;
        scratch_.push_back(std::move(operand));
    } while (take(','));
    stmt.operands.reserve(scratch_.size());
    for (Operand& o : scratch_) stmt.operands.push_back(std::move(o));
    return true;
}

// primary ['|' primary]
bool Parser::parse_operand(Operand& operand, uint32_t depth) {
    if (!parse_primary(operand, depth)) return false;
    if (!at('|') || operand.kind == Operand::Kind::kImmediate) return true;
    advance();
    Operand pair;
    pair.kind = Operand::Kind::kPair;
    pair.elems.resize(2);
    pair.elems[0] = std::move(operand);
    if (!parse_primary(pair.elems[1], depth)) return false;
    operand = std::move(pair);
    return true;
}

bool Parser::parse_primary(Operand& operand, uint32_t depth) {
    if (!deeper(depth)) return false;
    if (token_.kind == Kind::kWord) return parse_word_operand(operand);
    if (token_.kind == Kind::kNumber) return parse_immediate(operand);
    if (token_.kind != Kind::kPunct) return unexpected("an operand");
    switch (token_.punct) {
        case '[':
            return parse_address(operand, depth);
        case '{':
            operand.kind = Operand::Kind::kVector;
            return parse_list(operand, '}', depth);
        case '(': {
            const Token next = peek();
            const bool constant = next.kind == Kind::kNumber || next.is('-') || next.is('~') ||
                                  next.is('+') || next.kind == Kind::kDot;
            if (constant && !in_call_) return parse_immediate(operand);
            operand.kind = Operand::Kind::kTuple;
            return parse_list(operand, ')', depth);
        }
        case '!': {
            const Token next = peek();
            if (next.kind != Kind::kWord) return parse_immediate(operand);
            advance();
            if (!parse_word_operand(operand)) return false;
            operand.negated = true;
            return true;
        }
        case '-':
        case '+':
        case '~':
            return parse_immediate(operand);
        default:
            return unexpected("an operand");
    }
}

bool Parser::parse_list(Operand& operand, char close, uint32_t depth) {
    advance();
    operand.elems.reserve(4);
    while (!at(close)) {
        Operand elem;
        if (!parse_operand(elem, depth)) return false;
        operand.elems.push_back(std::move(elem));
        if (!take(',')) break;
    }
    return expect(close, "after the operand list");
}

bool Parser::parse_word_operand(Operand& operand) {
    const Name name = token_.text;
    if (name == "_") {
        advance();
        operand.kind = Operand::Kind::kSink;
        return true;
    }
    if (name == "WARP_SZ") return parse_immediate(operand);
    const Scopes::Found found = scopes_.find(name, function_);
    if (found.sym != kNoSym && module_.symbols[found.sym].kind == Symbol::Kind::kRegister) {
        operand.sym = found.sym;
        return parse_register(operand, name);
    }
    if (found.sym == kNoSym && name.front() == '%') return parse_register(operand, name);
    operand.kind = Operand::Kind::kSymbol;
    operand.sym = found.sym;
    // A label of an outer scope may yet be hidden by one further down in this scope.
    const bool outer_label = found.sym != kNoSym && found.depth != scopes_.depth() &&
                             module_.symbols[found.sym].kind == Symbol::Kind::kLabel;
    if (outer_label) operand.sym = kNoSym;
    if (operand.sym == kNoSym) operand.text = name;
    const uint32_t begin = token_.begin;
    advance();
    if (at('[')) {  // array[index], an older way to write an address: kept as text
        if (!skip_group()) return false;
        operand = Operand();
        operand.text = slice(begin);
        ++module_.opaque_count;
        return true;
    }
    return (!at('+') && !at('-')) || parse_addend(operand.value);
}

bool Parser::parse_register(Operand& operand, Name name) {
    operand.kind = Operand::Kind::kRegister;
    if (operand.sym == kNoSym) {
        const Name base = name.substr(1);
        if (is_special_register(base)) {
            operand.kind = Operand::Kind::kSpecial;
            operand.text = base;
        } else if (future_) {
            operand.kind = Operand::Kind::kText;
            operand.text = name;
            ++module_.opaque_count;
        } else {
            return fail("undeclared register '" + std::string(name.substr(0, 40)) + "'");
        }
    }
    advance();
    return !at_dot() || parse_component(operand);
}

bool Parser::parse_component(Operand& operand) {
    static constexpr std::string_view kComponents = "xyzwrgba";
    const Name word = token_.text;
    const size_t index = word.size() == 1 ? kComponents.find(word[0]) : Name::npos;
    if (operand.kind == Operand::Kind::kText) {  // %future.x: one piece of text
        advance();
        operand.text = slice(static_cast<uint32_t>(operand.text.data() - source_->data()));
        return true;
    }
    if (index < 4) {
        operand.component = static_cast<uint8_t>(index);
    } else if (operand.kind == Operand::Kind::kRegister) {
        // .r/.g/.b/.a are other spellings of .x….w; .b0….h1 select parts in the video instructions.
        if (index != Name::npos) operand.component = static_cast<uint8_t>(index - 4);
        operand.text = word;
    } else if (index != Name::npos) {
        operand.component =
            static_cast<uint8_t>(index - 4);  // the assembler takes %tid.r for %tid.x
    } else {
        return fail("a special register has only .x, .y, .z and .w");
    }
    advance();
    return true;
}

// +c, -c, +-c …: several terms add up; each is a product at most, as in "[a+4*8]".
bool Parser::parse_addend(uint64_t& value) {
    while (at('+') || at('-')) {
        const bool minus = at('-');
        const uint32_t begin = token_.begin;
        advance();
        Constant term;
        if (!parse_binary(term, kProductLevel, 0)) return false;
        if (term.literal != Operand::Literal::kInt) return fail_at(begin, "offset is no integer");
        value += minus ? ~term.bits + 1 : term.bits;
    }
    return true;
}

// [base+offset], [number], [texture, {coordinates}], [map, {coordinates}]
bool Parser::parse_address(Operand& operand, uint32_t depth) {
    advance();
    operand.kind = Operand::Kind::kAddress;
    Operand base;
    const uint32_t begin = token_.begin;
    if (!parse_operand(base, depth)) return false;
    if (base.kind == Operand::Kind::kRegister && (at('+') || at('-')) && !parse_addend(base.value))
        return false;
    if (at(',')) {
        operand.sym = base.sym;
        operand.elems.push_back(std::move(base));
        while (take(',')) {
            Operand elem;
            if (!parse_operand(elem, depth)) return false;
            operand.elems.push_back(std::move(elem));
        }
    } else if (base.kind == Operand::Kind::kRegister || base.kind == Operand::Kind::kSymbol) {
        operand.sym = base.sym;
        operand.value = base.value;
        operand.component = base.component;
        operand.text = base.text;
    } else if (base.kind == Operand::Kind::kImmediate) {
        operand.value = base.value;
    } else if (base.kind == Operand::Kind::kText) {
        operand.elems.push_back(std::move(base));
    } else {
        return fail_at(begin, "expected a register, variable or number as address");
    }
    return expect(']', "after the address");
}

bool Parser::is_plain_end() const {
    return token_.is(',') || token_.is(';') || token_.is(']') || token_.is('}') || token_.is(')');
}

bool Parser::parse_immediate(Operand& operand) {
    const uint32_t begin = token_.begin;
    Constant value;
    if (!parse_constant(value, 0)) return false;
    operand.kind = Operand::Kind::kImmediate;
    operand.literal = value.literal;
    operand.value = value.bits;
    operand.text = slice(begin);
    return true;
}

}  // namespace ttt::ptx
