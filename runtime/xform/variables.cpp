#include "xform/variables.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "ptx/dataflow.h"
#include "ptx/module_variables.h"
#include "xform/closure.h"

namespace ttt::xform {
namespace {

using ptx::Mod;
using ptx::Module;
using ptx::Opcode;
using ptx::Operand;
using ptx::Space;
using ptx::Stmt;
using ptx::Sym;
using ptx::Symbol;

constexpr uint32_t kModuleLevel = 0xFFFFFFFFu;

bool is_variable(const Symbol& s) {
    return s.kind == Symbol::Kind::kVariable &&
           (s.space == Space::kGlobal || s.space == Space::kConst) &&
           !ptx::is_compilers_own(s.name);
}

bool plain_name(std::string_view name) {
    const auto letter = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$';
    };
    return !name.empty() && letter(name.front()) &&
           std::all_of(name.begin(), name.end(),
                       [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

class Planner {
  public:
    Planner(const Module& module, const ptx::Function& entry)
        : module_(module), flow_(module, entry) {}

    VariablePlan run() {
        for (uint32_t f : flow_.functions())
            for (const Stmt& stmt : module_.functions[f].body)
                if (stmt.kind == Stmt::Kind::kInstruction) statement(stmt);
        if (!named_.empty()) {
            for (const Symbol& s : module_.symbols)
                if (s.kind == Symbol::Kind::kVariable && !ptx::cell_variable(s.name).empty())
                    refuse(fmt::format("its module has a variable {} of its own", s.name));
            for (const auto& [name, sym] : named_) declaration(name, sym);
            uses();
            for (const ptx::Access& access : flow_.accesses()) this->access(access);
            for (uint32_t l : flow_.leaked())
                if (bound(l))
                    refuse(fmt::format("the address of the module variable {} is used as data",
                                       module_.at(flow_.sources()[l].sym).name));
        }
        return std::move(plan_);
    }

  private:
    void refuse(std::string why) {
        if (plan_.why.empty()) plan_.why = std::move(why);
    }

    void statement(const Stmt& stmt) {
        for (const Operand& operand : stmt.operands) note(operand);
        // Verbatim text may name anything.
        if (stmt.op != Opcode::kOpaque) return;
        for (const ptx::Variable& v : module_.variables)
            if (is_variable(module_.at(v.sym)) &&
                stmt.text.find(module_.at(v.sym).name) != std::string_view::npos)
                refuse("an instruction that is not understood names a module variable");
    }

    void note(const Operand& operand) {
        for (const Operand& elem : operand.elems) note(elem);
        if (operand.sym == ptx::kNoSym) return;
        const Symbol& s = module_.at(operand.sym);
        if (!is_variable(s)) return;
        if (s.function != kModuleLevel)
            refuse(fmt::format("the variable {} is declared inside a function", s.name));
        named_[std::string(s.name)] = operand.sym;
    }

    // Declarations and the definition share the name; the text stands with the first of a
    // statement's variables.
    void declaration(const std::string& name, Sym sym) {
        const Symbol* defined = nullptr;
        std::string_view text;
        for (const ptx::Variable& v : module_.variables) {
            if (!v.text.empty()) text = v.text;
            const Symbol& s = module_.at(v.sym);
            if (s.name != name) continue;
            if (text.find(".managed") != std::string_view::npos)
                refuse(fmt::format("the module variable {} is managed memory", name));
            if (v.linkage == "extern") continue;
            defined = &s;
            for (const ptx::Init& init : v.init)
                if (init.sym != ptx::kNoSym)
                    refuse(fmt::format("the module variable {} holds addresses", name));
        }
        if (defined == nullptr)
            return refuse(fmt::format("the module variable {} is defined in another module", name));
        if (defined->bytes() == 0)
            return refuse(fmt::format("the size of the module variable {} is not known", name));
        if (!plain_name(name))
            refuse(fmt::format("the module variable {} has a name of another form", name));
        plan_.variables.push_back({name, defined->bytes(), module_.at(sym).space == Space::kConst});
    }

    // Only where a register can stand in the variable's place.
    void uses() {
        for (uint32_t f : flow_.functions())
            for (const Stmt& stmt : module_.functions[f].body)
                if (stmt.kind == Stmt::Kind::kInstruction) use(stmt);
    }

    bool names_variable(const Operand& operand) const {
        return operand.sym != ptx::kNoSym && is_variable(module_.at(operand.sym));
    }

    void use(const Stmt& stmt) {
        for (const Operand& operand : stmt.operands) {
            for (const Operand& elem : operand.elems)
                if (names_variable(elem)) refuse("it passes a module variable in a list");
            if (!names_variable(operand)) continue;
            const bool address = operand.kind == Operand::Kind::kAddress;
            const bool value = operand.kind == Operand::Kind::kSymbol &&
                               ptx::byte_size(stmt.type()) == 8 && !stmt.is(Opcode::kCall);
            if (!address && !value)
                refuse(fmt::format("it uses the module variable {} in a way that is not understood",
                                   module_.at(operand.sym).name));
        }
        if (stmt.space() != Space::kConst || stmt.is(Opcode::kLd)) return;
        if (!stmt.is(Opcode::kCvta))
            return refuse("it works on constant memory in a way that is not understood");
        if (stmt.operands.size() < 2) return;
        const Operand& from = stmt.operands[1];
        if (from.kind == Operand::Kind::kRegister) uniform(flow_.value(from.sym).bases);
    }

    bool bound(uint32_t source) const {
        const ptx::Source& s = flow_.sources()[source];
        return s.kind == ptx::Source::Kind::kVariable && is_variable(module_.at(s.sym));
    }

    // An address in constant memory becomes one in global memory, or stays one.
    void uniform(const ptx::SourceSet& bases) {
        const auto n =
            std::count_if(bases.begin(), bases.end(), [&](uint32_t b) { return bound(b); });
        if (n != 0 && static_cast<size_t>(n) != bases.size())
            refuse("an address may lie in a module variable or elsewhere in constant memory");
    }

    void access(const ptx::Access& a) {
        const Stmt& stmt = module_.functions[a.function].body[a.stmt];
        for (uint32_t b : a.bases)
            if (bound(b) && (a.written || a.atomic))
                refuse(fmt::format("it writes the module variable {}",
                                   module_.at(flow_.sources()[b].sym).name));
        if (stmt.space() == Space::kConst) uniform(a.bases);
    }

    const Module& module_;
    ptx::ValueFlow flow_;
    std::map<std::string, Sym> named_;
    VariablePlan plan_;
};

class Binder {
  public:
    Binder(Module& module, const ptx::Function& entry) : module_(module) {
        const ptx::ValueFlow flow(module, entry);
        functions_ = flow.functions();
        for (const ptx::Access& a : flow.accesses())
            if (constant(a.function, a.stmt) && any(flow, a.bases))
                to_global_.insert({a.function, a.stmt});
        for (uint32_t f : functions_)
            for (uint32_t i = 0; i < module.functions[f].body.size(); ++i) {
                const Stmt& stmt = module.functions[f].body[i];
                if (!constant(f, i) || !stmt.is(Opcode::kCvta) || stmt.operands.size() < 2)
                    continue;
                const Sym from = stmt.operands[1].sym;
                if (from != ptx::kNoSym &&
                    (is_variable(module.at(from)) || any(flow, flow.value(from).bases)))
                    to_global_.insert({f, i});
            }
    }

    std::vector<VariableCell> run(const std::vector<ModuleVariable>& variables) {
        std::vector<VariableCell> cells;
        for (const ModuleVariable& v : variables) {
            const std::string cell = ptx::cell_name(v.name);
            cells_[v.name] = declare(cell);
            cells.push_back({cell, v.name, v.bytes});
        }
        for (const auto& [f, stmt] : to_global_) read_in_global(module_.functions[f].body[stmt]);
        for (uint32_t f : functions_) rewrite(f);
        return cells;
    }

  private:
    bool constant(uint32_t f, uint32_t stmt) const {
        const Stmt& s = module_.functions[f].body[stmt];
        return s.kind == Stmt::Kind::kInstruction && s.space() == Space::kConst;
    }

    bool any(const ptx::ValueFlow& flow, const ptx::SourceSet& bases) const {
        return std::any_of(bases.begin(), bases.end(), [&](uint32_t b) {
            const ptx::Source& s = flow.sources()[b];
            return s.kind == ptx::Source::Kind::kVariable && is_variable(module_.at(s.sym));
        });
    }

    // Visible, or the driver would not find it by its name.
    Sym declare(const std::string& cell) {
        Symbol s;
        s.kind = Symbol::Kind::kVariable;
        s.type = ptx::Type::kU64;
        s.space = Space::kConst;
        s.align = 8;
        s.name = module_.intern(cell);
        ptx::Variable v;
        v.sym = module_.add_symbol(s);
        v.linkage = "visible";
        v.text = module_.intern(fmt::format(".visible .const .align 8 .u64 {};", cell));
        const Sym sym = v.sym;
        ptx::Item item;
        item.kind = ptx::Item::Kind::kVariable;
        item.index = static_cast<uint32_t>(module_.variables.size());
        module_.variables.push_back(std::move(v));
        const auto first =
            std::find_if(module_.items.begin(), module_.items.end(),
                         [](const ptx::Item& i) { return i.kind != ptx::Item::Kind::kText; });
        module_.items.insert(first, item);
        return sym;
    }

    // The one place that says how bytes of constant memory are read through their address: by
    // non-coherent loads, which keep what ld.const promised, that no store of the launch changes
    // them.
    static void read_in_global(Stmt& stmt) {
        for (uint8_t i = 0; i < stmt.mod_count; ++i)
            if (stmt.mods[i] == Mod::kConst) stmt.mods[i] = Mod::kGlobal;
        stmt.offset = 0xFFFFFFFFu;
        if (!stmt.is(Opcode::kLd) || stmt.has(Mod::kWeak) || stmt.mod_count >= std::size(stmt.mods))
            return;
        uint8_t at = 0;
        for (uint8_t i = 0; i < stmt.mod_count; ++i) {
            const Mod m = stmt.mods[i];
            if (m == Mod::kGlobal || m == Mod::kCa || m == Mod::kCg || m == Mod::kCs)
                at = static_cast<uint8_t>(i + 1);
        }
        for (uint8_t i = stmt.mod_count; i > at; --i) stmt.mods[i] = stmt.mods[i - 1];
        stmt.mods[at] = Mod::kNc;
        ++stmt.mod_count;
    }

    static Operand reg(Sym sym) {
        Operand o;
        o.kind = Operand::Kind::kRegister;
        o.sym = sym;
        return o;
    }

    Stmt made(Opcode op, std::initializer_list<Mod> mods) {
        Stmt s;
        s.op = op;
        s.id = module_.next_id++;
        s.offset = 0xFFFFFFFFu;
        for (Mod m : mods) s.mods[s.mod_count++] = m;
        return s;
    }

    Operand immediate(uint64_t value) {
        Operand o;
        o.kind = Operand::Kind::kImmediate;
        o.value = value;
        o.text = module_.intern(std::to_string(static_cast<int64_t>(value)));
        return o;
    }

    // Each function loads the addresses it needs once, at its top: the definition reaches every use
    // whatever the control flow, and the assembler can load again where registers are short.
    void rewrite(uint32_t f) {
        std::map<Sym, Sym> address;  // cell → register
        std::vector<Stmt> out;
        for (Stmt& stmt : module_.functions[f].body) {
            if (stmt.kind == Stmt::Kind::kInstruction)
                for (Operand& operand : stmt.operands) replace(f, stmt, operand, address, out);
            out.push_back(std::move(stmt));
        }
        std::vector<Stmt> loads;
        for (const auto& [cell, sym] : address) {
            Stmt load = made(Opcode::kLd, {Mod::kConst, Mod::kU64});
            Operand from;
            from.kind = Operand::Kind::kAddress;
            from.sym = cell;
            load.operands = {reg(sym), from};
            loads.push_back(std::move(load));
        }
        out.insert(out.begin(), std::make_move_iterator(loads.begin()),
                   std::make_move_iterator(loads.end()));
        module_.functions[f].body = std::move(out);
    }

    void replace(uint32_t f, Stmt& stmt, Operand& operand, std::map<Sym, Sym>& address,
                 std::vector<Stmt>& before) {
        if (operand.sym == ptx::kNoSym || !is_variable(module_.at(operand.sym)) ||
            ptx::is_cell(module_.at(operand.sym)))
            return;
        const Sym cell = cells_.at(std::string(module_.at(operand.sym).name));
        const auto [it, fresh] = address.emplace(cell, ptx::kNoSym);
        if (fresh) it->second = module_.add_register(f, ptx::Type::kU64, "at");
        stmt.offset = 0xFFFFFFFFu;
        if (operand.kind == Operand::Kind::kAddress) {
            operand.sym = it->second;
            return;
        }
        const uint64_t addend = operand.value;
        operand = reg(it->second);
        if (addend == 0) return;
        Stmt add = made(Opcode::kAdd, {Mod::kS64});
        const Sym sum = module_.add_register(f, ptx::Type::kU64, "at");
        add.operands = {reg(sum), reg(it->second), immediate(addend)};
        before.push_back(std::move(add));
        operand = reg(sum);
    }

    Module& module_;
    std::vector<uint32_t> functions_;
    std::set<std::pair<uint32_t, uint32_t>> to_global_;
    std::map<std::string, Sym> cells_;
};

}  // namespace

VariablePlan plan_variables(const Module& module, const ptx::Function& entry) {
    return Planner(module, entry).run();
}

std::vector<VariableCell> bind_in_place(Module& module, const ptx::Function& entry,
                                        const VariablePlan& plan) {
    return Binder(module, entry).run(plan.variables);
}

}  // namespace ttt::xform
