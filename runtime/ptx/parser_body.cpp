#include "ptx/parser.h"
#include "ptx/words.h"

namespace ttt::ptx {
namespace {

Space body_space(std::string_view word) {
    if (word == "shared") return Space::kShared;
    if (word == "local") return Space::kLocal;
    if (word == "param") return Space::kParam;
    if (word == "global") return Space::kGlobal;
    if (word == "const") return Space::kConst;
    return Space::kGeneric;
}

}  // namespace

bool Parser::parse_body(Function& f) {
    advance();  // {
    scopes_.enter();
    pending_start_.push_back(pending_.size());
    const size_t outer = pending_start_.size();
    while (pending_start_.size() >= outer)
        if (!parse_statement(f)) return false;
    f.body.shrink_to_fit();  // a third of a large module's memory would be spare room
    return true;
}

bool Parser::parse_statement(Function& f) {
    if (take(';')) return true;
    Stmt stmt;
    stmt.offset = token_.begin;
    if (token_.kind == Kind::kWord) {
        if (at_label() ? !parse_label(stmt) : !parse_instruction(stmt)) return false;
    } else if (at('@')) {
        if (!parse_guard(stmt) || !parse_instruction(stmt)) return false;
    } else if (at_dot()) {
        if (!parse_dot_statement(stmt)) return false;
    } else if (at('{')) {
        if (!open_scope(stmt)) return false;
    } else if (at('}')) {
        if (!close_scope(stmt)) return false;
        if (scopes_.depth() < 2) return true;  // the body itself
    } else if (at('#')) {
        stmt.kind = Stmt::Kind::kDirective;
        const uint32_t begin = token_.begin;
        if (!skip_unknown()) return false;
        stmt.text = slice(begin);
        ++module_.opaque_count;
    } else {
        return unexpected(token_.kind == Kind::kEnd ? "'}' at the end of the body" : "a statement");
    }
    commit(f, std::move(stmt));
    return !error_;
}

bool Parser::at_label() {
    const Name text = *source_;
    size_t i = token_.end;
    while (i < text.size() && (text[i] == ' ' || text[i] == '\t')) ++i;
    if (i >= text.size()) return false;
    if (text[i] == '\n' || text[i] == '\r' || text[i] == '/') return peek().is(':');
    return text[i] == ':';
}

void Parser::commit(Function& f, Stmt&& stmt) {
    stmt.id = module_.next_id++;
    f.body.push_back(std::move(stmt));
    collect_pending(f.body.back().operands);
}

void Parser::collect_pending(std::vector<Operand>& operands) {
    for (Operand& o : operands) {
        if (o.kind == Operand::Kind::kSymbol || o.kind == Operand::Kind::kAddress)
            if (o.sym == kNoSym && !o.text.empty()) pending_.push_back(&o);
        if (!o.elems.empty()) collect_pending(o.elems);
    }
}

bool Parser::open_scope(Stmt& stmt) {
    if (scopes_.depth() > limits_.max_depth)
        return fail("nested deeper than " + std::to_string(limits_.max_depth));
    advance();
    stmt.kind = Stmt::Kind::kScopeBegin;
    scopes_.enter();
    pending_start_.push_back(pending_.size());
    return true;
}

bool Parser::close_scope(Stmt& stmt) {
    stmt.kind = Stmt::Kind::kScopeEnd;
    resolve_scope(false);
    pending_start_.pop_back();
    scopes_.leave();
    advance();
    return true;
}

// A name that was unknown when used: a label further down in this scope, else the enclosing scope's
// business.
void Parser::resolve_scope(bool last) {
    const size_t start = last ? 0 : pending_start_.back();
    size_t kept = start;
    for (size_t i = start; i < pending_.size(); ++i) {
        Operand* o = pending_[i];
        const Sym sym = scopes_.find_here(o->text);
        if (sym != kNoSym) {
            o->sym = sym;
            o->text = {};
        } else if (!last) {
            pending_[kept++] = o;
        } else if (future_) {
            o->kind = o->kind == Operand::Kind::kSymbol ? Operand::Kind::kText : o->kind;
            ++module_.opaque_count;
        } else {
            const auto offset = static_cast<uint32_t>(o->text.data() - source_->data());
            fail_at(offset, "undeclared name '" + std::string(o->text.substr(0, 40)) + "'");
            return;
        }
    }
    pending_.resize(kept);
}

bool Parser::parse_label(Stmt& stmt) {
    stmt.kind = Stmt::Kind::kLabel;
    Symbol symbol;
    symbol.kind = Symbol::Kind::kLabel;
    symbol.name = token_.text;
    symbol.function = function_;
    advance();
    advance();  // :
    return declare(symbol, stmt.sym);
}

bool Parser::parse_guard(Stmt& stmt) {
    advance();  // @
    stmt.guard_negated = take('!');
    if (token_.kind != Kind::kWord) return unexpected("a predicate register after '@'");
    stmt.guard = scopes_.find(token_.text, function_).sym;
    if (stmt.guard == kNoSym || module_.symbols[stmt.guard].kind != Symbol::Kind::kRegister)
        return fail("guard is no declared predicate register");
    advance();
    if (token_.kind != Kind::kWord) return unexpected("an instruction after the guard");
    return true;
}

bool Parser::parse_dot_statement(Stmt& stmt) {
    const uint32_t begin = token_.begin;
    if (token_.text == "reg") return parse_registers(stmt);
    if (token_.text == "loc") return parse_loc(stmt);
    if (token_.text == "branchtargets" || token_.text == "calltargets")
        return parse_target_list(stmt);
    if (const Space space = body_space(token_.text); space != Space::kGeneric) {
        stmt.kind = Stmt::Kind::kVariable;
        advance();
        if (!parse_variables(space, {}, stmt.sym)) return false;
        stmt.text = slice(begin);
        return true;
    }
    stmt.kind = Stmt::Kind::kDirective;
    const Name word = token_.text;
    if (word == "callprototype" ||
        word == "pragma") {  // may continue with a directive on a new line
        while (!at(';')) {
            if (token_.kind == Kind::kEnd || token_.kind == Kind::kBad || at('}'))
                return unexpected("';' after the directive");
            advance();
        }
        advance();
    } else {
        if (!skip_unknown()) return false;
        ++module_.opaque_count;
    }
    stmt.text = slice(begin);
    return true;
}

// .loc file line column [, function_name label[+offset], inlined_at file line column]
bool Parser::parse_loc(Stmt& stmt) {
    const uint32_t begin = token_.begin;
    stmt.kind = Stmt::Kind::kDirective;
    advance();
    for (int i = 0; i < 3; ++i) {
        if (token_.kind != Kind::kNumber) return unexpected("file, line and column after .loc");
        advance();
    }
    while (at(',')) {
        advance();
        if (token_.kind != Kind::kWord) return unexpected("an attribute of .loc");
        const bool name = token_.text == "function_name";
        advance();
        if (name && token_.kind == Kind::kWord) advance();
        if (name && at('+')) advance();
        while (token_.kind == Kind::kNumber) advance();
    }
    stmt.text = slice(begin);
    return true;
}

bool Parser::parse_target_list(Stmt& stmt) {
    const uint32_t begin = token_.begin;
    stmt.kind = Stmt::Kind::kDirective;
    advance();
    const uint32_t list = token_.begin;
    if (!parse_operands(stmt)) return false;
    for (const Operand& o : stmt.operands)
        if (o.kind != Operand::Kind::kSymbol) return fail_at(list, "expected a list of names");
    if (!expect(';', "after the list of targets")) return false;
    stmt.text = slice(begin);
    return true;
}

bool Parser::parse_instruction(Stmt& stmt) {
    const uint32_t begin = token_.begin;
    stmt.op = find_opcode(token_.text);
    advance();
    if (stmt.op == Opcode::kOpaque) return parse_opaque(stmt, begin);
    while (at_dot()) {
        const Mod mod = find_mod(token_.text);
        if (mod == Mod::kNone || stmt.mod_count == std::size(stmt.mods))
            return parse_opaque(stmt, begin);
        stmt.mods[stmt.mod_count++] = mod;
        advance();
    }
    in_call_ = stmt.op == Opcode::kCall;
    if (!at(';') && !parse_operands(stmt)) return false;
    return expect(';', "after the instruction");
}

bool Parser::parse_opaque(Stmt& stmt, uint32_t begin) {
    stmt.op = Opcode::kOpaque;
    stmt.mod_count = 0;
    while (!at(';')) {
        if (token_.kind == Kind::kEnd || token_.kind == Kind::kBad || at('}'))
            return unexpected("';' after the instruction");
        if (at('(') || at('[') || at('{')) {
            if (!skip_group()) return false;
        } else {
            advance();
        }
    }
    advance();
    stmt.text = slice(begin);
    ++module_.opaque_count;
    return true;
}

}  // namespace ttt::ptx
