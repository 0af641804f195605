#include "ptx/ir.h"

#include <algorithm>
#include <map>

namespace ttt::ptx {
namespace {

// Moves every name that lives in the original's `names` to the clone's copy of that string. Names
// in the shared source (and string literals of transforms) stay as they are.
class NameMover {
  public:
    NameMover(const std::deque<std::string>& from, const std::deque<std::string>& to) {
        auto copy = to.begin();
        for (const std::string& text : from) moves_.emplace(text.data(), *copy++);
    }
    void operator()(Name& name) const {
        if (name.data() == nullptr || moves_.empty()) return;
        auto it = moves_.upper_bound(name.data());
        if (it == moves_.begin()) return;
        --it;
        const auto offset = static_cast<size_t>(name.data() - it->first);
        if (offset + name.size() > it->second.size()) return;
        name = Name(it->second).substr(offset, name.size());
    }
    void operator()(Operand& operand) const {
        (*this)(operand.text);
        for (Operand& elem : operand.elems) (*this)(elem);
    }
    void operator()(Function& f) const {
        (*this)(f.linkage);
        (*this)(f.name);
        (*this)(f.header_text);
        for (Directive& d : f.directives) {
            (*this)(d.name);
            (*this)(d.text);
        }
        for (Stmt& s : f.body) {
            (*this)(s.text);
            for (Operand& o : s.operands) (*this)(o);
        }
    }

  private:
    std::map<const char*, std::string_view> moves_;
};

}  // namespace

Type Stmt::type(unsigned k) const {
    for (uint8_t i = 0; i < mod_count; ++i) {
        const Type type = type_of(mods[i]);
        if (type != Type::kNone && k-- == 0) return type;
    }
    return Type::kNone;
}

Type Stmt::last_type() const {
    for (uint8_t i = mod_count; i > 0; --i)
        if (const Type type = type_of(mods[i - 1]); type != Type::kNone) return type;
    return Type::kNone;
}

Space Stmt::space() const {
    for (uint8_t i = 0; i < mod_count; ++i)
        if (const Space space = space_of(mods[i]); space != Space::kGeneric) return space;
    return Space::kGeneric;
}

uint8_t dest_count(const Stmt& stmt) {
    switch (stmt.op) {
        case Opcode::kWmma:
            return stmt.has(Mod::kStore) ? 0 : 1;
        case Opcode::kBar:
        case Opcode::kBarrier:
            return stmt.has(Mod::kRed) ? 1 : 0;
        case Opcode::kMultimem:
            return stmt.has(Mod::kLdReduce) ? 1 : 0;
        case Opcode::kWgmma:
            return stmt.has(Mod::kMmaAsync) ? 1 : 0;
        case Opcode::kTcgen05:
            if (stmt.mod_count == 0 || stmt.mods[0] != Mod::kLd) return 0;
            return stmt.has(Mod::kRed) ? 2 : 1;  // with .red: the values, and the reduced one
        case Opcode::kClusterlaunchcontrol:
            return stmt.has(Mod::kQueryCancel) ? 1 : 0;
        case Opcode::kMbarrier: {
            const bool waits = stmt.has(Mod::kTestWait) || stmt.has(Mod::kTryWait);
            const bool arrives = stmt.mod_count > 0 &&
                                 (stmt.mods[0] == Mod::kArrive || stmt.mods[0] == Mod::kArriveDrop);
            if (waits || stmt.has(Mod::kPendingCount)) return 1;
            // The form on another block's barrier returns no state.
            return arrives && !stmt.operands.empty() &&
                           stmt.operands[0].kind != Operand::Kind::kAddress
                       ? 1
                       : 0;
        }
        default:
            return info(stmt.op).usual_dests;
    }
}

Module Module::clone() const {
    Module copy;
    copy.source = source;
    copy.names = names;
    copy.version_major = version_major;
    copy.version_minor = version_minor;
    copy.target = target;
    copy.address_size = address_size;
    copy.has_address_size = has_address_size;
    copy.symbols = symbols;
    copy.functions = functions;
    copy.variables = variables;
    copy.items = items;
    copy.next_id = next_id;
    copy.opaque_count = opaque_count;
    if (names.empty()) return copy;
    const NameMover move(names, copy.names);
    move(copy.target);
    for (Symbol& s : copy.symbols) move(s.name);
    for (Function& f : copy.functions) move(f);
    for (Variable& v : copy.variables) {
        move(v.linkage);
        move(v.text);
    }
    for (Item& i : copy.items) move(i.text);
    return copy;
}

Name Module::intern(std::string text) { return names.emplace_back(std::move(text)); }

Sym Module::add_symbol(Symbol symbol) {
    symbols.push_back(symbol);
    return static_cast<Sym>(symbols.size() - 1);
}

Sym Module::add_register(uint32_t f, Type type, std::string_view prefix) {
    if (!prefix.empty() && prefix.front() == '%') prefix.remove_prefix(1);
    std::string name;
    const auto taken = [&](const Symbol& s) { return s.name == name; };
    size_t number = symbols.size();
    do {
        name = "%" + std::string(prefix) + "$" + std::to_string(number++);
    } while (std::any_of(symbols.begin(), symbols.end(), taken));
    Symbol symbol;
    symbol.kind = Symbol::Kind::kRegister;
    symbol.type = type;
    symbol.space = Space::kReg;
    symbol.name = intern(std::move(name));
    symbol.function = f;
    const Sym sym = add_symbol(symbol);
    functions[f].fresh_registers.push_back(sym);
    return sym;
}

const Function* Module::find(std::string_view name) const {
    for (const Function& f : functions)
        if (f.has_body && f.name == name) return &f;
    return nullptr;
}

Function* Module::find(std::string_view name) {
    return const_cast<Function*>(static_cast<const Module*>(this)->find(name));
}

std::vector<ParamLayout> param_layout(const Module& module, const Function& function) {
    std::vector<ParamLayout> layout;
    layout.reserve(function.params.size());
    uint32_t offset = 0;
    for (Sym sym : function.params) {
        const Symbol& param = module.at(sym);
        const uint32_t natural = std::max(1u, byte_size(param.type) * param.vector);
        const uint32_t align = param.align != 0 ? param.align : natural;
        const auto size = static_cast<uint32_t>(param.bytes());
        offset = (offset + align - 1) / align * align;
        layout.push_back({offset, size, align});
        offset += size;
    }
    return layout;
}

}  // namespace ttt::ptx
