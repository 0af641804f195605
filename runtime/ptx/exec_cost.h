// What decoded operations cost on the machine: instructions per unit, and the dependence chain of
// each basic block. Found once per program; the interpreter then only counts how often each
// operation runs. Internal to the interpreter.
#pragma once

#include "ptx/exec_op.h"
#include "ptx/interpreter.h"

namespace ttt::ptx::exec {

// One instruction's row of costs.def.
struct Cost {
    Unit unit = Unit::kInteger;
    uint8_t instructions = 1, special = 0;
};
Cost cost_of(const Stmt& stmt);

// Fills FunctionCode::costs; branch targets are connected already.
void weigh(const Function& function, FunctionCode& code);

// Adds what `hits` executions of each operation of `code` cost to the machine counters.
void add_costs(const FunctionCode& code, const std::vector<uint64_t>& hits, Counters& counters);

}  // namespace ttt::ptx::exec
