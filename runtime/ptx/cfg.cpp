#include "ptx/cfg.h"

#include <algorithm>

namespace ttt::ptx {
namespace {

bool ends_block(const Stmt& s) {
    if (s.kind != Stmt::Kind::kInstruction) return false;
    return (info(s.op).flags & (kFlagBranch | kFlagTerminator)) != 0 || s.op == Opcode::kTrap;
}

// The labels a branch may take; a plain bra has one.
std::vector<Sym> targets_of(const Function& function, const Stmt& s) {
    if (s.op == Opcode::kBrx) return branch_targets(function, s);
    if (s.op != Opcode::kBra || s.operands.empty()) return {};
    const Operand& target = s.operands.front();
    if (target.kind != Operand::Kind::kSymbol || target.sym == kNoSym) return {};
    return {target.sym};
}

Error unknown_branch(const Function& function, const Stmt& s) {
    return make_error(Code::kUnsupported, "branch with unknown targets in " +
                                              std::string(function.name) + " (statement " +
                                              std::to_string(s.id) + ")");
}

class Builder {
  public:
    Builder(const Module& module, const Function& function)
        : module_(module), function_(function) {}

    Result<Cfg> build() {
        split();
        TTT_CHECK_OK(connect());
        return std::move(cfg_);
    }

  private:
    void split() {
        const auto& body = function_.body;
        block_of_label_.assign(module_.symbols.size(), kNoBlock);
        cfg_.block_of.resize(body.size());
        bool fresh = true, only_labels = true;
        for (uint32_t i = 0; i < body.size(); ++i) {
            const bool label = body[i].kind == Stmt::Kind::kLabel;
            if (fresh || (label && !only_labels)) {
                cfg_.blocks.push_back({i, i, {}, {}, false});
                only_labels = true;
            }
            const auto block = static_cast<BlockId>(cfg_.blocks.size() - 1);
            if (label) block_of_label_[body[i].sym] = block;
            if (body[i].kind == Stmt::Kind::kInstruction) only_labels = false;
            cfg_.block_of[i] = block;
            cfg_.blocks.back().end = i + 1;
            fresh = ends_block(body[i]);
        }
        if (cfg_.blocks.empty()) cfg_.blocks.push_back({});
    }

    Status connect() {
        for (BlockId b = 0; b < cfg_.blocks.size(); ++b) TTT_CHECK_OK(connect(b));
        for (BlockId b = 0; b < cfg_.blocks.size(); ++b)
            for (BlockId s : cfg_.blocks[b].successors) cfg_.blocks[s].predecessors.push_back(b);
        return ok_status();
    }

    Status connect(BlockId b) {
        Block& block = cfg_.blocks[b];
        const Stmt* last = block.end > block.begin ? &function_.body[block.end - 1] : nullptr;
        const bool jumps = last != nullptr && ends_block(*last);
        if (!jumps || last->guard != kNoSym) {
            if (b + 1 < cfg_.blocks.size())
                block.successors.push_back(b + 1);
            else
                block.exits = true;
        }
        if (!jumps) return ok_status();
        if ((info(last->op).flags & kFlagBranch) == 0) {
            block.exits = true;
            return ok_status();
        }
        const std::vector<Sym> targets = targets_of(function_, *last);
        if (targets.empty()) return unknown_branch(function_, *last);
        for (Sym label : targets) {
            // A target list may name what is no label of this module at all.
            const BlockId to = label < block_of_label_.size() ? block_of_label_[label] : kNoBlock;
            if (to == kNoBlock) return unknown_branch(function_, *last);
            if (seen_.size() < cfg_.blocks.size()) seen_.resize(cfg_.blocks.size(), kNoBlock);
            if (seen_[to] == b || (!block.successors.empty() && block.successors[0] == to))
                continue;
            seen_[to] = b;
            block.successors.push_back(to);
        }
        return ok_status();
    }

    const Module& module_;
    const Function& function_;
    Cfg cfg_;
    std::vector<BlockId> block_of_label_;
    std::vector<BlockId> seen_;
};

// A flow graph as plain adjacency lists, so that dominators and post-dominators share one
// algorithm.
struct Graph {
    std::vector<std::vector<BlockId>> next, prev;
};

std::vector<BlockId> reverse_post_order(const Graph& graph, BlockId root) {
    std::vector<BlockId> order;
    std::vector<uint8_t> seen(graph.next.size(), 0);
    std::vector<std::pair<BlockId, size_t>> stack{{root, 0}};
    seen[root] = 1;
    while (!stack.empty()) {
        auto& [b, i] = stack.back();
        if (i < graph.next[b].size()) {
            const BlockId s = graph.next[b][i++];
            if (!seen[s]) {
                seen[s] = 1;
                stack.emplace_back(s, 0);
            }
        } else {
            order.push_back(b);
            stack.pop_back();
        }
    }
    std::reverse(order.begin(), order.end());
    return order;
}

// Lengauer–Tarjan with path compression ("simple" version): O(E log V), no bad case on the deep
// ladders that unrolled kernels make, unlike iterating over the tree.
class Dominators {
  public:
    Dominators(const Graph& graph, BlockId root) : graph_(graph) {
        const size_t n = graph.next.size();
        number_.assign(n, kNoBlock);
        dominator_.assign(n, kNoBlock);
        number(root);
        const size_t count = vertex_.size();
        semi_.resize(count);
        label_.resize(count);
        ancestor_.assign(count, kNoBlock);
        idom_.assign(count, 0);
        for (uint32_t i = 0; i < count; ++i) semi_[i] = label_[i] = i;
        solve();
        for (uint32_t i = 1; i < count; ++i) dominator_[vertex_[i]] = vertex_[idom_[i]];
    }
    std::vector<BlockId> take() { return std::move(dominator_); }

  private:
    void number(BlockId root) {
        std::vector<std::pair<BlockId, size_t>> stack{{root, 0}};
        visit(root, 0);
        while (!stack.empty()) {
            auto& [b, i] = stack.back();
            if (i == graph_.next[b].size()) {
                stack.pop_back();
                continue;
            }
            const BlockId s = graph_.next[b][i++];
            if (number_[s] != kNoBlock) continue;
            visit(s, number_[b]);
            stack.emplace_back(s, 0);
        }
    }
    void visit(BlockId b, uint32_t parent) {
        number_[b] = static_cast<uint32_t>(vertex_.size());
        vertex_.push_back(b);
        parent_.push_back(parent);
    }
    void solve() {
        std::vector<std::vector<uint32_t>> bucket(vertex_.size());
        for (auto w = static_cast<uint32_t>(vertex_.size()); w-- > 1;) {
            for (BlockId p : graph_.prev[vertex_[w]])
                if (number_[p] != kNoBlock) semi_[w] = std::min(semi_[w], semi_[eval(number_[p])]);
            bucket[semi_[w]].push_back(w);
            const uint32_t parent = parent_[w];
            ancestor_[w] = parent;
            for (uint32_t v : bucket[parent]) {
                const uint32_t u = eval(v);
                idom_[v] = semi_[u] < semi_[v] ? u : parent;
            }
            bucket[parent].clear();
        }
        for (uint32_t w = 1; w < vertex_.size(); ++w)
            if (idom_[w] != semi_[w]) idom_[w] = idom_[idom_[w]];
    }
    uint32_t eval(uint32_t v) {
        if (ancestor_[v] == kNoBlock) return v;
        path_.clear();
        for (uint32_t u = v; ancestor_[ancestor_[u]] != kNoBlock; u = ancestor_[u])
            path_.push_back(u);
        for (size_t i = path_.size(); i-- > 0;) {
            const uint32_t u = path_[i], up = ancestor_[u];
            if (semi_[label_[up]] < semi_[label_[u]]) label_[u] = label_[up];
            ancestor_[u] = ancestor_[up];
        }
        return label_[v];
    }

    const Graph& graph_;
    std::vector<uint32_t> number_, vertex_, parent_, semi_, label_, ancestor_, idom_, path_;
    std::vector<BlockId> dominator_;
};

Graph forward(const Cfg& cfg) {
    Graph graph;
    for (const Block& b : cfg.blocks) {
        graph.next.push_back(b.successors);
        graph.prev.push_back(b.predecessors);
    }
    return graph;
}

// Edges turned round, with a virtual exit (index = number of blocks) as root.
Graph backward(const Cfg& cfg) {
    const auto exit = static_cast<BlockId>(cfg.blocks.size());
    Graph graph;
    graph.next.resize(exit + 1);
    graph.prev.resize(exit + 1);
    for (BlockId b = 0; b < exit; ++b) {
        graph.next[b] = cfg.blocks[b].predecessors;
        graph.prev[b] = cfg.blocks[b].successors;
        if (!cfg.blocks[b].exits) continue;
        graph.prev[b].push_back(exit);
        graph.next[exit].push_back(b);
    }
    return graph;
}

// Depth intervals make "a dominates b" constant time during loop discovery.
struct TreeIntervals {
    std::vector<uint32_t> in, out;
    explicit TreeIntervals(const std::vector<BlockId>& idom)
        : in(idom.size(), 0), out(idom.size(), 0) {
        std::vector<std::vector<BlockId>> children(idom.size());
        for (BlockId b = 0; b < idom.size(); ++b)
            if (idom[b] != kNoBlock) children[idom[b]].push_back(b);
        uint32_t clock = 1;
        std::vector<std::pair<BlockId, size_t>> stack{{0, 0}};
        in[0] = clock++;
        while (!stack.empty()) {
            auto& [b, i] = stack.back();
            if (i < children[b].size()) {
                const BlockId c = children[b][i++];
                in[c] = clock++;
                stack.emplace_back(c, 0);
            } else {
                out[b] = clock;
                stack.pop_back();
            }
        }
    }
    bool dominates(BlockId a, BlockId b) const {
        return in[b] != 0 && in[a] <= in[b] && out[b] <= out[a];
    }
};

class LoopFinder {
  public:
    explicit LoopFinder(Cfg& cfg)
        : cfg_(cfg), tree_(cfg.idom), order_(cfg.blocks.size(), kNoBlock) {
        for (uint32_t i = 0; i < cfg.rpo.size(); ++i) order_[cfg.rpo[i]] = i;
        cfg.loop_of.assign(cfg.blocks.size(), 0xFFFFFFFFu);
    }

    void run() {
        for (auto it = cfg_.rpo.rbegin(); it != cfg_.rpo.rend(); ++it) collect(*it);  // inner first
        std::reverse(cfg_.loops.begin(), cfg_.loops.end());
        const auto count = static_cast<uint32_t>(cfg_.loops.size());
        const auto flip = [&](uint32_t l) { return l == 0xFFFFFFFFu ? l : count - 1 - l; };
        for (uint32_t& l : cfg_.loop_of) l = flip(l);
        for (Loop& loop : cfg_.loops) {
            loop.parent = flip(loop.parent);
            if (loop.parent != 0xFFFFFFFFu) loop.depth = cfg_.loops[loop.parent].depth + 1;
        }
        for (const Loop& loop : cfg_.loops)
            if (loop.depth > kMaxLoopDepth) return give_up();
        fill();
    }

  private:
    void collect(BlockId header) {
        Loop loop;
        for (BlockId p : cfg_.blocks[header].predecessors) {
            if (order_[p] == kNoBlock || order_[p] < order_[header]) continue;
            if (tree_.dominates(header, p))
                loop.latches.push_back(p);
            else
                cfg_.irreducible = true;
        }
        if (loop.latches.empty()) return;
        loop.header = header;
        cfg_.loops.push_back(std::move(loop));
        outer_.push_back(static_cast<uint32_t>(outer_.size()));
        claim(static_cast<uint32_t>(cfg_.loops.size() - 1));
    }

    // Walks back from the latches; a block already in an inner loop stands for that whole
    // (outermost) loop.
    void claim(uint32_t self) {
        std::vector<BlockId> work = cfg_.loops[self].latches;
        while (!work.empty()) {
            const BlockId b = work.back();
            work.pop_back();
            const uint32_t inner = outermost(b);
            if (inner == self) continue;
            BlockId at = b;
            if (inner == 0xFFFFFFFFu) {
                cfg_.loop_of[b] = self;
            } else {
                cfg_.loops[inner].parent = self;
                outer_[inner] = self;
                at = cfg_.loops[inner].header;
            }
            if (at == cfg_.loops[self].header) continue;
            for (BlockId p : cfg_.blocks[at].predecessors)
                if (order_[p] != kNoBlock) work.push_back(p);
        }
        const BlockId header = cfg_.loops[self].header;
        if (cfg_.loop_of[header] == 0xFFFFFFFFu) cfg_.loop_of[header] = self;
    }

    // Path halving over `outer_`, a shortcut of the parents: deep nests stay cheap.
    uint32_t outermost(BlockId b) {
        uint32_t l = cfg_.loop_of[b];
        if (l == 0xFFFFFFFFu) return l;
        while (outer_[l] != l) l = outer_[l] = outer_[outer_[l]];
        return l;
    }

    void give_up() {
        cfg_.loops.clear();
        cfg_.loop_of.assign(cfg_.blocks.size(), 0xFFFFFFFFu);
        cfg_.irreducible = true;
    }

    void fill() {
        for (BlockId b = 0; b < cfg_.blocks.size(); ++b)
            for (uint32_t l = cfg_.loop_of[b]; l != 0xFFFFFFFFu; l = cfg_.loops[l].parent)
                cfg_.loops[l].blocks.push_back(b);
    }

    Cfg& cfg_;
    TreeIntervals tree_;
    std::vector<uint32_t> order_;
    std::vector<uint32_t> outer_;
};

bool above(const std::vector<BlockId>& parent, BlockId a, BlockId b) {
    while (b != a && b != kNoBlock) b = parent[b];
    return b == a;
}

}  // namespace

bool Cfg::dominates(BlockId a, BlockId b) const { return reachable(b) && above(idom, a, b); }
bool Cfg::post_dominates(BlockId a, BlockId b) const { return above(ipdom, a, b); }

std::vector<Sym> branch_targets(const Function& function, const Stmt& branch) {
    if (branch.operands.size() < 2 || branch.operands[1].kind != Operand::Kind::kSymbol) return {};
    const Sym list = branch.operands[1].sym;
    std::vector<Sym> targets;
    for (size_t i = 0; i + 1 < function.body.size(); ++i) {
        if (function.body[i].kind != Stmt::Kind::kLabel || function.body[i].sym != list) continue;
        for (const Operand& o : function.body[i + 1].operands) targets.push_back(o.sym);
        break;
    }
    return targets;
}

Result<Cfg> build_cfg(const Module& module, const Function& function) {
    TTT_TRY(Cfg cfg, Builder(module, function).build());
    const Graph down = forward(cfg);
    cfg.rpo = reverse_post_order(down, 0);
    cfg.idom = Dominators(down, 0).take();
    const auto exit = static_cast<BlockId>(cfg.blocks.size());
    cfg.ipdom = Dominators(backward(cfg), exit).take();
    cfg.ipdom.pop_back();
    for (BlockId& p : cfg.ipdom)
        if (p == exit) p = kNoBlock;
    LoopFinder(cfg).run();
    return cfg;
}

}  // namespace ttt::ptx
