// Pieces of the printer that other files of this folder need; the public face is print() in ir.h.
#pragma once

#include <string>

#include "ptx/ir.h"

namespace ttt::ptx {

void print_operand(const Module& module, const Operand& operand, std::string& out);
void print_function(const Module& module, const Function& function, std::string& out);

}  // namespace ttt::ptx
