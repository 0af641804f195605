#include <algorithm>
#include <map>

#include "ptx/dataflow.h"

namespace ttt::ptx {
namespace {

struct Knowledge {
    bool may = false;     // may become a constant
    bool ranged = false;  // an integer whose range the assembler may know
    std::set<uint32_t> params;
    friend bool operator==(const Knowledge&, const Knowledge&) = default;
};

constexpr std::optional<Dim3> kNoSize;

struct Definition {
    uint32_t function, stmt;
};

// Three answers per register, from cheapest to finest:
//   pure     every definition is made of known values only;
//   summed   a value that a loop accumulates from unknown values, or anything made of one. It is no
//   constant
//            although the accumulator starts as one;
//   may      some definition is made of known values only, and the register is not summed.
class ConstantReach {
  public:
    ConstantReach(const Module& module, const Function& entry, const KnownValues& known)
        : module_(module),
          entry_(entry),
          known_(known),
          layout_(param_layout(module, entry)),
          functions_(call_closure(module, entry)) {
        collect_definitions();
        find_pure();
        find_summed();
        find_may();
    }

    std::vector<ApproxRisk> risks() const {
        std::vector<ApproxRisk> out;
        for (uint32_t f : functions_) {
            const std::vector<Stmt>& body = module_.functions[f].body;
            for (uint32_t i = 0; i < body.size(); ++i) {
                if (!is_approximate(body[i])) continue;
                for (size_t k = 1; k < body[i].operands.size(); ++k) {
                    const Operand& operand = body[i].operands[k];
                    const Knowledge got = operand_knowledge(operand);
                    if (!got.may || is_constant_already(operand, 0)) continue;
                    out.push_back({f, i, got.params});
                }
            }
        }
        return out;
    }

  private:
    const Stmt& at(const Definition& d) const { return module_.functions[d.function].body[d.stmt]; }

    void collect_definitions() {
        std::vector<Sym> regs;
        for (uint32_t f : functions_) {
            const std::vector<Stmt>& body = module_.functions[f].body;
            for (uint32_t i = 0; i < body.size(); ++i) {
                written_registers(body[i], regs);
                for (Sym r : regs) definitions_[r].push_back({f, i});
                add_call_links(f, i, body[i]);
                add_param_store(f, i, body[i]);
            }
        }
    }

    // Arguments and results are parameter variables; treat them like registers that are copied.
    void add_call_links(uint32_t f, uint32_t i, const Stmt& stmt) {
        if (!stmt.is(Opcode::kCall)) return;
        const Function* callee = nullptr;
        for (const Operand& operand : stmt.operands) {
            if (operand.kind == Operand::Kind::kSymbol && operand.sym != kNoSym &&
                callee == nullptr) {
                callee = module_.find(module_.at(operand.sym).name);
            }
        }
        for (size_t k = 0; k < stmt.operands.size(); ++k) {
            if (stmt.operands[k].kind != Operand::Kind::kTuple) continue;
            const std::vector<Operand>& elems = stmt.operands[k].elems;
            const bool result = k == 0;
            for (size_t e = 0; e < elems.size(); ++e) {
                if (elems[e].sym == kNoSym) continue;
                if (result) {
                    definitions_[elems[e].sym].push_back({f, i});
                    if (callee != nullptr && e < callee->returns.size()) {
                        copies_[elems[e].sym].push_back(callee->returns[e]);
                    }
                } else if (callee != nullptr && e < callee->params.size()) {
                    copies_[callee->params[e]].push_back(elems[e].sym);
                }
            }
        }
    }

    void add_param_store(uint32_t f, uint32_t i, const Stmt& stmt) {
        if (stmt.is(Opcode::kSt) && stmt.space() == Space::kParam && !stmt.operands.empty() &&
            stmt.operands[0].sym != kNoSym) {
            definitions_[stmt.operands[0].sym].push_back({f, i});
        }
        if (stmt.is(Opcode::kSt) && stmt.space() == Space::kLocal) local_stores_.push_back({f, i});
    }

    bool is_entry_param(Sym sym, uint32_t* offset) const {
        for (size_t i = 0; i < entry_.params.size(); ++i) {
            if (entry_.params[i] != sym) continue;
            *offset = layout_[i].offset;
            return true;
        }
        return false;
    }

    Knowledge special(const Operand& operand) const {
        Knowledge out;
        if (operand.text == "ntid") out.may = known_.ntid || known_.block.has_value();
        if (operand.text == "nctaid") out.may = known_.nctaid;
        const std::optional<Dim3>& size = operand.text == "tid"     ? known_.block
                                          : operand.text == "ctaid" ? known_.grid
                                                                    : kNoSize;
        if (size) {
            const uint32_t extent[] = {size->x, size->y, size->z};
            out.ranged = true;
            out.may = operand.component < 3 && extent[operand.component] == 1;
        }
        return out;
    }

    Knowledge operand_knowledge(const Operand& operand) const {
        Knowledge out;
        switch (operand.kind) {
            case Operand::Kind::kImmediate:
                out.may = true;
                return out;
            case Operand::Kind::kSpecial:
                return special(operand);
            case Operand::Kind::kRegister: {
                const auto it = values_.find(operand.sym);
                return it == values_.end() ? out : it->second;
            }
            case Operand::Kind::kVector:
            case Operand::Kind::kPair:
                out.may = !operand.elems.empty();
                for (const Operand& elem : operand.elems) {
                    const Knowledge one = operand_knowledge(elem);
                    out.may = out.may && one.may;
                    out.params.insert(one.params.begin(), one.params.end());
                }
                return out;
            default:
                return out;
        }
    }

    static bool folds_ranges(Opcode op) {
        switch (op) {
            case Opcode::kShr:
            case Opcode::kDiv:
            case Opcode::kRem:
            case Opcode::kAnd:
            case Opcode::kMin:
            case Opcode::kMax:
            case Opcode::kSet:
            case Opcode::kSetp:
            case Opcode::kBfe:
                return true;
            default:
                return false;
        }
    }

    // Some value of one operand makes the result a constant whatever the other is, and a known
    // scalar may have it: x*0, x&0, x|~0, x%1, x>>32, unsigned min(x,0) and max(x,~0).
    static bool absorbs(Opcode op) {
        switch (op) {
            case Opcode::kMul:
            case Opcode::kAnd:
            case Opcode::kOr:
            case Opcode::kMin:
            case Opcode::kMax:
            case Opcode::kShl:
            case Opcode::kShr:
            case Opcode::kDiv:
            case Opcode::kRem:
                return true;
            default:
                return false;
        }
    }

    static bool is_opaque_result(const Stmt& stmt) {
        constexpr uint32_t kFlags =
            kFlagLoad | kFlagAtomic | kFlagCall | kFlagTexture | kFlagMatrix | kFlagExotic;
        return stmt.op == Opcode::kOpaque || (info(stmt.op).flags & kFlags) != 0;
    }

    Knowledge loaded(const Stmt& stmt) const {
        Knowledge out;
        if (stmt.operands.size() < 2 || stmt.operands[1].sym == kNoSym) return out;
        const Operand& address = stmt.operands[1];
        uint32_t offset = 0;
        if (stmt.space() == Space::kParam && is_entry_param(address.sym, &offset)) {
            const auto at = static_cast<uint32_t>(offset + address.value);
            if (known_.params.contains(at)) {
                out.may = true;
                out.params.insert(at);
            }
            return out;
        }
        if (stmt.space() == Space::kParam) {
            const auto it = values_.find(address.sym);
            return it == values_.end() ? out : it->second;
        }
        if (stmt.space() == Space::kLocal) {  // arrays that the assembler may move to registers
            for (const Definition& d : local_stores_) merge(out, result(at(d)));
        }
        return out;
    }

    static void merge(Knowledge& into, const Knowledge& v) {
        into.may = into.may || v.may;
        into.ranged = into.ranged || v.ranged;
        into.params.insert(v.params.begin(), v.params.end());
    }

    Knowledge result(const Stmt& stmt) const {
        if (stmt.is(Opcode::kLd)) return loaded(stmt);
        if (stmt.is(Opcode::kSt))
            return stmt.operands.size() > 1 ? operand_knowledge(stmt.operands[1]) : Knowledge{};
        if (is_opaque_result(stmt)) return {};
        const size_t first = dest_count(stmt);
        Knowledge out;
        bool all_may = true, all_ranged = true, any_known = false;
        for (size_t k = first; k < stmt.operands.size(); ++k) {
            const Knowledge one = operand_knowledge(stmt.operands[k]);
            all_may = all_may && one.may;
            all_ranged = all_ranged && (one.may || one.ranged);
            out.params.insert(one.params.begin(), one.params.end());
            if (one.may && !one.params.empty()) any_known = true;
        }
        out.may = all_may;
        out.ranged = all_ranged;
        if (all_ranged && folds_ranges(stmt.op)) out.may = true;
        if (absorbs(stmt.op) && !is_float(stmt.type()) && any_known) out.may = true;
        if (stmt.op == Opcode::kSelp && stmt.operands.size() == 4) select(stmt, out);
        return out;
    }

    void select(const Stmt& stmt, Knowledge& out) const {
        const Knowledge a = operand_knowledge(stmt.operands[1]),
                        b = operand_knowledge(stmt.operands[2]);
        const Knowledge p = operand_knowledge(stmt.operands[3]);
        out.may = (a.may && b.may) || ((p.may || p.ranged) && (a.may || b.may));
    }

    template <typename Join>
    void iterate(bool start, Join&& join) {
        values_.clear();
        std::vector<Sym> all;
        for (const auto& [sym, defs] : definitions_) all.push_back(sym);
        for (const auto& [sym, from] : copies_) all.push_back(sym);
        for (Sym sym : all) values_[sym].may = start;
        for (bool changed = true; changed;) {
            changed = false;
            for (Sym sym : all) {
                Knowledge next = join(sym);
                Knowledge& now = values_[sym];
                if (next == now) continue;
                now = std::move(next);
                changed = true;
            }
        }
    }

    void find_pure() {
        iterate(true, [&](Sym sym) {
            Knowledge out;
            out.may = true;
            for_each_definition(sym, [&](const Knowledge& one) { out.may = out.may && one.may; });
            return out;
        });
        for (const auto& [sym, value] : values_) {
            if (value.may) pure_.insert(sym);
        }
    }

    template <typename Visit>
    void for_each_definition(Sym sym, Visit&& visit) const {
        if (const auto it = definitions_.find(sym); it != definitions_.end()) {
            for (const Definition& d : it->second) {
                if (!at(d).is(Opcode::kCall)) visit(result(at(d)));
            }
        }
        if (const auto it = copies_.find(sym); it != copies_.end()) {
            for (Sym from : it->second) {
                const auto value = values_.find(from);
                visit(value == values_.end() ? Knowledge{} : value->second);
            }
        }
    }

    // Registers in a cycle of dependences are carried round a loop.
    void find_summed() {
        std::map<Sym, std::vector<Sym>> reads, readers;
        std::vector<Sym> regs;
        for (const auto& [sym, defs] : definitions_) {
            for (const Definition& d : defs) {
                read_registers(module_, at(d), regs);
                for (Sym r : regs) {
                    if (at(d).guard == r || pure_.contains(r)) continue;
                    reads[sym].push_back(r);
                    readers[r].push_back(sym);
                }
            }
        }
        std::vector<Sym> work;
        for (const auto& [sym, from] : reads) {
            if (!pure_.contains(sym) && reaches_itself(sym, readers)) work.push_back(sym);
        }
        while (!work.empty()) {
            const Sym sym = work.back();
            work.pop_back();
            if (!summed_.insert(sym).second) continue;
            for (Sym next : readers[sym]) work.push_back(next);
        }
    }

    bool reaches_itself(Sym sym, std::map<Sym, std::vector<Sym>>& readers) const {
        if (definitions_.at(sym).size() < 2)
            return false;  // carried values have an initial definition too
        std::set<Sym> seen;
        std::vector<Sym> work{sym};
        while (!work.empty()) {
            const Sym at_sym = work.back();
            work.pop_back();
            for (Sym next : readers[at_sym]) {
                if (next == sym) return true;
                if (seen.insert(next).second) work.push_back(next);
            }
        }
        return false;
    }

    void find_may() {
        iterate(false, [&](Sym sym) {
            Knowledge out = values_[sym];
            if (summed_.contains(sym)) return Knowledge{};
            for_each_definition(sym, [&](const Knowledge& one) { merge(out, one); });
            return out;
        });
    }

    // True when the module as it stands makes this operand a constant: folded in the original as
    // well.
    bool is_constant_already(const Operand& operand, int depth) const {
        if (operand.kind == Operand::Kind::kImmediate) return true;
        if (operand.kind != Operand::Kind::kRegister || depth > 32) return false;
        const auto it = definitions_.find(operand.sym);
        if (it == definitions_.end() || it->second.size() != 1) return false;
        const Stmt& stmt = at(it->second.front());
        if (stmt.guard != kNoSym || is_opaque_result(stmt)) return false;
        for (size_t k = dest_count(stmt); k < stmt.operands.size(); ++k) {
            if (!is_constant_already(stmt.operands[k], depth + 1)) return false;
        }
        return true;
    }

    const Module& module_;
    const Function& entry_;
    const KnownValues& known_;
    std::vector<ParamLayout> layout_;
    std::vector<uint32_t> functions_;
    std::map<Sym, std::vector<Definition>> definitions_;
    std::map<Sym, std::vector<Sym>> copies_;
    std::vector<Definition> local_stores_;
    std::map<Sym, Knowledge> values_;
    std::set<Sym> pure_, summed_;
};

}  // namespace

std::vector<ApproxRisk> approx_risks(const Module& module, const Function& entry,
                                     const KnownValues& known) {
    return ConstantReach(module, entry, known).risks();
}

}  // namespace ttt::ptx
