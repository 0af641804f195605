// Loops of a function, only as far as the kernel summary needs them. Never fails; linear but for
// deep nests.
#pragma once

#include "ptx/ir.h"

namespace ttt::ptx {

struct LoopFacts {
    uint32_t loops = 0;    // distinct loop headers
    bool spins = false;    // some loop ends depending on memory that others may write meanwhile
    bool unknown = false;  // a branch whose targets are not known
};
LoopFacts loop_facts(const Module& module, const Function& function);

// A volatile, relaxed, acquire, release or memory-mapped access.
bool is_strong(const Stmt& stmt);

}  // namespace ttt::ptx
