#include "xform/transforms/fold.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "ptx/cfg.h"
#include "ptx/dataflow.h"
#include "xform/knobs.h"
#include "xform/transforms/divide.h"
#include "xform/transforms/integers.h"
#include "xform/transforms/ranges.h"

namespace ttt::xform {
namespace {

using ptx::Mod;
using ptx::Opcode;
using ptx::Operand;
using ptx::Stmt;
using ptx::Sym;
using ptx::Type;

constexpr std::array<std::string_view, 3> kPreconditions = {
    "rounding is pinned",
    "some integer instruction has only constant operands, or some result is never read; with "
    "`divide` also: or some division is by a constant; with `ranges`: or a comparison has one "
    "outcome",
    "ranges: what follows from the block and grid sizes reaches no approximate operation that "
    "would "
    "become one of constants",
};

// Instructions whose only effect is their result.
bool is_pure(const Stmt& stmt) {
    if (stmt.kind != Stmt::Kind::kInstruction || stmt.op == Opcode::kOpaque) return false;
    if (stmt.is(Opcode::kLd)) return stmt.space() == ptx::Space::kParam;
    constexpr uint32_t kEffects =
        ptx::kFlagBranch | ptx::kFlagTerminator | ptx::kFlagBarrier | ptx::kFlagWarp |
        ptx::kFlagLoad | ptx::kFlagStore | ptx::kFlagAtomic | ptx::kFlagCall | ptx::kFlagTexture |
        ptx::kFlagMatrix | ptx::kFlagFence | ptx::kFlagAsyncCopy | ptx::kFlagExotic;
    return (ptx::info(stmt.op).flags & kEffects) == 0 && ptx::dest_count(stmt) == 1 &&
           !stmt.has(Mod::kCc);
}

// Operands for which the assembler takes a constant.
bool takes_constants(const Stmt& stmt) {
    switch (stmt.op) {
        case Opcode::kAdd:
        case Opcode::kSub:
        case Opcode::kMul:
        case Opcode::kMad:
        case Opcode::kAnd:
        case Opcode::kOr:
        case Opcode::kXor:
        case Opcode::kShl:
        case Opcode::kShr:
        case Opcode::kMin:
        case Opcode::kMax:
        case Opcode::kDiv:
        case Opcode::kRem:
        case Opcode::kSetp:
            return is_integer(stmt.last_type()) && stmt.mod_count > 0 && !stmt.has(Mod::kCc);
        default:
            return false;
    }
}

class Folder {
  public:
    Folder(ptx::Module& module, uint32_t function) : module_(module), index_(function) {}

    struct Sizes {
        Dim3 grid, block;
    };
    struct Extent {  // what is done besides folding constants
        bool divide = false;
        std::optional<Sizes> ranges;  // use those of %tid and %ctaid
    };
    uint32_t run(const Extent& extent) {
        for (const Stmt& stmt : body()) {
            if (stmt.is(Opcode::kOpaque)) return 0;  // may read and write anything
        }
        uint32_t total = until_nothing_changes();
        if (const uint32_t decided = extent.ranges ? decide_comparisons(*extent.ranges) : 0)
            total += decided + until_nothing_changes();
        if (const uint32_t divisions = extent.divide ? divide(extent.ranges) : 0)
            total += divisions + until_nothing_changes();
        return total;
    }

    bool used_sizes() const { return used_sizes_; }

  private:
    std::vector<Stmt>& body() { return module_.functions[index_].body; }

    uint32_t until_nothing_changes() {
        uint32_t total = 0;
        while (const uint32_t changes = once()) total += changes;
        return total;
    }

    // A comparison with one outcome becomes one of constants, which is then decided like any other.
    uint32_t decide_comparisons(const Sizes& sizes) {
        Ranges ranges(module_, index_, sizes.grid, sizes.block);
        std::map<Stmt*, bool> outcomes;
        for (Stmt& stmt : body()) {
            if (stmt.is(Opcode::kSetp) && !compares_constants(stmt)) {
                if (const auto always = ranges.decided(stmt)) outcomes[&stmt] = *always;
            }
        }
        for (const auto& [stmt, always] : outcomes) {
            stmt->mods[0] = always ? Mod::kEq : Mod::kNe;
            stmt->operands[1] = stmt->operands[2] = integer_literal(module_, 0);
            stmt->offset = 0xFFFFFFFFu;
        }
        used_sizes_ = used_sizes_ || !outcomes.empty();
        return static_cast<uint32_t>(outcomes.size());
    }

    uint32_t divide(const std::optional<Sizes>& sizes) {
        if (!sizes) return divide_by_literals(module_, index_, nullptr, &used_sizes_);
        Ranges ranges(module_, index_, sizes->grid, sizes->block);
        return divide_by_literals(module_, index_, &ranges, &used_sizes_);
    }

    uint32_t once() {
        find_constants();
        uint32_t changes = 0;
        for (Stmt& stmt : body()) {
            if (stmt.kind != Stmt::Kind::kInstruction) continue;
            changes += decide_guard(stmt);
            changes += simplify_logic(stmt);
            changes += select(stmt);
            changes += fold(stmt);
            changes += substitute(stmt);
        }
        return changes + drop_unreachable() + drop_unread();
    }

    // Registers with one definition, which is a constant.
    void find_constants() {
        std::map<Sym, uint32_t> definitions;
        std::vector<Sym> regs;
        constants_.clear();
        predicates_.clear();
        for (const Stmt& stmt : body()) {
            ptx::written_registers(stmt, regs);
            for (Sym r : regs) ++definitions[r];
        }
        for (const Stmt& stmt : body()) {
            if (stmt.guard != ptx::kNoSym || stmt.operands.size() < 2) continue;
            const Operand& dest = stmt.operands[0];
            if (dest.kind != Operand::Kind::kRegister || definitions[dest.sym] != 1) continue;
            if (stmt.is(Opcode::kMov) && is_constant(stmt.operands[1]) &&
                is_integer(stmt.last_type())) {
                constants_[dest.sym] = stmt.operands[1].value;
            }
            if (const auto p = stmt.is(Opcode::kSetp) ? comparison(stmt) : logic(stmt))
                predicates_[dest.sym] = *p;
        }
    }

    bool compares_constants(const Stmt& stmt) const {
        return stmt.operands.size() == 3 && value(stmt.operands[1]) && value(stmt.operands[2]);
    }

    std::optional<bool> comparison(const Stmt& stmt) const {
        if (!compares_constants(stmt)) return std::nullopt;
        return compare(stmt, *value(stmt.operands[1]), *value(stmt.operands[2]));
    }

    std::optional<bool> predicate(const Operand& o) const {
        const auto it =
            o.kind == Operand::Kind::kRegister ? predicates_.find(o.sym) : predicates_.end();
        if (it == predicates_.end()) return std::nullopt;
        return it->second != o.negated;
    }

    // and, or, xor, not and mov of predicates.
    std::optional<bool> logic(const Stmt& stmt) const {
        if (stmt.mod_count != 1 || stmt.last_type() != Type::kPred) return std::nullopt;
        const auto a = predicate(stmt.operands[1]);
        if (stmt.is(Opcode::kMov)) return a;
        if (stmt.is(Opcode::kNot)) return a ? std::optional(!*a) : a;
        if (stmt.operands.size() != 3) return std::nullopt;
        const auto b = predicate(stmt.operands[2]);
        switch (stmt.op) {
            case Opcode::kAnd:
                if ((a && !*a) || (b && !*b)) return false;
                return a && b ? std::optional(true) : std::nullopt;
            case Opcode::kOr:
                if ((a && *a) || (b && *b)) return true;
                return a && b ? std::optional(false) : std::nullopt;
            case Opcode::kXor:
                return a && b ? std::optional(*a != *b) : std::nullopt;
            default:
                return std::nullopt;
        }
    }

    // One known operand that does not decide an and or an or: the result is the other one.
    uint32_t simplify_logic(Stmt& stmt) {
        if ((!stmt.is(Opcode::kAnd) && !stmt.is(Opcode::kOr)) || stmt.mod_count != 1 ||
            stmt.last_type() != Type::kPred || stmt.operands.size() != 3 || logic(stmt))
            return 0;
        for (size_t k = 1; k <= 2; ++k) {
            if (!predicate(stmt.operands[k])) continue;
            const Operand other = stmt.operands[3 - k];
            if (other.kind != Operand::Kind::kRegister || other.negated) continue;
            become_copy(stmt, Mod::kPred, other);
            return 1;
        }
        return 0;
    }

    uint32_t select(Stmt& stmt) {
        if (!stmt.is(Opcode::kSelp) || !is_integer(stmt.last_type()) || stmt.operands.size() != 4)
            return 0;
        const auto p = predicate(stmt.operands[3]);
        if (!p) return 0;
        const uint32_t bits = ptx::bit_size(stmt.last_type());
        become_copy(stmt,
                    bits == 64   ? Mod::kB64
                    : bits == 16 ? Mod::kB16
                                 : Mod::kB32,
                    Operand(stmt.operands[*p ? 1 : 2]));
        return 1;
    }

    static void become_copy(Stmt& stmt, Mod type, const Operand& from) {
        stmt.op = Opcode::kMov;
        stmt.mod_count = 1;
        stmt.mods[0] = type;
        stmt.operands = {stmt.operands[0], from};
        stmt.offset = 0xFFFFFFFFu;
    }

    static bool is_constant(const Operand& o) {
        return o.kind == Operand::Kind::kImmediate && o.literal == Operand::Literal::kInt;
    }

    std::optional<uint64_t> value(const Operand& o) const {
        if (is_constant(o)) return o.value;
        if (o.kind != Operand::Kind::kRegister || o.component != 4 || o.negated)
            return std::nullopt;
        const auto it = constants_.find(o.sym);
        if (it == constants_.end()) return std::nullopt;
        return it->second;
    }

    // A guard known to be true is dropped; an instruction whose guard is false becomes nothing (a
    // dead mov is too clever: erase it with the unreachable code).
    uint32_t decide_guard(Stmt& stmt) {
        const auto it =
            stmt.guard == ptx::kNoSym ? predicates_.end() : predicates_.find(stmt.guard);
        if (it == predicates_.end()) return 0;
        if (it->second == stmt.guard_negated) {
            erased_.insert(stmt.id);
        } else {
            stmt.guard = ptx::kNoSym;
            stmt.guard_negated = false;
            stmt.offset = 0xFFFFFFFFu;
        }
        return 1;
    }

    uint32_t fold(Stmt& stmt) {
        if (stmt.op == Opcode::kOpaque || !is_pure(stmt) || stmt.is(Opcode::kSetp) ||
            stmt.is(Opcode::kLd))
            return 0;
        if (stmt.operands.size() < 2 || stmt.operands[0].kind != Operand::Kind::kRegister) return 0;
        if (stmt.is(Opcode::kMov) && is_constant(stmt.operands[1])) return 0;
        std::vector<uint64_t> in;
        for (size_t k = 1; k < stmt.operands.size(); ++k) {
            const auto v = value(stmt.operands[k]);
            if (!v) return 0;
            in.push_back(*v);
        }
        const auto result = evaluate(stmt, in);
        if (!result) return 0;
        become_constant(stmt, *result);
        return 1;
    }

    void become_constant(Stmt& stmt, uint64_t result) {
        const Type type = module_.at(stmt.operands[0].sym).type;
        const uint32_t bits = ptx::bit_size(type);
        // cvt into a wider register sign-extends there as well.
        if (stmt.is(Opcode::kCvt)) result = widen(result, stmt.type(0));
        become_copy(stmt,
                    bits == 64   ? Mod::kB64
                    : bits == 16 ? Mod::kB16
                                 : Mod::kB32,
                    integer_literal(module_, truncate(result, bits)));
    }

    uint32_t substitute(Stmt& stmt) {
        if (!takes_constants(stmt)) return 0;
        uint32_t changes = 0;
        for (size_t k = 1; k < stmt.operands.size(); ++k) {
            Operand& o = stmt.operands[k];
            if (o.kind != Operand::Kind::kRegister || module_.at(o.sym).type == Type::kPred)
                continue;
            const auto v = value(o);
            // A constant wider than the operand's type is an error to the assembler.
            if (!v || ptx::bit_size(module_.at(o.sym).type) > operand_bits(stmt, k)) continue;
            o = integer_literal(module_, *v);
            stmt.offset = 0xFFFFFFFFu;
            ++changes;
        }
        return changes;
    }

    static uint32_t operand_bits(const Stmt& stmt, size_t k) {
        const uint32_t bits = ptx::bit_size(stmt.last_type());
        if ((stmt.op == Opcode::kShl || stmt.op == Opcode::kShr) && k == 2) return 32;
        return stmt.op == Opcode::kMad && stmt.has(Mod::kWide) && k == 3 ? 2 * bits : bits;
    }

    // Unreachable instructions; labels stay, since verbatim branch lists may name them.
    uint32_t drop_unreachable() {
        const uint32_t decided = erase();
        const Result<ptx::Cfg> cfg = ptx::build_cfg(module_, module_.functions[index_]);
        if (!cfg.ok()) return decided;
        for (ptx::BlockId b = 0; b < cfg->blocks.size(); ++b) {
            for (uint32_t i = cfg->blocks[b].begin; i < cfg->blocks[b].end; ++i) {
                const bool jumps_to_next = body()[i].is(Opcode::kBra) && leads_to_next(i);
                if (body()[i].kind != Stmt::Kind::kInstruction) continue;
                if (!cfg->reachable(b) || jumps_to_next) erased_.insert(body()[i].id);
            }
        }
        keep_an_end();
        return decided + erase();
    }

    static bool leaves(const Stmt& stmt) {
        return stmt.is(Opcode::kBra) || stmt.is(Opcode::kRet) || stmt.is(Opcode::kExit);
    }

    bool leads_to_next(size_t i) {
        for (size_t j = i + 1; j < body().size(); ++j) {
            const Stmt& next = body()[j];
            if (next.kind == Stmt::Kind::kLabel) {
                if (!body()[i].operands.empty() && next.sym == body()[i].operands.back().sym)
                    return true;
                continue;
            }
            if (next.kind == Stmt::Kind::kInstruction && !erased_.contains(next.id)) return false;
        }
        return false;
    }

    // A function's text ends with an instruction that leaves it.
    void keep_an_end() {
        for (size_t i = body().size(); i > 0; --i) {
            if (body()[i - 1].kind != Stmt::Kind::kInstruction) continue;
            if (leaves(body()[i - 1])) erased_.erase(body()[i - 1].id);
            return;
        }
    }

    uint32_t erase() {
        const size_t before = body().size();
        std::erase_if(body(), [&](const Stmt& s) { return erased_.contains(s.id); });
        erased_.clear();
        return static_cast<uint32_t>(before - body().size());
    }

    uint32_t drop_unread() {
        std::set<Sym> read;
        std::vector<Sym> regs;
        for (const Stmt& stmt : body()) {
            ptx::read_registers(module_, stmt, regs);
            read.insert(regs.begin(), regs.end());
        }
        for (const ptx::Sym r : module_.functions[index_].returns) read.insert(r);
        for (const Stmt& stmt : body()) {
            if (!is_pure(stmt)) continue;
            ptx::written_registers(stmt, regs);
            const bool used =
                std::any_of(regs.begin(), regs.end(), [&](Sym r) { return read.contains(r); });
            if (!used && !regs.empty()) erased_.insert(stmt.id);
        }
        return erase();
    }

    ptx::Module& module_;
    uint32_t index_;
    std::map<Sym, uint64_t> constants_;
    std::map<Sym, bool> predicates_;
    std::set<uint32_t> erased_;
    bool used_sizes_ = false;
};

}  // namespace

std::string_view Fold::name() const { return "fold"; }
std::string_view Fold::family() const { return "specialise"; }
std::span<const std::string_view> Fold::preconditions() const { return kPreconditions; }

std::vector<Step> Fold::propose(const ptx::Module& module, const Context& context,
                                std::string* why) const {
    const ptx::Function* entry = module.find(context.facts.entry);
    if (entry == nullptr) {
        *why = "no such entry";
        return {};
    }
    ptx::Module copy = module.clone();
    if (Folder(copy, static_cast<uint32_t>(entry - module.functions.data())).run({}) == 0) {
        *why = "nothing to fold";
        return {};
    }
    return {Step{std::string(name()), {}}};
}

Status Fold::apply(const Step& step, const Context& context, Applied& state) const {
    TTT_CHECK_OK(only_knobs(step, {"divide", "ranges"}));
    if (!state.pinned) return make_error(Code::kUnsupported, "rounding is not pinned");
    const ptx::Function& entry = *state.module.find(context.facts.entry);
    Folder::Extent extent{has_knob(step, "divide"), {}};
    if (has_knob(step, "ranges")) {
        const ptx::KnownValues known{{}, true, true, context.facts.block, context.facts.grid};
        if (!ptx::approx_risks(state.module, entry, known).empty()) {
            return make_error(Code::kUnsupported,
                              "an approximate operation may get a constant operand");
        }
        extent.ranges = {context.facts.grid, context.facts.block};
    }
    uint32_t changes = 0;
    bool used_sizes = false;
    for (uint32_t f : ptx::call_closure(state.module, entry)) {
        Folder folder(state.module, f);
        changes += folder.run(extent);
        used_sizes = used_sizes || folder.used_sizes();
    }
    if (changes == 0) return make_error(Code::kUnsupported, "nothing to fold");
    if (used_sizes) {
        Guard guard;
        guard.grid = extent.ranges->grid;
        guard.block = extent.ranges->block;
        state.guard.merge(guard);
    }
    state.notes.push_back(fmt::format("fold: {} changes", changes));
    return ok_status();
}

}  // namespace ttt::xform
