#include "ptx/loops.h"

#include <algorithm>
#include <map>
#include <set>

#include "ptx/dataflow.h"

namespace ttt::ptx {
namespace {

struct Block {
    uint32_t begin = 0, end = 0;
    std::vector<uint32_t> next, previous;
};

class Loops {
  public:
    Loops(const Module& module, const Function& function) : module_(module), body_(function.body) {
        split();
        connect();
    }

    LoopFacts run() {
        find_back_edges();
        for (auto& [header, members] : loops_) facts_.spins = facts_.spins || spins(members);
        facts_.loops = static_cast<uint32_t>(loops_.size());
        return facts_;
    }

  private:
    static bool ends_block(const Stmt& stmt) {
        return stmt.kind == Stmt::Kind::kInstruction && stmt.op != Opcode::kOpaque &&
               (info(stmt.op).flags & (kFlagBranch | kFlagTerminator)) != 0;
    }

    void split() {
        Block block;
        for (uint32_t i = 0; i < body_.size(); ++i) {
            if (body_[i].kind == Stmt::Kind::kLabel) {
                if (i > block.begin) close(block, i);
                label_[body_[i].sym] = static_cast<uint32_t>(blocks_.size());
            }
            if (ends_block(body_[i])) close(block, i + 1);
        }
        if (block.begin < body_.size()) close(block, static_cast<uint32_t>(body_.size()));
    }

    void close(Block& block, uint32_t end) {
        block.end = end;
        blocks_.push_back(block);
        block = Block{};
        block.begin = end;
    }

    void connect() {
        for (uint32_t b = 0; b < blocks_.size(); ++b) {
            const Stmt& last = body_[blocks_[b].end - 1];
            bool falls = !ends_block(last) || last.guard != kNoSym;
            if (last.is(Opcode::kBra)) {
                const auto to =
                    last.operands.empty() ? label_.end() : label_.find(last.operands.back().sym);
                if (to == label_.end())
                    facts_.unknown = true;
                else
                    edge(b, to->second);
            } else if (last.is(Opcode::kBrx)) {  // any label may be a target
                for (const auto& [sym, to] : label_) edge(b, to);
            }
            if (falls && b + 1 < blocks_.size()) edge(b, b + 1);
        }
    }

    void edge(uint32_t from, uint32_t to) {
        blocks_[from].next.push_back(to);
        blocks_[to].previous.push_back(from);
    }

    // An edge to a block on the depth-first path closes a loop.
    void find_back_edges() {
        std::vector<uint8_t> state(blocks_.size(), 0);  // 0 new, 1 on the path, 2 done
        std::vector<std::pair<uint32_t, size_t>> path;
        if (blocks_.empty()) return;
        path.emplace_back(0, 0);
        state[0] = 1;
        while (!path.empty()) {
            auto& [b, k] = path.back();
            if (k == blocks_[b].next.size()) {
                state[b] = 2;
                path.pop_back();
                continue;
            }
            const uint32_t to = blocks_[b].next[k++];
            if (state[to] == 1) add_loop(b, to);
            if (state[to] == 0) {
                state[to] = 1;
                path.emplace_back(to, 0);
            }
        }
    }

    void add_loop(uint32_t latch, uint32_t header) {
        std::set<uint32_t>& members = loops_[header];
        members.insert(header);
        std::vector<uint32_t> work{latch};
        while (!work.empty()) {
            const uint32_t b = work.back();
            work.pop_back();
            if (!members.insert(b).second) continue;
            for (uint32_t p : blocks_[b].previous) work.push_back(p);
        }
    }

    template <typename Visit>
    void each(const std::set<uint32_t>& members, Visit&& visit) const {
        for (uint32_t b : members) {
            for (uint32_t i = blocks_[b].begin; i < blocks_[b].end; ++i) visit(body_[i]);
        }
    }

    bool spins(const std::set<uint32_t>& members) const {
        std::set<Sym> written;
        std::vector<Sym> regs;
        each(members, [&](const Stmt& stmt) {
            written_registers(stmt, regs);
            written.insert(regs.begin(), regs.end());
        });
        std::set<Sym> fresh;  // values that may change though the thread itself changed nothing
        each(members, [&](const Stmt& stmt) {
            if (!rereads_memory(stmt, written)) return;
            written_registers(stmt, regs);
            fresh.insert(regs.begin(), regs.end());
        });
        if (fresh.empty()) return false;
        spread(members, fresh);
        return exit_depends_on(members, fresh);
    }

    static bool is_private(const Stmt& stmt) {
        const Space space = stmt.space();
        return space == Space::kShared || space == Space::kLocal || space == Space::kParam ||
               space == Space::kConst;
    }

    bool rereads_memory(const Stmt& stmt, const std::set<Sym>& written) const {
        if (stmt.kind != Stmt::Kind::kInstruction || is_private(stmt)) return false;
        if (stmt.op == Opcode::kAtom) {
            // A retry loop compares with what it just read; a lock compares with something fixed.
            if (!stmt.has(Mod::kCas) || stmt.operands.size() < 3) return true;
            const Operand& expected = stmt.operands[2];
            return expected.kind != Operand::Kind::kRegister || !written.contains(expected.sym);
        }
        if (stmt.op != Opcode::kLd || stmt.operands.size() < 2) return false;
        if (is_strong(stmt)) return true;
        const Sym base = stmt.operands[1].sym;
        return !stmt.has(Mod::kNc) && (base == kNoSym || !written.contains(base));
    }

    void spread(const std::set<uint32_t>& members, std::set<Sym>& fresh) const {
        std::vector<Sym> reads, writes;
        for (bool changed = true; changed;) {
            changed = false;
            each(members, [&](const Stmt& stmt) {
                read_registers(module_, stmt, reads);
                if (std::none_of(reads.begin(), reads.end(),
                                 [&](Sym r) { return fresh.contains(r); }))
                    return;
                written_registers(stmt, writes);
                for (Sym w : writes) changed = fresh.insert(w).second || changed;
            });
        }
    }

    bool exit_depends_on(const std::set<uint32_t>& members, const std::set<Sym>& fresh) const {
        for (uint32_t b : members) {
            const Stmt& last = body_[blocks_[b].end - 1];
            if (!ends_block(last) || last.guard == kNoSym || !fresh.contains(last.guard)) continue;
            const auto& next = blocks_[b].next;
            const bool leaves = (info(last.op).flags & kFlagTerminator) != 0 ||
                                std::any_of(next.begin(), next.end(),
                                            [&](uint32_t n) { return !members.contains(n); });
            if (leaves) return true;
        }
        return false;
    }

    const Module& module_;
    const std::vector<Stmt>& body_;
    std::vector<Block> blocks_;
    std::map<Sym, uint32_t> label_;
    std::map<uint32_t, std::set<uint32_t>> loops_;
    LoopFacts facts_;
};

}  // namespace

bool is_strong(const Stmt& stmt) {
    if (stmt.kind != Stmt::Kind::kInstruction) return false;
    constexpr uint32_t kMemory = kFlagLoad | kFlagStore;
    if (stmt.op == Opcode::kOpaque || (info(stmt.op).flags & kMemory) == 0) return false;
    for (Mod m : {Mod::kVolatile, Mod::kRelaxed, Mod::kAcquire, Mod::kRelease, Mod::kMmio}) {
        if (stmt.has(m)) return true;
    }
    return false;
}

LoopFacts loop_facts(const Module& module, const Function& function) {
    return Loops(module, function).run();
}

}  // namespace ttt::ptx
