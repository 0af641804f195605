#include "compile/pressure.h"

#include <algorithm>
#include <vector>

#include "compile/compiler.h"
#include "ptx/cfg.h"

namespace ttt::compile {
namespace {

constexpr uint32_t kReserved =
    6;  // stack pointer, return address and scratch that PTX does not show

using ptx::Operand;

// One live range per register: from its first to its last mention, widened over the loops it is
// live around.
struct Range {
    uint32_t first = 0xFFFFFFFFu, last = 0, words = 0;
};

uint32_t words_of(const ptx::Symbol& symbol) {
    const uint32_t bits = ptx::bit_size(symbol.type);
    return bits <= 1 ? 0 : (bits + 31) / 32 * symbol.vector;  // predicates have a file of their own
}

struct Ranges {
    const ptx::Module& module;
    std::vector<Range> of;  // by symbol

    void mention(ptx::Sym sym, uint32_t at) {
        if (sym >= of.size() || module.at(sym).kind != ptx::Symbol::Kind::kRegister) return;
        Range& r = of[sym];
        r.first = std::min(r.first, at);
        r.last = std::max(r.last, at);
        r.words = words_of(module.at(sym));
    }
    void mention(const Operand& operand, uint32_t at) {
        mention(operand.sym, at);
        for (const Operand& e : operand.elems) mention(e, at);
    }
};

// A value made before a loop and used in it lives until the loop's end.
void widen(const ptx::Cfg& cfg, Ranges& ranges) {
    for (auto loop = cfg.loops.rbegin(); loop != cfg.loops.rend(); ++loop) {
        uint32_t begin = 0xFFFFFFFFu;
        uint32_t end = 0;
        for (const ptx::BlockId b : loop->blocks) {
            begin = std::min(begin, cfg.blocks[b].begin);
            end = std::max(end, cfg.blocks[b].end);
        }
        for (Range& r : ranges.of)
            if (r.words != 0 && r.first < begin && r.last >= begin && r.last < end) r.last = end;
    }
}

uint32_t most_live(const Ranges& ranges, size_t statements) {
    std::vector<int64_t> change(statements + 2, 0);
    for (const Range& r : ranges.of) {
        if (r.words == 0 || r.first == 0xFFFFFFFFu) continue;
        change[r.first] += r.words;
        change[std::min<size_t>(r.last, statements) + 1] -= r.words;
    }
    int64_t live = 0;
    int64_t most = 0;
    for (const int64_t c : change) most = std::max(most, live += c);
    return static_cast<uint32_t>(std::min<int64_t>(most, 1 << 20));
}

uint32_t capped(uint64_t bytes) {
    return static_cast<uint32_t>(std::min<uint64_t>(bytes, 0xFFFFFFFFu));
}

void add_variables(const ptx::Module& module, const ptx::Function& entry, Pressure& out) {
    uint64_t local = 0;
    uint64_t shared = 0;
    const auto add = [&](const ptx::Symbol& s) {
        if (s.kind != ptx::Symbol::Kind::kVariable) return;
        if (s.space == ptx::Space::kLocal) local += s.bytes();
        if (s.space == ptx::Space::kShared) shared += s.bytes();
    };
    for (const ptx::Stmt& s : entry.body)
        if (s.kind == ptx::Stmt::Kind::kVariable && s.sym != ptx::kNoSym) add(module.at(s.sym));
    for (const ptx::Variable& v : module.variables)
        if (v.sym != ptx::kNoSym) add(module.at(v.sym));
    out.local_bytes = capped(local);
    out.shared_bytes = capped(shared);
}

}  // namespace

Pressure estimate_pressure(const ptx::Module& module, const ptx::Function& entry,
                           uint32_t max_registers) {
    Pressure out;
    add_variables(module, entry, out);
    Ranges ranges{module, std::vector<Range>(module.symbols.size())};
    for (uint32_t at = 0; at < entry.body.size(); ++at) {
        const ptx::Stmt& s = entry.body[at];
        if (s.kind != ptx::Stmt::Kind::kInstruction) continue;
        ranges.mention(s.guard, at);
        for (const Operand& operand : s.operands) ranges.mention(operand, at);
    }
    if (const auto cfg = ptx::build_cfg(module, entry); cfg.ok()) widen(*cfg, ranges);
    const uint32_t needed = most_live(ranges, entry.body.size()) + kReserved;
    const uint32_t target = effective_registers(max_registers);
    const uint32_t most = target == 0 ? kMostRegisters : target;
    out.registers = std::min(needed, most);
    out.local_bytes = capped(uint64_t{out.local_bytes} + uint64_t{needed - out.registers} * 4);
    return out;
}

}  // namespace ttt::compile
