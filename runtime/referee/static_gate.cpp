#include <fmt/format.h>

#include <set>
#include <string>

#include "ptx/dataflow.h"
#include "ptx/module_variables.h"
#include "referee/referee.h"

namespace ttt::referee {
namespace {

using ptx::Mod;
using ptx::Opcode;
using ptx::Stmt;

// What one instruction does, as far as a variant may not do anything else: the operation, where it
// works in memory, what an atomic computes, and which function or variable it names.
class Kinds {
  public:
    // `division_steps`: false leaves out what an integer division by a constant may become.
    Kinds(const ptx::Module& module, const ptx::Function& entry, bool division_steps)
        : module_(module) {
        for (uint32_t f : ptx::call_closure(module, entry)) {
            for (const Stmt& stmt : module.functions[f].body) {
                if (stmt.kind != Stmt::Kind::kInstruction) continue;
                if (division_steps || !is_division_step(stmt)) add(stmt);
                divides_ = divides_ || ((stmt.op == Opcode::kDiv || stmt.op == Opcode::kRem) &&
                                        integers_only(stmt));
            }
        }
    }
    const std::set<std::string>& all() const { return all_; }
    bool unrounded() const { return unrounded_; }
    bool divides() const { return divides_; }  // integers
    bool cells() const { return cells_; }
    // A variable of the program's that the module has a copy of; empty when there is none.
    const std::string& own() const { return own_; }

  private:
    static bool integers_only(const Stmt& stmt) {
        for (unsigned k = 0; stmt.type(k) != ptx::Type::kNone; ++k)
            if (ptx::is_float(stmt.type(k))) return false;
        return true;
    }

    static bool is_division_step(const Stmt& stmt) {
        switch (stmt.op) {
            case Opcode::kMul:
            case Opcode::kMad:
            case Opcode::kAdd:
            case Opcode::kSub:
            case Opcode::kAnd:
            case Opcode::kShr:
            case Opcode::kNeg:
            case Opcode::kCvt:
                return integers_only(stmt);
            default:
                return false;
        }
    }

    void add(const Stmt& stmt) {
        unrounded_ = unrounded_ || ptx::is_unrounded_float(stmt);
        if (stmt.op == Opcode::kOpaque) {
            all_.insert("opaque " + std::string(stmt.text));
            return;
        }
        all_.insert(kind(stmt));
        for (const ptx::Operand& operand : stmt.operands) names(operand);
    }

    static std::string kind(const Stmt& stmt) {
        std::string out(ptx::info(stmt.op).spelling);
        const uint32_t flags = ptx::info(stmt.op).flags;
        constexpr uint32_t kExact = ptx::kFlagAtomic | ptx::kFlagBarrier | ptx::kFlagWarp |
                                    ptx::kFlagTexture | ptx::kFlagMatrix | ptx::kFlagFence |
                                    ptx::kFlagAsyncCopy | ptx::kFlagExotic;
        if (flags & kExact) {
            for (uint8_t i = 0; i < stmt.mod_count; ++i)
                out += "." + std::string(ptx::spelling(stmt.mods[i]));
        } else if (flags & (ptx::kFlagLoad | ptx::kFlagStore)) {
            for (uint8_t i = 0; i < stmt.mod_count; ++i) {
                const bool space = ptx::space_of(stmt.mods[i]) != ptx::Space::kGeneric;
                if (space || stmt.mods[i] == Mod::kVolatile)
                    out += "." + std::string(ptx::spelling(stmt.mods[i]));
            }
        } else if (ptx::is_approximate(stmt)) {
            out += ".approximate";
        }
        return out;
    }

    void names(const ptx::Operand& operand) {
        for (const ptx::Operand& elem : operand.elems) names(elem);
        if (operand.sym == ptx::kNoSym) return;
        const ptx::Symbol& symbol = module_.at(operand.sym);
        if (symbol.kind == ptx::Symbol::Kind::kFunction)
            all_.insert("function " + std::string(symbol.name));
        const bool global = symbol.function == 0xFFFFFFFFu;
        if (symbol.kind != ptx::Symbol::Kind::kVariable || !global) return;
        if (ptx::is_cell(symbol)) {
            cells_ = true;
            all_.insert("variable " + std::string(ptx::cell_variable(symbol.name)));
            return;
        }
        all_.insert("variable " + std::string(symbol.name));
        const bool memory =
            symbol.space == ptx::Space::kGlobal || symbol.space == ptx::Space::kConst;
        if (memory && !ptx::is_compilers_own(symbol.name)) own_ = symbol.name;
    }

    const ptx::Module& module_;
    std::set<std::string> all_;
    bool unrounded_ = false, divides_ = false, cells_ = false;
    std::string own_;
};

}  // namespace

Verdict check_static(const ptx::Module& original, const ptx::Module& variant,
                     std::string_view entry) {
    const ptx::Function* before = original.find(entry);
    const ptx::Function* after = variant.find(entry);
    if (before == nullptr || after == nullptr) {
        return {Outcome::kReject, Gate::kStatic,
                fmt::format("no kernel '{}' in the {}", entry,
                            before == nullptr ? "original" : "variant")};
    }
    const Kinds old_kinds(original, *before, true);
    const Kinds new_kinds(variant, *after, !old_kinds.divides());
    // Constants need mov; pinned rounding needs fma, and neg for differences.
    std::set<std::string> allowed = {"mov"};
    if (old_kinds.unrounded()) allowed.insert({"fma", "neg"});
    // Address cells are loaded, and what they lead to is read in global memory.
    if (new_kinds.cells()) allowed.insert({"ld.const", "ld.global", "add"});
    if (!new_kinds.own().empty())
        return {Outcome::kReject, Gate::kStatic,
                fmt::format("the variant has a copy of its own of the module variable {}",
                            new_kinds.own())};
    for (const std::string& kind : new_kinds.all()) {
        if (old_kinds.all().contains(kind) || allowed.contains(kind)) continue;
        return {Outcome::kReject, Gate::kStatic,
                fmt::format("the variant has '{}', which the original lacks", kind)};
    }
    return {Outcome::kAccept, Gate::kNone, "no new kind of operation"};
}

}  // namespace ttt::referee
