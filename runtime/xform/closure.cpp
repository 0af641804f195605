#include "xform/closure.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace ttt::xform {
namespace {

using ptx::Function;
using ptx::Item;
using ptx::Module;
using ptx::Operand;
using ptx::Stmt;
using ptx::Sym;

class Closure {
  public:
    explicit Closure(Module& module) : module_(module) {}

    void keep(uint32_t function) {
        add_function(function);
        while (!work_.empty()) {
            const Sym sym = work_.back();
            work_.pop_back();
            follow(sym);
        }
        drop_the_rest();
    }

  private:
    void add_function(uint32_t f) {
        if (!functions_.insert(f).second) return;
        for (const Stmt& stmt : module_.functions[f].body) {
            for (const Operand& operand : stmt.operands) add_operand(operand);
            if (stmt.operands.empty() && !stmt.text.empty()) add_text(stmt.text);
        }
    }

    void add_operand(const Operand& operand) {
        if (operand.sym != ptx::kNoSym) work_.push_back(operand.sym);
        if (operand.kind == Operand::Kind::kText) add_text(operand.text);
        for (const Operand& elem : operand.elems) add_operand(elem);
    }

    // Verbatim text may name anything: keep every module-level symbol that occurs in it.
    void add_text(std::string_view text) {
        for (const ptx::Variable& v : module_.variables) {
            if (text.find(module_.at(v.sym).name) != std::string_view::npos) work_.push_back(v.sym);
        }
        for (const Function& f : module_.functions) {
            if (text.find(f.name) != std::string_view::npos) work_.push_back(f.sym);
        }
    }

    void follow(Sym sym) {
        if (sym >= module_.symbols.size() || !seen_.insert(sym).second) return;
        const ptx::Symbol& symbol = module_.at(sym);
        if (symbol.kind == ptx::Symbol::Kind::kFunction) {
            // A declaration and its definition share the name; keep both.
            for (uint32_t f = 0; f < module_.functions.size(); ++f) {
                if (module_.functions[f].name == symbol.name) add_function(f);
            }
        }
        for (uint32_t v = 0; v < module_.variables.size(); ++v) {
            if (module_.variables[v].sym != sym &&
                module_.at(module_.variables[v].sym).name != symbol.name)
                continue;
            if (!variables_.insert(v).second) continue;
            for (const ptx::Init& init : module_.variables[v].init) {
                if (init.sym != ptx::kNoSym) work_.push_back(init.sym);
            }
            add_text(initialiser(module_.variables[v].text));
        }
    }

    static std::string_view initialiser(std::string_view text) {
        const size_t at = text.find('=');
        return at == std::string_view::npos ? std::string_view{} : text.substr(at);
    }

    void drop_the_rest() {
        for (uint32_t f = 0; f < module_.functions.size(); ++f) {
            Function& function = module_.functions[f];
            std::erase_if(function.body, [](const Stmt& s) {
                return s.kind == Stmt::Kind::kDirective && s.text.starts_with(".loc");
            });
            if (functions_.contains(f)) continue;
            function.body.clear();
            function.fresh_registers.clear();
            function.has_body = false;
        }
        std::erase_if(module_.items, [&](const Item& item) {
            switch (item.kind) {
                case Item::Kind::kFunction:
                    return !functions_.contains(item.index);
                case Item::Kind::kVariable:
                    return !variables_.contains(item.index);
                default:
                    return item.text.starts_with(".file") || item.text.starts_with(".section");
            }
        });
        drop_variables();
    }

    // A loaded module places every variable it has, so those nobody names must go.
    void drop_variables() {
        std::vector<ptx::Variable> kept;
        std::vector<uint32_t> moved(module_.variables.size());
        for (uint32_t v : variables_) {
            moved[v] = static_cast<uint32_t>(kept.size());
            kept.push_back(std::move(module_.variables[v]));
        }
        module_.variables = std::move(kept);
        for (Item& item : module_.items) {
            if (item.kind == Item::Kind::kVariable) item.index = moved[item.index];
        }
    }

    Module& module_;
    std::set<uint32_t> functions_, variables_;
    std::set<Sym> seen_;
    std::vector<Sym> work_;
};

}  // namespace

Result<Module> extract(const Module& module, std::string_view entry) {
    const Function* function = module.find(entry);
    if (function == nullptr || !function->is_entry) {
        return make_error(Code::kNotFound, fmt::format("the module has no kernel '{}'", entry));
    }
    if (module.target.find("debug") != std::string_view::npos) {
        return make_error(Code::kUnsupported, "the module is compiled for debugging");
    }
    const auto index = static_cast<uint32_t>(function - module.functions.data());
    Module out = module.clone();
    Closure(out).keep(index);
    return out;
}

}  // namespace ttt::xform
