#include "ptx/exec_cost.h"

#include <algorithm>
#include <unordered_map>

namespace ttt::ptx::exec {
namespace {

enum class Operands : uint8_t { kAnyOperands, kInt, kSigned, kFloat };
enum class Form : uint8_t {
    kAnyForm,
    kImmediate,  // the last operand is a literal
    kWide,
    kHigh,
    kApprox,
    kApproxFtz,
    kFull,
    kToFloat,  // cvt from an integer
    kToInt,    // cvt from a float
    kFloatToFloat,
    kParameter,
};

struct Row {
    Opcode op;
    Operands operands;
    uint32_t bits;
    Form form;
    Cost cost;
};
constexpr Row kRows[] = {
#define TTT_COST(op, operands, bits, form, unit, instructions, special) \
    {Opcode::op, Operands::operands, bits, Form::form, {Unit::unit, instructions, special}},
#include "ptx/costs.def"
#undef TTT_COST
};

uint32_t largest_bits(const Stmt& s) {
    uint32_t bits = 0;
    for (unsigned k = 0; s.type(k) != Type::kNone; ++k) bits = std::max(bits, bit_size(s.type(k)));
    return bits;
}

bool has_form(const Stmt& s, Form form) {
    const bool to_float = is_float(s.type(0)), from_float = is_float(s.type(1));
    switch (form) {
        case Form::kAnyForm:
            return true;
        case Form::kImmediate:
            return !s.operands.empty() && s.operands.back().kind == Operand::Kind::kImmediate;
        case Form::kWide:
            return s.has(Mod::kWide);
        case Form::kHigh:
            return s.has(Mod::kHi);
        case Form::kApprox:
            return s.has(Mod::kApprox);
        case Form::kApproxFtz:
            return s.has(Mod::kApprox) && s.has(Mod::kFtz);
        case Form::kFull:
            return s.has(Mod::kFull);
        case Form::kToFloat:
            return to_float && !from_float;
        case Form::kToInt:
            return !to_float && from_float;
        case Form::kFloatToFloat:
            return to_float && from_float;
        case Form::kParameter:
            return s.space() == Space::kParam;
    }
    return false;
}

bool has_operands(const Stmt& s, Operands operands) {
    switch (operands) {
        case Operands::kAnyOperands:
            return true;
        case Operands::kFloat:
            return is_float(s.last_type());
        case Operands::kInt:
            return !is_float(s.last_type());
        case Operands::kSigned:
            return is_signed(s.last_type());
    }
    return false;
}

bool fits(const Row& row, const Stmt& s) {
    return row.op == s.op && (row.bits == 0 || row.bits == largest_bits(s)) &&
           has_operands(s, row.operands) && has_form(s, row.form);
}

// Clocks from an instruction's issue to its result's use: public microbenchmarks of Ampere and
// Hopper (Jia et al. 2018 for the method; Abdelkhalik et al. 2022; Luo et al. 2024). An expansion
// is taken as one chain.
constexpr uint32_t kLatency = 4, kDoubleLatency = 8, kSpecialLatency = 18, kSharedLatency = 29,
                   kBranchLatency = 8, kBarrierLatency = 20;

bool is_barrier(const Stmt& s) { return (info(s.op).flags & kFlagBarrier) != 0; }
bool reads_memory(const Stmt& s) {
    return (info(s.op).flags & (kFlagLoad | kFlagAtomic)) != 0 && s.op != Opcode::kRed;
}
bool is_off_chip(Space space) { return space == Space::kGlobal || space == Space::kGeneric; }

uint32_t latency_of(const Stmt& s, const Cost& cost) {
    if ((info(s.op).flags & kFlagBranch) != 0) return kBranchLatency;
    if (is_barrier(s)) return kBarrierLatency;
    const uint32_t each = cost.unit == Unit::kDouble                          ? kDoubleLatency
                          : cost.unit != Unit::kMemory || s.op == Opcode::kSt ? kLatency
                                                                              : kSharedLatency;
    return each * cost.instructions + kSpecialLatency * cost.special;
}

// Special registers other than sizes, which lie in constant memory, are read by an instruction.
bool reads_thread_register(const Stmt& s) {
    if (s.op != Opcode::kMov || s.operands.size() != 2) return false;
    const Operand& from = s.operands[1];
    return from.kind == Operand::Kind::kSpecial && from.text != "ntid" && from.text != "nctaid";
}

// When a value is there: loads waited for, and clocks besides.
struct Ready {
    uint32_t loads = 0, clocks = 0;
    uint64_t nominal() const { return uint64_t{loads} * 300 + clocks; }
};
Ready later(Ready a, Ready b) { return a.nominal() >= b.nominal() ? a : b; }

// Walks one basic block in order.
class Chain {
  public:
    Chain(const Function& function, const FunctionCode& code) : function_(function), code_(code) {}

    void add(const Op& op, OpCost& out) {
        const Stmt& s = function_.body[op.stmt];
        Cost cost = cost_of(s);
        if (reads_thread_register(s)) cost = {Unit::kNone, 0, 1};
        // Multiply or shift and then add: one instruction (IMAD, LEA).
        if (s.op == Opcode::kAdd && !is_float(s.last_type()) && from_product(op))
            cost.instructions = 0;
        out.unit = cost.unit;
        out.instructions = cost.instructions;
        out.special = cost.special;
        const bool load = reads_memory(s) && is_off_chip(op.space);
        Ready at = start(op);
        if (load)
            ++at.loads;
        else
            at.clocks += cost.instructions + cost.special == 0 ? 0 : latency_of(s, cost);
        finish(op, at);
        const bool product = (s.op == Opcode::kMul && !s.has(Mod::kHi)) || s.op == Opcode::kShl;
        if (op.dst[0].offset != kNowhere) products_[op.dst[0].offset] = product;
        whole_ = later(whole_, at);
    }
    Ready whole() const { return whole_; }

  private:
    Ready of(uint32_t slot) const {
        const auto it = ready_.find(slot);
        return it == ready_.end() ? Ready{} : it->second;
    }
    bool from_product(const Op& op) const {
        return std::any_of(op.src, op.src + op.sources, [&](const Source& s) {
            const auto it = products_.find(s.offset);
            return s.bank == 0 && it != products_.end() && it->second;
        });
    }
    Ready start(const Op& op) const {
        Ready at;
        for (const Source& s : op.src)
            if (s.bank == 0) at = later(at, of(s.offset));
        if (op.guard != kNowhere) at = later(at, of(op.guard));
        const Stmt& s = function_.body[op.stmt];
        const bool packs = s.op == Opcode::kMov && op.dst[0].offset != kNowhere;
        const bool writes = (info(s.op).flags & (kFlagStore | kFlagAtomic)) != 0;
        if (op.table != kNowhere && (packs || writes))
            for (const Source& v : code_.values[op.table])
                if (v.bank == 0) at = later(at, of(v.offset));
        return at;
    }
    void finish(const Op& op, Ready at) {
        for (const Dest& d : op.dst)
            if (d.offset != kNowhere) ready_[d.offset] = at;
        const Stmt& s = function_.body[op.stmt];
        const bool unpacks = s.op == Opcode::kMov && op.dst[0].offset == kNowhere;
        const bool loads = (info(s.op).flags & kFlagLoad) != 0;
        const uint32_t table = op.results != kNowhere ? op.results
                               : loads || unpacks     ? op.table
                                                      : kNowhere;
        if (table == kNowhere) return;
        for (const Dest& d : code_.dests[table])
            if (d.offset != kNowhere) ready_[d.offset] = at;
    }

    const Function& function_;
    const FunctionCode& code_;
    std::unordered_map<uint32_t, Ready> ready_;
    std::unordered_map<uint32_t, bool> products_;
    Ready whole_;
};

std::vector<bool> leaders(const FunctionCode& code) {
    std::vector<bool> leads(code.ops.size() + 1, false);
    leads[0] = true;
    for (size_t i = 0; i < code.ops.size(); ++i) {
        const Op& op = code.ops[i];
        if (op.joins) leads[i] = true;
        if (op.flow == Flow::kNone || op.flow == Flow::kCollective) continue;
        leads[i + 1] = true;
        if (op.flow == Flow::kBranch) leads[op.target] = true;
        if (op.flow == Flow::kBranchIndexed)
            for (const uint32_t target : code.targets[op.table]) leads[target] = true;
    }
    return leads;
}

}  // namespace

Cost cost_of(const Stmt& s) {
    for (const Row& row : kRows)
        if (fits(row, s)) return row.cost;
    return {Unit::kInteger, static_cast<uint8_t>(largest_bits(s) == 64 ? 2 : 1), 0};
}

void weigh(const Function& function, FunctionCode& code) {
    const std::vector<bool> leads = leaders(code);
    code.costs.resize(code.ops.size());
    for (size_t begin = 0; begin < code.ops.size();) {
        Chain chain(function, code);
        size_t end = begin;
        do {
            if (code.ops[end].counted) chain.add(code.ops[end], code.costs[end]);
        } while (!leads[++end] && end < code.ops.size());
        code.costs[begin].chain_loads = chain.whole().loads;
        code.costs[begin].chain_clocks = chain.whole().clocks;
        begin = end;
    }
}

void add_costs(const FunctionCode& code, const std::vector<uint64_t>& hits, Counters& counters) {
    for (size_t i = 0; i < hits.size(); ++i) {
        const OpCost& cost = code.costs[i];
        counters.machine[static_cast<size_t>(cost.unit)] += hits[i] * cost.instructions;
        counters.machine[static_cast<size_t>(Unit::kSpecial)] += hits[i] * cost.special;
        counters.chain_loads += hits[i] * cost.chain_loads;
        counters.chain_clocks += hits[i] * cost.chain_clocks;
    }
}

}  // namespace ttt::ptx::exec
