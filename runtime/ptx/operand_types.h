// Do the register operands of an instruction have the size and class its type asks for? Only
// instructions with plain rules (arithmetic, logic, comparison, selection) are judged; loads,
// stores and conversions may use wider registers.
#pragma once

#include "ptx/ir.h"

namespace ttt::ptx {

// Null when nothing is wrong, else the broken rule.
const char* mismatched_operand(const Module& module, const Stmt& stmt);

}  // namespace ttt::ptx
