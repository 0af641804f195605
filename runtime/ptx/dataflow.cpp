#include "ptx/dataflow.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>

#include "ptx/module_variables.h"
#include "ptx/reaching.h"

namespace ttt::ptx {
namespace {

bool is_memory_base(Source::Kind kind) {
    return kind == Source::Kind::kParam || kind == Source::Kind::kVariable ||
           kind == Source::Kind::kMemory || kind == Source::Kind::kUnknown;
}

bool add_all(SourceSet& into, const SourceSet& from) {
    const size_t before = into.size();
    into.insert(from.begin(), from.end());
    return into.size() != before;
}

}  // namespace

class FlowBuilder {
  public:
    FlowBuilder(const Module& module, const Function& entry, ValueFlow& out)
        : module_(module), entry_(entry), layout_(param_layout(module, entry)), out_(out) {
        out_.functions_ = call_closure(module, entry);
        out_.values_.resize(module.symbols.size());
        for (uint32_t f : out_.functions_) {
            reaching_.emplace(f, Reaching(module, module.functions[f]));
        }
    }

    void run() {
        do {
            changed_ = false;
            for (uint32_t f : out_.functions_) {
                const std::vector<Stmt>& body = module_.functions[f].body;
                for (uint32_t i = 0; i < body.size(); ++i) {
                    visit(f, i);
                    if (body[i].kind == Stmt::Kind::kInstruction) transfer(body[i]);
                }
            }
        } while (changed_);
        collect_accesses();
    }

  private:
    using Kind = Source::Kind;

    uint32_t source(Kind kind, uint32_t param = 0, uint32_t offset = 0, uint32_t size = 0,
                    Sym sym = kNoSym) {
        for (uint32_t i = 0; i < out_.sources_.size(); ++i) {
            const Source& s = out_.sources_[i];
            if (s.kind == kind && s.offset == offset && s.size == size && s.sym == sym) return i;
        }
        out_.sources_.push_back({kind, param, offset, size, sym});
        return static_cast<uint32_t>(out_.sources_.size() - 1);
    }

    Value based_on(uint32_t s) const {
        Value v;
        v.defined = true;
        v.bases.insert(s);
        return v;
    }

    static Value plain() {
        Value v;
        v.defined = true;
        v.no_base = true;
        return v;
    }

    Value symbol_value(Sym sym) {
        const Symbol& s = module_.at(sym);
        switch (s.kind) {
            case Symbol::Kind::kRegister:
                return register_value(sym);
            case Symbol::Kind::kFunction:
            case Symbol::Kind::kLabel:
                return based_on(source(Kind::kUnknown));
            default:
                break;
        }
        if (s.kind == Symbol::Kind::kParam) {
            return based_on(source(Kind::kParamAddress, 0, 0, 0, sym));
        }
        switch (s.space) {
            case Space::kGlobal:
            case Space::kConst:
                return based_on(source(Kind::kVariable, 0, 0, 0, sym));
            case Space::kShared:
                return based_on(source(Kind::kShared));
            case Space::kLocal:
                return based_on(source(Kind::kLocal));
            case Space::kParam:
                return based_on(source(Kind::kParamAddress, 0, 0, 0, sym));
            default:
                return based_on(source(Kind::kUnknown));
        }
    }

    Value operand_value(const Operand& operand) {
        switch (operand.kind) {
            case Operand::Kind::kRegister:
                return register_value(operand.sym);
            case Operand::Kind::kSymbol:
            case Operand::Kind::kAddress:
                return operand.sym == kNoSym ? plain() : symbol_value(operand.sym);
            case Operand::Kind::kVector:
            case Operand::Kind::kTuple:
            case Operand::Kind::kPair: {
                Value all = plain();
                for (const Operand& elem : operand.elems) {
                    const Value v = operand_value(elem);
                    add_all(all.taint, v.taint);
                    add_all(all.taint, v.bases);
                }
                return all;
            }
            default:
                return plain();
        }
    }

    // Joins `v` into the value of a register or parameter variable.
    void join(Value& into, const Value& v) {
        if (!v.defined) return;
        const Value before = into;
        if (into.defined && !into.bases.empty() && !v.bases.empty() && into.bases != v.bases) {
            into.alternatives = true;
        }
        into.defined = true;
        into.no_base = into.no_base || v.no_base || v.bases.empty();
        into.alternatives = into.alternatives || v.alternatives;
        into.moved = into.moved || v.moved;
        add_all(into.bases, v.bases);
        add_all(into.taint, v.taint);
        if (!(before == into)) changed_ = true;
    }

    void define(const Operand& dest, const Value& v) {
        if (dest.kind == Operand::Kind::kRegister) {
            define_register(dest.sym, v);
        } else if (!dest.elems.empty()) {
            // Each element gets a part of the bits: whatever was a base no longer is one, except
            // for a vector load, where every element is a whole value of its own (`v` then says so
            // by kMemory or kParam).
            for (const Operand& elem : dest.elems) define(elem, v);
        }
    }

    void use_as_data(const Value& v) {
        add_all(out_.leaked_, v.bases);
        add_all(out_.used_, v.bases);
        add_all(out_.used_, v.taint);
    }
    void use(const Value& v) { add_all(out_.used_, v.taint); }

    void visit(uint32_t function, uint32_t stmt) {
        function_ = function;
        stmt_ = stmt;
    }

    // A register that is written several times has, at a use, the values of the definitions that
    // reach it.
    Value register_value(Sym sym) {
        const Reaching& reaching = reaching_.at(function_);
        if (!reaching.tracks(sym)) return out_.values_[sym];
        Value all;
        for (uint32_t site : reaching.at(stmt_, sym)) {
            const auto it = definitions_.find({function_, site, sym});
            if (it != definitions_.end()) join_quiet(all, it->second);
        }
        return all;
    }

    void define_register(Sym sym, const Value& v) {
        join(out_.values_[sym], v);
        if (reaching_.at(function_).tracks(sym)) join(definitions_[{function_, stmt_, sym}], v);
    }

    static Value as_taint(const Value& v) {
        Value out = plain();
        out.defined = v.defined;
        out.taint = v.taint;
        add_all(out.taint, v.bases);
        return out;
    }

    void transfer(const Stmt& stmt) {
        switch (stmt.op) {
            case Opcode::kLd:
            case Opcode::kLdu:
                return load(stmt);
            case Opcode::kSt:
                return store(stmt);
            case Opcode::kCall:
                return call(stmt);
            case Opcode::kRet:
                return;
            case Opcode::kMov:
                return move(stmt);
            case Opcode::kCvta:
                return convert_address(stmt);
            case Opcode::kCvt:
                return convert(stmt);
            case Opcode::kAdd:
            case Opcode::kSub:
                return add(stmt);
            case Opcode::kMad:
                return multiply_add(stmt);
            case Opcode::kSelp:
            case Opcode::kSlct:
                return select(stmt);
            case Opcode::kSetp:
            case Opcode::kSet:
                return compare(stmt);
            case Opcode::kAtom:
            case Opcode::kRed:
                return atomic(stmt);
            default:
                return generic(stmt);
        }
    }

    void load(const Stmt& stmt) {
        if (stmt.operands.size() < 2) return;
        define(stmt.operands[0], loaded_value(stmt, stmt.operands[1]));
    }

    Value loaded_value(const Stmt& stmt, const Operand& address) {
        const uint32_t bytes = byte_size(stmt.last_type());
        const Space space = stmt.space();
        if (space == Space::kParam && address.sym != kNoSym) {
            const Value base = symbol_value(address.sym);
            if (module_.at(address.sym).kind != Symbol::Kind::kRegister) {
                return param_value(address.sym, address.value, bytes, stmt);
            }
            return indexed_param(base);
        }
        if (space == Space::kShared) return memory_value(shared_memory_);
        if (space == Space::kLocal) return memory_value(local_memory_);
        // A cell holds the address of a variable of the program's.
        if (space == Space::kConst && address.sym != kNoSym && address.value == 0 && bytes == 8 &&
            is_cell(module_.at(address.sym)))
            return symbol_value(address.sym);
        const Value base = operand_value(address);
        Value out;
        bool other = base.bases.empty();
        for (uint32_t b : base.bases) {
            const Kind kind = out_.sources_[b].kind;
            if (kind == Kind::kShared)
                join_quiet(out, memory_value(shared_memory_));
            else if (kind == Kind::kLocal)
                join_quiet(out, memory_value(local_memory_));
            else if (kind == Kind::kParamAddress)
                join_quiet(out, indexed_param(base));
            else
                other = true;
        }
        if (other) join_quiet(out, based_on(source(Kind::kMemory)));
        return out;
    }

    // Uninitialised shared or local memory is as unknown as any loaded value, but never an address
    // of ours.
    static Value memory_value(const Value& memory) { return memory.defined ? memory : plain(); }

    void join_quiet(Value& into, const Value& v) {
        const bool before = changed_;
        join(into, v);
        changed_ = before;
    }

    Value param_value(Sym sym, uint64_t addend, uint32_t bytes, const Stmt& stmt) {
        for (size_t i = 0; i < entry_.params.size(); ++i) {
            if (entry_.params[i] != sym) continue;
            const auto offset = static_cast<uint32_t>(layout_[i].offset + addend);
            const Operand& dest = stmt.operands[0];
            Value all;
            const size_t count = dest.elems.empty() ? 1 : dest.elems.size();
            if (count == 1) {
                const uint32_t cell = source(Kind::kParam, static_cast<uint32_t>(i), offset, bytes);
                const bool whole = addend == 0 && bytes == 8;
                if (whole && module_.at(sym).pointer_attr) out_.certain_.insert(cell);
                return based_on(cell);
            }
            for (size_t k = 0; k < count; ++k) {
                const auto at = static_cast<uint32_t>(offset + k * bytes);
                const Value one =
                    based_on(source(Kind::kParam, static_cast<uint32_t>(i), at, bytes));
                if (dest.elems[k].kind == Operand::Kind::kRegister) {
                    define_register(dest.elems[k].sym, one);
                }
            }
            return all;  // undefined: the elements already have theirs
        }
        return out_.values_[sym];  // a function's parameter or a call's result
    }

    // A parameter read at an address computed at run time: any of its 8-byte cells.
    Value indexed_param(const Value& base) {
        Value out = plain();
        for (uint32_t b : base.bases) {
            if (out_.sources_[b].kind != Kind::kParamAddress) continue;
            const Sym sym = out_.sources_[b].sym;
            bool of_entry = false;
            for (size_t i = 0; i < entry_.params.size(); ++i) {
                if (entry_.params[i] != sym) continue;
                of_entry = true;
                for (uint32_t at = 0; at + 8 <= layout_[i].size; at += 8) {
                    out.bases.insert(
                        source(Kind::kParam, static_cast<uint32_t>(i), layout_[i].offset + at, 8));
                }
                for (uint32_t at = 0; at + 4 <= layout_[i].size; at += 4) {
                    out.taint.insert(
                        source(Kind::kParam, static_cast<uint32_t>(i), layout_[i].offset + at, 4));
                }
            }
            if (!of_entry) join_quiet(out, out_.values_[sym]);
        }
        out.alternatives = true;
        return out;
    }

    void store(const Stmt& stmt) {
        if (stmt.operands.size() < 2) return;
        const Operand& address = stmt.operands[0];
        const Value v = whole_elements(stmt.operands[1]);
        const Space space = stmt.space();
        if (space == Space::kParam && address.sym != kNoSym &&
            module_.at(address.sym).kind != Symbol::Kind::kRegister) {
            return join(out_.values_[address.sym], v);
        }
        if (space == Space::kShared) return join(shared_memory_, v);
        if (space == Space::kLocal) return join(local_memory_, v);
        const Value base = operand_value(address);
        bool visible = base.bases.empty();
        for (uint32_t b : base.bases) {
            const Kind kind = out_.sources_[b].kind;
            if (kind == Kind::kShared)
                join(shared_memory_, v);
            else if (kind == Kind::kLocal)
                join(local_memory_, v);
            else if (kind == Kind::kParamAddress)
                join(out_.values_[out_.sources_[b].sym], v);
            else
                visible = true;
        }
        if (visible) use_as_data(v);
        use(v);
    }

    // A vector store writes whole values side by side: each stays what it is.
    Value whole_elements(const Operand& operand) {
        if (operand.elems.empty()) return operand_value(operand);
        Value all;
        for (const Operand& elem : operand.elems) join_quiet(all, operand_value(elem));
        return all;
    }

    void call(const Stmt& stmt) {
        const Operand* results = nullptr;
        const Operand* arguments = nullptr;
        const Function* callee = nullptr;
        for (const Operand& operand : stmt.operands) {
            if (operand.kind == Operand::Kind::kTuple) {
                (callee == nullptr && !seen_target(stmt, operand) ? results : arguments) = &operand;
            } else if (operand.kind == Operand::Kind::kSymbol && operand.sym != kNoSym &&
                       callee == nullptr &&
                       module_.at(operand.sym).kind == Symbol::Kind::kFunction) {
                callee = module_.find(module_.at(operand.sym).name);
            }
        }
        if (callee == nullptr) {
            if (is_failed_assertion(stmt)) return;
            if (arguments != nullptr) {
                for (const Operand& a : arguments->elems) use_as_data(argument_value(a));
            }
            if (results != nullptr) {
                for (const Operand& r : results->elems) {
                    if (r.sym != kNoSym)
                        join(out_.values_[r.sym], based_on(source(Kind::kUnknown)));
                }
            }
            return;
        }
        for (size_t i = 0;
             arguments != nullptr && i < arguments->elems.size() && i < callee->params.size();
             ++i) {
            join(out_.values_[callee->params[i]], argument_value(arguments->elems[i]));
        }
        for (size_t i = 0;
             results != nullptr && i < results->elems.size() && i < callee->returns.size(); ++i) {
            if (results->elems[i].sym != kNoSym) {
                join(out_.values_[results->elems[i].sym], out_.values_[callee->returns[i]]);
            }
        }
    }

    bool is_failed_assertion(const Stmt& stmt) const {
        return std::any_of(stmt.operands.begin(), stmt.operands.end(), [&](const Operand& o) {
            return o.kind == Operand::Kind::kSymbol && o.sym != kNoSym &&
                   module_.at(o.sym).name == kFailedAssertion;
        });
    }

    static bool seen_target(const Stmt& stmt, const Operand& tuple) {
        return &tuple != &stmt.operands.front();  // results, if any, come first
    }

    Value argument_value(const Operand& a) {
        if (a.sym != kNoSym && module_.at(a.sym).space == Space::kParam) return out_.values_[a.sym];
        return operand_value(a);
    }

    void move(const Stmt& stmt) {
        if (stmt.operands.size() < 2) return;
        const Operand& dest = stmt.operands[0];
        const Operand& from = stmt.operands[1];
        const bool pieces = !dest.elems.empty() || !from.elems.empty();
        Value v = operand_value(from);
        if (!pieces) return define(dest, v);
        for (const Operand& elem : from.elems) use_as_data(operand_value(elem));
        use_as_data(v);
        define(dest, as_taint(v));
    }

    void convert_address(const Stmt& stmt) {
        if (stmt.operands.size() < 2) return;
        const Value v = operand_value(stmt.operands[1]);
        const Space space = stmt.space();
        if (v.bases.size() == 1 && space == Space::kGlobal) out_.certain_.insert(*v.bases.begin());
        define(stmt.operands[0], v);
    }

    void convert(const Stmt& stmt) {
        if (stmt.operands.size() < 2) return;
        const Value v = operand_value(stmt.operands[1]);
        const bool same = bit_size(stmt.type(0)) == 64 && bit_size(stmt.type(1)) == 64 &&
                          !is_float(stmt.type(0)) && !is_float(stmt.type(1)) &&
                          !stmt.has(Mod::kSat);
        if (same) return define(stmt.operands[0], v);
        use_as_data(v);
        define(stmt.operands[0], as_taint(v));
    }

    bool is_address_width(const Stmt& stmt) const {
        const Type type = stmt.last_type();
        return !is_float(type) && (bit_size(type) == 64 || (bit_size(type) == 32)) &&
               !stmt.has(Mod::kSat) && !stmt.has(Mod::kCc);
    }

    bool same_single_base(const Value& a, const Value& b) const {
        return a.bases.size() == 1 && a.bases == b.bases && !a.no_base && !b.no_base;
    }

    void add(const Stmt& stmt) {
        if (stmt.operands.size() < 3 || !is_address_width(stmt)) return generic(stmt);
        const Value a = operand_value(stmt.operands[1]);
        const Value b = operand_value(stmt.operands[2]);
        if (!a.defined || !b.defined) return;
        if (stmt.op == Opcode::kSub) {
            if (same_single_base(
                    a, b)) {  // a distance within one buffer does not depend on where it lies
                Value v = plain();
                v.taint = a.taint;
                add_all(v.taint, b.taint);
                return define(stmt.operands[0], v);
            }
            if (!b.bases.empty()) use_as_data(b);
            return define(stmt.operands[0], sum(a, as_taint(b)));
        }
        SourceSet common;
        std::set_intersection(a.bases.begin(), a.bases.end(), b.bases.begin(), b.bases.end(),
                              std::inserter(common, common.end()));
        add_all(out_.leaked_, common);  // twice a pointer is no pointer
        define(stmt.operands[0], sum(a, b));
    }

    Value sum(const Value& a, const Value& b) {
        Value v = plain();
        v.bases = a.bases;
        add_all(v.bases, b.bases);
        v.taint = a.taint;
        add_all(v.taint, b.taint);
        v.no_base = a.no_base && b.no_base;
        v.alternatives = a.alternatives || b.alternatives ||
                         (!a.bases.empty() && a.no_base && !b.bases.empty()) ||
                         (!b.bases.empty() && b.no_base && !a.bases.empty());
        v.moved = true;
        use(a);
        use(b);
        return v;
    }

    void multiply_add(const Stmt& stmt) {
        if (stmt.operands.size() < 4 || is_float(stmt.type()) || stmt.has(Mod::kHi) ||
            stmt.has(Mod::kSat)) {
            return generic(stmt);
        }
        const Value a = operand_value(stmt.operands[1]);
        const Value b = operand_value(stmt.operands[2]);
        const Value c = operand_value(stmt.operands[3]);
        if (!a.defined || !b.defined || !c.defined) return;
        use_as_data(a);
        use_as_data(b);
        Value product = as_taint(a);
        add_all(product.taint, as_taint(b).taint);
        define(stmt.operands[0], sum(product, c));
    }

    void select(const Stmt& stmt) {
        if (stmt.operands.size() < 4 || is_float(stmt.type())) return generic(stmt);
        Value v;
        join_quiet(v, operand_value(stmt.operands[1]));
        join_quiet(v, operand_value(stmt.operands[2]));
        if (stmt.op == Opcode::kSlct) use_as_data(operand_value(stmt.operands[3]));
        define(stmt.operands[0], v);
    }

    static bool is_null(const Operand& o) {
        return o.kind == Operand::Kind::kImmediate && o.value == 0;
    }

    // Null stays null and the rest stays non-null wherever buffers lie; two places in one buffer
    // keep their order.
    bool position_independent(const Stmt& stmt, const Value& a, const Value& b, const Operand& oa,
                              const Operand& ob) {
        const bool equality = stmt.has(Mod::kEq) || stmt.has(Mod::kNe);
        if (equality && ((is_null(ob) && !a.moved) || (is_null(oa) && !b.moved))) return true;
        return same_single_base(a, b);
    }

    void compare(const Stmt& stmt) {
        if (stmt.operands.size() < 3) return generic(stmt);
        const Value a = operand_value(stmt.operands[1]);
        const Value b = operand_value(stmt.operands[2]);
        if (!position_independent(stmt, a, b, stmt.operands[1], stmt.operands[2])) {
            use_as_data(a);
            use_as_data(b);
        }
        use(a);
        use(b);
        Value v = plain();
        for (const Value* x : {&a, &b}) {
            add_all(v.taint, x->taint);
            add_all(v.taint, x->bases);
        }
        define(stmt.operands[0], v);
    }

    void atomic(const Stmt& stmt) {
        const size_t address = stmt.op == Opcode::kAtom ? 1 : 0;
        for (size_t i = address + 1; i < stmt.operands.size(); ++i) {
            const Value v = operand_value(stmt.operands[i]);
            if (stmt.space() == Space::kShared) join(shared_memory_, v);
            use_as_data(v);
        }
        if (address == 1 && !stmt.operands.empty()) {
            define(stmt.operands[0], stmt.space() == Space::kShared
                                         ? memory_value(shared_memory_)
                                         : based_on(source(Kind::kMemory)));
        }
    }

    // Replay keeps the alignment of every buffer, so a pointer's low bits are the same wherever it
    // lies.
    bool takes_alignment_bits(const Stmt& stmt) const {
        if (!stmt.is(Opcode::kAnd) || stmt.operands.size() != 3) return false;
        const auto small = [](const Operand& o) {
            return o.kind == Operand::Kind::kImmediate && o.value < kKeptAlignment;
        };
        return small(stmt.operands[1]) || small(stmt.operands[2]);
    }

    void alignment_bits(const Stmt& stmt) {
        Value v = plain();
        for (size_t k = 1; k < stmt.operands.size(); ++k) {
            const Value x = operand_value(stmt.operands[k]);
            if (!x.defined) return;
            use(x);
            add_all(v.taint, x.taint);
        }
        define(stmt.operands[0], v);
    }

    // Bits mixed in some other way. Masks keep the base: aligned-down pointers still point into
    // their buffer.
    void generic(const Stmt& stmt) {
        if (takes_alignment_bits(stmt)) return alignment_bits(stmt);
        const bool mask =
            stmt.op == Opcode::kAnd || stmt.op == Opcode::kOr || stmt.op == Opcode::kXor;
        const size_t dests = dest_count(stmt);
        Value v = plain();
        for (size_t i = dests; i < stmt.operands.size(); ++i) {
            if (stmt.operands[i].kind == Operand::Kind::kAddress) continue;
            const Value x = operand_value(stmt.operands[i]);
            use_as_data(x);
            add_all(v.taint, x.taint);
            add_all(mask ? v.bases : v.taint, x.bases);
        }
        if (info(stmt.op).flags & (kFlagTexture | kFlagMatrix | kFlagExotic)) {
            v.bases.insert(source(Kind::kUnknown));
        }
        v.moved = true;
        if (!v.bases.empty()) v.no_base = false;
        for (size_t i = 0; i < dests && i < stmt.operands.size(); ++i) define(stmt.operands[i], v);
    }

    void collect_accesses() {
        for (uint32_t f : out_.functions_) {
            const std::vector<Stmt>& body = module_.functions[f].body;
            for (uint32_t i = 0; i < body.size(); ++i) {
                if (body[i].kind == Stmt::Kind::kInstruction) collect_access(f, i, body[i]);
            }
        }
        for (Access& access : out_.accesses_) resolve(access);
    }

    void collect_access(uint32_t f, uint32_t index, const Stmt& stmt) {
        visit(f, index);
        if (stmt.op == Opcode::kPrefetch || stmt.op == Opcode::kPrefetchu ||
            stmt.op == Opcode::kCvta || stmt.op == Opcode::kMov || stmt.op == Opcode::kCall ||
            stmt.op == Opcode::kApplypriority) {
            return;  // no byte of memory is seen or changed
        }
        for (size_t k = 0; k < stmt.operands.size(); ++k) {
            const Operand& operand = stmt.operands[k];
            if (operand.kind != Operand::Kind::kAddress) continue;
            Access access;
            access.function = f;
            access.stmt = index;
            if (!classify_access(stmt, k, access)) continue;
            const Value v = operand_value(operand);
            gather_bases(v, access);
            if (!access.bases.empty()) out_.accesses_.push_back(std::move(access));
        }
    }

    void gather_bases(const Value& v, Access& access) {
        bool only_private = !v.bases.empty();
        for (uint32_t b : v.bases) {
            if (!is_memory_base(out_.sources_[b].kind)) continue;
            only_private = false;
            access.bases.insert(b);
        }
        if (only_private) return;
        if (access.bases.empty()) {
            for (uint32_t t : v.taint) {
                if (is_memory_base(out_.sources_[t].kind)) access.bases.insert(t);
            }
            add_all(out_.leaked_, access.bases);
        }
        if (access.bases.empty()) access.bases.insert(source(Kind::kUnknown));
        if (access.bases.size() == 1) out_.certain_.insert(*access.bases.begin());
        if (v.alternatives) alternatives_.insert({access.function, access.stmt});
    }

    // A sum of one certain pointer and integers is an address in that pointer's buffer.
    void resolve(Access& access) {
        if (access.bases.size() < 2 || alternatives_.contains({access.function, access.stmt}))
            return;
        SourceSet pointers;
        for (uint32_t b : access.bases) {
            const Kind kind = out_.sources_[b].kind;
            if (kind == Kind::kVariable || (kind == Kind::kParam && out_.certain_.contains(b)))
                pointers.insert(b);
        }
        if (pointers.empty()) return;
        if (pointers.size() > 1) add_all(out_.leaked_, pointers);
        access.bases = pointers;
    }

    const Module& module_;
    const Function& entry_;
    std::vector<ParamLayout> layout_;
    ValueFlow& out_;
    Value shared_memory_, local_memory_;
    std::map<uint32_t, Reaching> reaching_;
    std::map<std::tuple<uint32_t, uint32_t, Sym>, Value> definitions_;
    uint32_t function_ = 0, stmt_ = 0;  // being looked at
    std::set<std::pair<uint32_t, uint32_t>> alternatives_;
    bool changed_ = false;
};

ValueFlow::ValueFlow(const Module& module, const Function& entry) {
    FlowBuilder(module, entry, *this).run();
}

}  // namespace ttt::ptx
