#include "xform/transforms/fold.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "ptx/cfg.h"
#include "ptx/dataflow.h"
#include "xform/knobs.h"

namespace ttt::xform {
namespace {

using ptx::Mod;
using ptx::Opcode;
using ptx::Operand;
using ptx::Stmt;
using ptx::Sym;
using ptx::Type;

constexpr std::array<std::string_view, 2> kPreconditions = {
    "rounding is pinned",
    "some integer instruction has only constant operands, or some result is never read",
};

bool is_integer(Type type) {
    return type != Type::kNone && !ptx::is_float(type) && ptx::bit_size(type) >= 8;
}

uint64_t truncate(uint64_t value, uint32_t bits) {
    return bits >= 64 ? value : value & ((uint64_t{1} << bits) - 1);
}

int64_t as_signed(uint64_t value, uint32_t bits) {
    const uint32_t shift = 64 - bits;
    return static_cast<int64_t>(value << shift) >> shift;
}

// Value of `bits` wide operands widened for a comparison or a wide product.
uint64_t widen(uint64_t value, Type type) {
    const uint32_t bits = ptx::bit_size(type);
    return ptx::is_signed(type) ? static_cast<uint64_t>(as_signed(value, bits))
                                : truncate(value, bits);
}

// One instruction on constants; nullopt for anything but plain integer forms.
class Evaluator {
  public:
    explicit Evaluator(const Stmt& stmt)
        : stmt_(stmt), type_(stmt.last_type()), bits_(ptx::bit_size(type_)) {}

    std::optional<uint64_t> run(const std::vector<uint64_t>& in) const {
        if (!is_integer(type_) || bits_ > 64 || stmt_.has(Mod::kSat) || stmt_.has(Mod::kCc) ||
            stmt_.has(Mod::kHi)) {
            return std::nullopt;
        }
        switch (stmt_.op) {
            case Opcode::kMov:
                return truncate(in[0], bits_);
            case Opcode::kAdd:
                return truncate(in[0] + in[1], bits_);
            case Opcode::kSub:
                return truncate(in[0] - in[1], bits_);
            case Opcode::kAnd:
                return truncate(in[0] & in[1], bits_);
            case Opcode::kOr:
                return truncate(in[0] | in[1], bits_);
            case Opcode::kXor:
                return truncate(in[0] ^ in[1], bits_);
            case Opcode::kNot:
                return truncate(~in[0], bits_);
            case Opcode::kNeg:
                return truncate(0 - in[0], bits_);
            case Opcode::kMul:
                return product(in[0], in[1]);
            case Opcode::kMad:
                return multiply_add(in);
            case Opcode::kShl:
                return truncate(in[1], 32) >= bits_ ? 0
                                                    : truncate(in[0] << truncate(in[1], 32), bits_);
            case Opcode::kShr:
                return shift_right(in[0], truncate(in[1], 32));
            case Opcode::kMin:
            case Opcode::kMax:
                return extreme(in[0], in[1]);
            case Opcode::kCvt:
                return convert(in[0]);
            default:
                return std::nullopt;
        }
    }

    // setp on integers with one plain comparison.
    std::optional<bool> compare(uint64_t a, uint64_t b) const {
        if (!is_integer(type_) || bits_ > 64 || stmt_.mod_count != 2) return std::nullopt;
        const uint64_t x = widen(a, type_), y = widen(b, type_);
        const bool less =
            ptx::is_signed(type_) ? static_cast<int64_t>(x) < static_cast<int64_t>(y) : x < y;
        switch (stmt_.mods[0]) {
            case Mod::kEq:
                return x == y;
            case Mod::kNe:
                return x != y;
            case Mod::kLt:
                return less;
            case Mod::kGe:
                return !less;
            case Mod::kLe:
                return less || x == y;
            case Mod::kGt:
                return !less && x != y;
            default:
                return std::nullopt;
        }
    }

  private:
    std::optional<uint64_t> product(uint64_t a, uint64_t b) const {
        if (stmt_.has(Mod::kWide)) return truncate(widen(a, type_) * widen(b, type_), 2 * bits_);
        if (stmt_.has(Mod::kLo)) return truncate(a * b, bits_);
        return std::nullopt;
    }
    std::optional<uint64_t> multiply_add(const std::vector<uint64_t>& in) const {
        const auto p = product(in[0], in[1]);
        if (!p) return std::nullopt;
        return truncate(*p + in[2], stmt_.has(Mod::kWide) ? 2 * bits_ : bits_);
    }
    uint64_t shift_right(uint64_t value, uint64_t count) const {
        if (ptx::is_signed(type_)) {
            return truncate(static_cast<uint64_t>(as_signed(value, bits_) >>
                                                  std::min<uint64_t>(count, bits_ - 1)),
                            bits_);
        }
        return count >= bits_ ? 0 : truncate(value, bits_) >> count;
    }
    uint64_t extreme(uint64_t a, uint64_t b) const {
        const uint64_t x = widen(a, type_), y = widen(b, type_);
        const bool less =
            ptx::is_signed(type_) ? static_cast<int64_t>(x) < static_cast<int64_t>(y) : x < y;
        return truncate((stmt_.op == Opcode::kMin) == less ? x : y, bits_);
    }
    std::optional<uint64_t> convert(uint64_t value) const {
        const Type to = stmt_.type(0), from = stmt_.type(1);
        if (stmt_.mod_count != 2 || !is_integer(to) || !is_integer(from)) return std::nullopt;
        return truncate(widen(value, from), ptx::bit_size(to));
    }

    const Stmt& stmt_;
    Type type_;
    uint32_t bits_;
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

    uint32_t run() {
        uint32_t total = 0;
        while (const uint32_t changes = once()) total += changes;
        return total;
    }

  private:
    std::vector<Stmt>& body() { return module_.functions[index_].body; }

    uint32_t once() {
        find_constants();
        uint32_t changes = 0;
        for (Stmt& stmt : body()) {
            if (stmt.kind != Stmt::Kind::kInstruction) continue;
            changes += decide_guard(stmt);
            changes += evaluate(stmt);
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
            if (stmt.is(Opcode::kSetp)) note_predicate(stmt, dest.sym);
        }
    }

    void note_predicate(const Stmt& stmt, Sym dest) {
        if (stmt.operands.size() != 3) return;
        const auto a = value(stmt.operands[1]), b = value(stmt.operands[2]);
        if (!a || !b) return;
        if (const auto got = Evaluator(stmt).compare(*a, *b)) predicates_[dest] = *got;
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

    uint32_t evaluate(Stmt& stmt) {
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
        if (in.size() < arity(stmt.op)) return 0;
        const auto result = Evaluator(stmt).run(in);
        if (!result) return 0;
        become_constant(stmt, *result);
        return 1;
    }

    static size_t arity(Opcode op) {
        switch (op) {
            case Opcode::kMov:
            case Opcode::kNot:
            case Opcode::kNeg:
            case Opcode::kCvt:
                return 1;
            case Opcode::kMad:
                return 3;
            default:
                return 2;
        }
    }

    void become_constant(Stmt& stmt, uint64_t result) {
        const Type type = module_.at(stmt.operands[0].sym).type;
        const uint32_t bits = ptx::bit_size(type);
        // cvt into a wider register sign-extends there as well.
        if (stmt.is(Opcode::kCvt)) result = widen(result, stmt.type(0));
        stmt.op = Opcode::kMov;
        stmt.mod_count = 1;
        stmt.mods[0] = bits == 64 ? Mod::kB64 : bits == 16 ? Mod::kB16 : Mod::kB32;
        stmt.operands.resize(2);
        stmt.operands[1] = immediate(truncate(result, bits));
        stmt.offset = 0xFFFFFFFFu;
    }

    Operand immediate(uint64_t bits) {
        Operand out;
        out.kind = Operand::Kind::kImmediate;
        out.value = bits;
        out.text = module_.intern(fmt::format("{}", bits));
        return out;
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
            o = immediate(*v);
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
            if (stmt.kind == Stmt::Kind::kInstruction && stmt.op == Opcode::kOpaque)
                return 0;  // may read anything
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
    if (Folder(copy, static_cast<uint32_t>(entry - module.functions.data())).run() == 0) {
        *why = "nothing to fold";
        return {};
    }
    return {Step{std::string(name()), {}}};
}

Status Fold::apply(const Step& step, const Context& context, Applied& state) const {
    TTT_CHECK_OK(only_knobs(step, {}));
    if (!state.pinned) return make_error(Code::kUnsupported, "rounding is not pinned");
    uint32_t changes = 0;
    for (uint32_t f : ptx::call_closure(state.module, *state.module.find(context.facts.entry))) {
        changes += Folder(state.module, f).run();
    }
    if (changes == 0) return make_error(Code::kUnsupported, "nothing to fold");
    state.notes.push_back(fmt::format("fold: {} changes", changes));
    return ok_status();
}

}  // namespace ttt::xform
