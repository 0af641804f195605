// Control-flow graph of one function body, with dominators, post-dominators and natural loops.
// Blocks are ranges of statement indices, in source order. Linear in the body (dominators: nearly).
// Immutable once built; safe from several threads. Indices are void once the body is edited.
#pragma once

#include <cstdint>
#include <vector>

#include "ptx/ir.h"

namespace ttt::ptx {

using BlockId = uint32_t;
inline constexpr BlockId kNoBlock = 0xFFFFFFFFu;

inline constexpr uint32_t kMaxLoopDepth = 64;

struct Block {
    uint32_t begin = 0, end = 0;  // statement indices [begin, end), labels and directives included
    std::vector<BlockId> successors;  // fall-through first, then branch targets; no duplicates
    std::vector<BlockId> predecessors;
    bool exits = false;  // control may leave the function here (ret, exit, trap, end of the body)
};

struct Loop {
    BlockId header = kNoBlock;
    std::vector<BlockId> blocks;    // header included, ascending
    std::vector<BlockId> latches;   // sources of the back edges
    uint32_t parent = 0xFFFFFFFFu;  // index of the innermost enclosing loop
    uint32_t depth = 1;             // 1 = outermost
};

struct Cfg {
    std::vector<Block> blocks;       // blocks[0] is the entry
    std::vector<uint32_t> block_of;  // per statement
    std::vector<BlockId> rpo;        // reachable blocks in reverse post-order
    std::vector<BlockId>
        idom;  // immediate dominator; kNoBlock for the entry and unreachable blocks
    // Immediate post-dominator: where lanes that part at the end of a block meet again. kNoBlock:
    // only at the function's exit, or never (endless loop, unreachable block).
    std::vector<BlockId> ipdom;
    std::vector<Loop> loops;        // natural loops, outer before inner
    std::vector<uint32_t> loop_of;  // per block: innermost loop, 0xFFFFFFFF = none
    // A cycle exists that is no Loop: it has several entries, or loops nest deeper than
    // kMaxLoopDepth (then there are no loops at all).
    bool irreducible = false;

    bool reachable(BlockId b) const { return b == 0 || idom[b] != kNoBlock; }
    bool dominates(BlockId a, BlockId b) const;  // false when b is unreachable; a dominates itself
    bool post_dominates(BlockId a, BlockId b) const;  // a post-dominates itself
};

// Error (kUnsupported): a branch whose targets cannot be known (brx without a list, opaque branch).
Result<Cfg> build_cfg(const Module& module, const Function& function);

// Labels a brx may jump to, from its .branchtargets; empty when unknown.
std::vector<Sym> branch_targets(const Function& function, const Stmt& branch);

}  // namespace ttt::ptx
