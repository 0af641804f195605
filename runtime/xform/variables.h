// Which module variables a kernel reads, and whether a variant may reach the program's own storage
// of them. A variant is another module: its own copies of the program's variables would never hold
// what the program writes there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/variable_cell.h"
#include "ptx/ir.h"

namespace ttt::xform {

struct ModuleVariable {
    std::string name;
    uint64_t bytes = 0;
    bool constant = false;  // .const: the launch sees one value from beginning to end
};

struct VariablePlan {
    std::vector<ModuleVariable> variables;  // named by the kernel or what it calls; by name
    std::string why;                        // not empty: they cannot be bound
};

// Tables of the compiler's own are left out: every module may have its copy. Refused, with a
// reason: variables that are written, whose address escapes, that hold addresses, are managed,
// defined elsewhere or of unknown size, and accesses that may reach both a variable and something
// else in constant memory.
VariablePlan plan_variables(const ptx::Module& module, const ptx::Function& entry);

// Replaces each variable of the plan by its cell: addresses become loads of the cell, accesses in
// constant memory become accesses in global memory. Precondition: plan.why is empty and the plan is
// of this module.
std::vector<VariableCell> bind_in_place(ptx::Module& module, const ptx::Function& entry,
                                        const VariablePlan& plan);

}  // namespace ttt::xform
