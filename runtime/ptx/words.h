// Spelling → enumerator for the words of opcodes.def, modifiers.def, names.def and
// special_registers.def. Constant time, no allocation, safe from several threads.
#pragma once

#include <string_view>

#include "ptx/ir.h"

namespace ttt::ptx {

Opcode find_opcode(std::string_view word);        // kOpaque when unknown
Mod find_mod(std::string_view word);              // kNone when unknown; without the dot
Type find_type(std::string_view word);            // kNone when unknown; without the dot
bool is_special_register(std::string_view word);  // without the '%'

}  // namespace ttt::ptx
