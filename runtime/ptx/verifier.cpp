#include <algorithm>
#include <unordered_map>

#include "ptx/ir.h"
#include "ptx/lexer.h"
#include "ptx/operand_types.h"
#include "ptx/scope.h"

namespace ttt::ptx {
namespace {

// Registers of one function, resolved a second time from the declarations' text: a transform that
// lets a register be printed where another declaration hides it, or where none reaches, is caught
// here.
class RegisterScopes {
  public:
    explicit RegisterScopes(uint32_t function) : scopes_(local_, names_), function_(function) {
        scopes_.enter();
    }
    void enter() { scopes_.enter(); }
    bool leave() {
        if (scopes_.depth() <= 1) return false;
        scopes_.leave();
        return true;
    }
    bool balanced() const { return scopes_.depth() == 1; }

    void declare(Name name, Type type, uint8_t vector) {
        Symbol symbol;
        symbol.kind = Symbol::Kind::kRegister;
        symbol.name = name;
        symbol.type = type;
        symbol.vector = vector;
        local_.push_back(symbol);
        scopes_.declare(name, static_cast<Sym>(local_.size() - 1));
    }

    bool declare_text(Name text, Type type, uint8_t vector) {
        Lexer lexer(text);
        Token token = lexer.next();
        while (token.kind != Token::Kind::kEnd && token.kind != Token::Kind::kBad) {
            if (token.kind != Token::Kind::kWord) {
                token = lexer.next();
                continue;
            }
            const Name name = token.text;
            token = lexer.next();
            if (!token.is('<')) {
                declare(name, type, vector);
                continue;
            }
            token = lexer.next();
            uint64_t count = 0;
            for (char c : token.text) count = count * 10 + static_cast<uint64_t>(c - '0');
            scopes_.declare_range({name, count, type, vector});
        }
        return token.kind == Token::Kind::kEnd;
    }

    // Null when `sym` is declared here and is the only symbol that stands for its declaration.
    const char* check_use(Sym sym, const Symbol& symbol) {
        const Sym local = scopes_.find(symbol.name, function_).sym;
        if (local == kNoSym) return "register is not declared in this scope";
        if (local_[local].type != symbol.type) return "register is hidden by another declaration";
        const auto [it, fresh] = owner_.emplace(local, sym);
        if (!fresh && it->second != sym) return "register's name stands for another register here";
        return nullptr;
    }

  private:
    std::vector<Symbol> local_;
    std::deque<std::string> names_;
    Scopes scopes_;
    uint32_t function_;
    std::unordered_map<Sym, Sym> owner_;
};

class FunctionVerifier {
  public:
    FunctionVerifier(const Module& module, uint32_t index)
        : module_(module), function_(module.functions[index]), index_(index), scopes_(index) {}

    Status run() {
        declare_headers();
        TTT_CHECK_OK(collect_labels());
        for (const Stmt& s : function_.body) TTT_CHECK_OK(check(s));
        if (!scopes_.balanced()) return broken(nullptr, "a scope is never closed");
        return ok_status();
    }

  private:
    Error broken(const Stmt* stmt, std::string_view rule) const {
        std::string where = "function " + std::string(function_.name);
        if (stmt != nullptr)
            where += ", statement " + std::to_string(stmt->id) + " '" + print_short(*stmt) + "'";
        return make_error(Code::kInternal, where + ": " + std::string(rule));
    }

    std::string print_short(const Stmt& stmt) const {
        if (stmt.kind == Stmt::Kind::kLabel) return "label";
        if (!indices_sound(stmt)) return std::string(info(stmt.op).spelling);
        std::string text = print(module_, stmt);
        if (text.size() > 80) text.resize(80);
        return text;
    }

    bool indices_sound(const Stmt& stmt) const {
        const auto sound = [&](const auto& self, const Operand& o) -> bool {
            if (o.sym != kNoSym && o.sym >= module_.symbols.size()) return false;
            if (o.kind == Operand::Kind::kRegister && o.sym == kNoSym) return false;
            if (o.kind == Operand::Kind::kPair && o.elems.size() != 2) return false;
            return std::all_of(o.elems.begin(), o.elems.end(),
                               [&](const Operand& e) { return self(self, e); });
        };
        if (stmt.guard != kNoSym && stmt.guard >= module_.symbols.size()) return false;
        return std::all_of(stmt.operands.begin(), stmt.operands.end(),
                           [&](const Operand& o) { return sound(sound, o); });
    }

    void declare_headers() {
        for (const auto* list : {&function_.returns, &function_.params})
            for (Sym sym : *list) {
                const Symbol& s = module_.at(sym);
                if (s.kind == Symbol::Kind::kRegister) scopes_.declare(s.name, s.type, s.vector);
            }
        for (Sym sym : function_.fresh_registers) {
            const Symbol& s = module_.at(sym);
            scopes_.declare(s.name, s.type, s.vector);
        }
    }

    Status collect_labels() {
        std::vector<Sym> seen;
        for (const Stmt& s : function_.body) {
            if (s.kind != Stmt::Kind::kLabel) continue;
            if (s.sym >= module_.symbols.size() || module_.at(s.sym).kind != Symbol::Kind::kLabel)
                return broken(&s, "label statement without a label symbol");
            seen.push_back(s.sym);
        }
        labels_ = std::move(seen);
        std::sort(labels_.begin(), labels_.end());
        if (std::adjacent_find(labels_.begin(), labels_.end()) != labels_.end())
            return broken(nullptr, "a label is defined twice");
        return ok_status();
    }

    Status check(const Stmt& s) {
        switch (s.kind) {
            case Stmt::Kind::kScopeBegin:
                scopes_.enter();
                return ok_status();
            case Stmt::Kind::kScopeEnd:
                if (!scopes_.leave())
                    return broken(nullptr, "a scope is closed that was not opened");
                return ok_status();
            case Stmt::Kind::kRegisters:
                return check_registers(s);
            case Stmt::Kind::kInstruction:
                return check_instruction(s);
            default:
                if (!indices_sound(s)) return broken(&s, "operand names no symbol");
                return ok_status();
        }
    }

    Status check_registers(const Stmt& s) {
        Lexer lexer(s.text);
        Type type = Type::kNone;
        uint8_t vector = 1;
        uint32_t names = 0;
        for (Token t = lexer.next(); t.kind != Token::Kind::kEnd; t = lexer.next()) {
            if (t.kind == Token::Kind::kWord) break;
            if (t.kind == Token::Kind::kDot) read_shape(t.text, type, vector);
            names = lexer.position();
        }
        if (!scopes_.declare_text(s.text.substr(names), type, vector))
            return broken(&s, "register declaration cannot be read");
        return ok_status();
    }

    static void read_shape(Name word, Type& type, uint8_t& vector) {
        if (word == "v2" || word == "v4") vector = static_cast<uint8_t>(word[1] - '0');
        for (int t = 1; t <= static_cast<int>(Type::kSurfRef); ++t)
            if (spelling(static_cast<Type>(t)) == word) type = static_cast<Type>(t);
    }

    Status check_instruction(const Stmt& s) {
        if (!indices_sound(s)) return broken(&s, "operand names no symbol");
        if (s.op == Opcode::kOpaque && s.text.empty())
            return broken(&s, "opaque instruction without text");
        if (s.mod_count > std::size(s.mods)) return broken(&s, "too many modifiers");
        if (s.guard != kNoSym) {
            if (module_.at(s.guard).type != Type::kPred)
                return broken(&s, "guard is no predicate register");
            if (const char* rule = scopes_.check_use(s.guard, module_.at(s.guard)))
                return broken(&s, rule);
        }
        for (const Operand& o : s.operands)
            if (const char* rule = check_operand(o)) return broken(&s, rule);
        if (const char* rule = check_destinations(s)) return broken(&s, rule);
        if (const char* rule = check_branch(s)) return broken(&s, rule);
        if (const char* rule = mismatched_operand(module_, s)) return broken(&s, rule);
        return ok_status();
    }

    const char* check_operand(const Operand& o) {
        for (const Operand& e : o.elems)
            if (const char* rule = check_operand(e)) return rule;
        if (o.sym == kNoSym || !o.elems.empty()) return nullptr;
        const Symbol& symbol = module_.at(o.sym);
        const bool is_register = symbol.kind == Symbol::Kind::kRegister;
        if (is_register) {
            if (symbol.function != index_) return "register belongs to another function";
            return scopes_.check_use(o.sym, symbol);
        }
        if (o.kind == Operand::Kind::kRegister) return "register operand names no register";
        if (symbol.kind == Symbol::Kind::kLabel)
            return std::binary_search(labels_.begin(), labels_.end(), o.sym)
                       ? nullptr
                       : "label is not defined in this function";
        if (symbol.function != 0xFFFFFFFFu && symbol.function != index_)
            return "variable belongs to another function";
        return nullptr;
    }

    static bool is_destination(const Operand& o) {
        using Kind = Operand::Kind;
        switch (o.kind) {
            case Kind::kRegister:
                return !o.negated;
            case Kind::kSink:
            case Kind::kText:
                return true;
            case Kind::kVector:
            case Kind::kPair:
                return std::all_of(o.elems.begin(), o.elems.end(), is_destination);
            default:
                return false;
        }
    }

    static const char* check_destinations(const Stmt& s) {
        if (s.op == Opcode::kOpaque) return nullptr;
        const uint8_t dests = dest_count(s);
        if (s.operands.size() < dests) return "destination is missing";
        for (uint8_t i = 0; i < dests; ++i)
            if (!is_destination(s.operands[i])) return "destination is no register";
        return nullptr;
    }

    const char* check_branch(const Stmt& s) const {
        if (s.op != Opcode::kBra) return nullptr;
        if (s.operands.size() != 1 || s.operands[0].kind != Operand::Kind::kSymbol ||
            s.operands[0].sym == kNoSym ||
            module_.at(s.operands[0].sym).kind != Symbol::Kind::kLabel)
            return "branch without a label";
        return nullptr;
    }

    const Module& module_;
    const Function& function_;
    uint32_t index_;
    RegisterScopes scopes_;
    std::vector<Sym> labels_;
};

Status check_items(const Module& module) {
    for (const Item& item : module.items) {
        const bool bad =
            (item.kind == Item::Kind::kFunction && item.index >= module.functions.size()) ||
            (item.kind == Item::Kind::kVariable && item.index >= module.variables.size());
        if (bad)
            return make_error(Code::kInternal, "module: item without its function or variable");
    }
    return ok_status();
}

}  // namespace

Status verify(const Module& module) {
    TTT_CHECK_OK(check_items(module));
    for (uint32_t i = 0; i < module.functions.size(); ++i)
        if (module.functions[i].has_body) TTT_CHECK_OK(FunctionVerifier(module, i).run());
    return ok_status();
}

}  // namespace ttt::ptx
