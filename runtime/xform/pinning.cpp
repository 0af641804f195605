#include "xform/pinning.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "ptx/dataflow.h"
#include "xform/closure.h"

namespace ttt::xform {
namespace {

using ptx::Mod;
using ptx::Opcode;
using ptx::Operand;
using ptx::Stmt;
using ptx::Sym;
using ptx::Type;

constexpr std::array kRules = {PinRule::kDefault, PinRule::kSecond, PinRule::kUses,
                               PinRule::kAcross, PinRule::kRounded};

void insert_mod(Stmt& stmt, uint8_t at, Mod mod) {
    for (uint8_t i = stmt.mod_count; i > at; --i) stmt.mods[i] = stmt.mods[i - 1];
    stmt.mods[at] = mod;
    ++stmt.mod_count;
}

bool can_take_mod(const Stmt& stmt) { return stmt.mod_count < std::size(stmt.mods); }

bool ends_block(const Stmt& stmt) {
    if (stmt.kind != Stmt::Kind::kInstruction || stmt.op == Opcode::kOpaque) return false;
    constexpr uint32_t kEnds =
        ptx::kFlagBranch | ptx::kFlagTerminator | ptx::kFlagCall | ptx::kFlagBarrier;
    return (ptx::info(stmt.op).flags & kEnds) != 0;
}

// The fused forms exist for these types only.
bool has_fma(Type type) {
    switch (type) {
        case Type::kF32:
        case Type::kF64:
        case Type::kF16:
        case Type::kF16x2:
        case Type::kBF16:
        case Type::kBF16x2:
            return true;
        default:
            return false;
    }
}

class Pinner {
  public:
    Pinner(ptx::Module& module, uint32_t function, PinRule rule)
        : module_(module), index_(function), rule_(rule), body_(module.functions[function].body) {}

    PinCounts run() {
        scan();
        for (size_t i = 0; i < body_.size(); ++i) {
            if (is_sum(body_[i])) fuse(i);
        }
        for (Stmt& stmt : body_) {
            if (ptx::is_unrounded_float(stmt) && !removed_.contains(stmt.id)) round(stmt);
        }
        rebuild();
        return counts_;
    }

  private:
    static bool is_sum(const Stmt& stmt) {
        return (stmt.op == Opcode::kAdd || stmt.op == Opcode::kSub) &&
               ptx::is_unrounded_float(stmt) && stmt.guard == ptx::kNoSym &&
               stmt.operands.size() == 3;
    }
    static bool is_product(const Stmt& stmt) {
        return stmt.op == Opcode::kMul && ptx::is_unrounded_float(stmt) &&
               stmt.guard == ptx::kNoSym && !stmt.has(Mod::kSat) && stmt.operands.size() == 3 &&
               stmt.operands[0].kind == Operand::Kind::kRegister && has_fma(stmt.type());
    }

    void scan() {
        std::vector<Sym> regs;
        uint32_t block = 0;
        for (size_t i = 0; i < body_.size(); ++i) {
            if (body_[i].kind == Stmt::Kind::kLabel) ++block;
            block_.push_back(block);
            ptx::written_registers(body_[i], regs);
            for (Sym r : regs) definitions_[r].push_back(i);
            ptx::read_registers(module_, body_[i], regs);
            for (Sym r : regs) uses_[r].push_back(i);
            if (ends_block(body_[i])) ++block;
        }
    }

    void fuse(size_t sum) {
        const size_t order[2] = {rule_ == PinRule::kSecond ? size_t{2} : size_t{1},
                                 rule_ == PinRule::kSecond ? size_t{1} : size_t{2}};
        for (size_t position : order) {
            const std::optional<size_t> product = product_for(sum, position);
            if (!product) continue;
            make_fma(sum, *product, position);
            return;
        }
    }

    std::optional<size_t> product_for(size_t sum, size_t position) {
        if (rule_ == PinRule::kRounded) return std::nullopt;
        const Operand& v = body_[sum].operands[position];
        const Operand& other = body_[sum].operands[3 - position];
        if (v.kind != Operand::Kind::kRegister) return std::nullopt;
        if (other.kind == Operand::Kind::kRegister && other.sym == v.sym) return std::nullopt;
        const auto defs = definitions_.find(v.sym);
        if (defs == definitions_.end() || defs->second.size() != 1) return std::nullopt;
        const size_t product = defs->second.front();
        const Stmt& mul = body_[product];
        if (!is_product(mul) || product >= sum || mul.type() != body_[sum].type())
            return std::nullopt;
        if (mul.has(Mod::kFtz) != body_[sum].has(Mod::kFtz)) return std::nullopt;
        if (block_[product] != block_[sum] && rule_ != PinRule::kAcross) return std::nullopt;
        if (!uses_allow(v.sym) || redefined_between(mul, product, sum)) return std::nullopt;
        return product;
    }

    bool uses_allow(Sym product) const {
        const auto& uses = uses_.at(product);
        if (rule_ != PinRule::kUses) return uses.size() == 1;
        return std::all_of(uses.begin(), uses.end(), [&](size_t i) {
            return is_sum(body_[i]) || body_[i].op == Opcode::kFma;
        });
    }

    bool redefined_between(const Stmt& mul, size_t from, size_t to) const {
        for (size_t k = 1; k < mul.operands.size(); ++k) {
            if (mul.operands[k].kind != Operand::Kind::kRegister) continue;
            const auto defs = definitions_.find(mul.operands[k].sym);
            if (defs == definitions_.end()) continue;
            for (size_t d : defs->second) {
                if (d >= from && d < to) return true;
            }
        }
        return false;
    }

    // a*b + c; a*b - c = a*b + (-c); c - a*b = (-a)*b + c.
    void make_fma(size_t sum, size_t product, size_t position) {
        Stmt& add = body_[sum];
        const Stmt mul = body_[product];
        Operand a = mul.operands[1], b = mul.operands[2], c = add.operands[3 - position];
        if (add.op == Opcode::kSub) {
            Operand& flipped = position == 1 ? c : a;
            flipped = negate(flipped, add, sum);
        }
        const Operand dest = add.operands[0];
        add.op = Opcode::kFma;
        add.operands = {dest, a, b, c};
        insert_mod(add, 0, Mod::kRn);
        add.offset = 0xFFFFFFFFu;
        ++counts_.fused;
        consume(product, sum);
    }

    // The product disappears with its last use.
    void consume(size_t product, size_t sum) {
        auto& uses = uses_[body_[product].operands[0].sym];
        std::erase(uses, sum);
        if (uses.empty()) removed_.insert(body_[product].id);
    }

    Operand negate(const Operand& operand, const Stmt& like, size_t before) {
        Stmt neg;
        neg.op = Opcode::kNeg;
        neg.id = module_.next_id++;
        neg.offset = 0xFFFFFFFFu;
        if (like.has(Mod::kFtz)) neg.mods[neg.mod_count++] = Mod::kFtz;
        for (uint8_t i = 0; i < like.mod_count; ++i) {
            if (ptx::type_of(like.mods[i]) != Type::kNone) neg.mods[neg.mod_count++] = like.mods[i];
        }
        Operand dest;
        dest.kind = Operand::Kind::kRegister;
        dest.sym = module_.add_register(index_, register_type(operand, like.type()), "pin");
        neg.operands = {dest, operand};
        inserted_[before].push_back(neg);
        return dest;
    }

    Type register_type(const Operand& operand, Type type) const {
        return operand.kind == Operand::Kind::kRegister ? module_.at(operand.sym).type : type;
    }

    void round(Stmt& stmt) {
        if (!can_take_mod(stmt) || stmt.op == Opcode::kMad) {
            ++counts_.impossible;
            return;
        }
        insert_mod(stmt, 0, Mod::kRn);
        ++counts_.rounded;
    }

    void rebuild() {
        if (inserted_.empty() && removed_.empty()) return;
        std::vector<Stmt> out;
        out.reserve(body_.size() + inserted_.size());
        for (size_t i = 0; i < body_.size(); ++i) {
            if (const auto it = inserted_.find(i); it != inserted_.end()) {
                for (Stmt& s : it->second) out.push_back(std::move(s));
            }
            if (!removed_.contains(body_[i].id)) out.push_back(std::move(body_[i]));
        }
        body_ = std::move(out);
    }

    ptx::Module& module_;
    uint32_t index_;
    PinRule rule_;
    std::vector<Stmt>& body_;
    std::vector<uint32_t> block_;
    std::map<Sym, std::vector<size_t>> definitions_, uses_;
    std::set<uint32_t> removed_;
    std::map<size_t, std::vector<Stmt>> inserted_;
    PinCounts counts_;
};

bool same(const Context::FusedCounts& a, const Context::FusedCounts& b) {
    return a.ffma == b.ffma && a.fmul == b.fmul && a.fadd == b.fadd && a.dfma == b.dfma &&
           a.dmul == b.dmul && a.dadd == b.dadd;
}

Context::Pinning refused(std::string why) {
    return {.possible = false, .rule = {}, .evidence = std::move(why)};
}

}  // namespace

std::span<const PinRule> pin_rules() { return kRules; }

std::string_view name(PinRule rule) {
    switch (rule) {
        case PinRule::kDefault:
            return "";
        case PinRule::kRounded:
            return "rounded";
        case PinRule::kSecond:
            return "second";
        case PinRule::kUses:
            return "uses";
        case PinRule::kAcross:
            return "across";
    }
    return "";
}

std::optional<PinRule> find_pin_rule(std::string_view text) {
    for (PinRule rule : kRules) {
        if (name(rule) == text) return rule;
    }
    return std::nullopt;
}

bool has_unrounded(const ptx::Module& module, const ptx::Function& entry) {
    for (uint32_t f : ptx::call_closure(module, entry)) {
        for (const Stmt& stmt : module.functions[f].body) {
            if (ptx::is_unrounded_float(stmt)) return true;
        }
    }
    return false;
}

PinCounts pin_in_place(ptx::Module& module, const ptx::Function& entry, PinRule rule) {
    PinCounts all;
    for (uint32_t f : ptx::call_closure(module, entry)) {
        const PinCounts one = Pinner(module, f, rule).run();
        all.fused += one.fused;
        all.rounded += one.rounded;
        all.impossible += one.impossible;
    }
    return all;
}

Result<ptx::Module> pin(const ptx::Module& module, std::string_view entry) {
    TTT_TRY(ptx::Module out, extract(module, entry));
    if (pin_in_place(out, *out.find(entry)).impossible > 0) {
        return make_error(Code::kUnsupported, "an operation has no form with explicit rounding");
    }
    return out;
}

Context::Pinning decide_pinning(const ptx::Module& module, std::string_view entry,
                                const Assemble& assemble,
                                const std::optional<Context::FusedCounts>& program) {
    Result<ptx::Module> cut = extract(module, entry);
    if (!cut) return refused(cut.error().str());
    if (!has_unrounded(*cut, *cut->find(entry)))
        return {.possible = true, .rule = {}, .evidence = "nothing to pin"};
    const Result<AssembledCode> original = assemble(ptx::print(*cut));
    if (!original) return refused("the original does not assemble: " + original.error().str());
    if (program && !same(*program, original->counts)) {
        return refused(
            "the program's machine code has other operation counts than its PTX gives here");
    }
    std::optional<PinRule> by_counts;
    for (PinRule rule : kRules) {
        ptx::Module pinned = cut->clone();
        if (pin_in_place(pinned, *pinned.find(entry), rule).impossible > 0) {
            return refused("an operation has no form with explicit rounding");
        }
        const Result<AssembledCode> code = assemble(ptx::print(pinned));
        if (!code) continue;
        if (!original->text.empty() && code->text == original->text) {
            return {.possible = true,
                    .rule = std::string(name(rule)),
                    .evidence = "equal machine code"};
        }
        if (!by_counts && same(code->counts, original->counts)) by_counts = rule;
    }
    if (by_counts) {
        return {.possible = true,
                .rule = std::string(name(*by_counts)),
                .evidence = "equal operation counts"};
    }
    return refused("no prediction of fused operations matches the machine code");
}

}  // namespace ttt::xform
