// Module variables (.global and .const at module scope) as the tuner sees them: tables that belong
// to the compiler, and address cells, the 8-byte constants through which a variant reaches the
// variables of the program's own module. Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>

#include "ptx/ir.h"

namespace ttt::ptx {

// A table that the compiler itself makes (argument reduction, strings): no program can name it to
// change it.
bool is_compilers_own(std::string_view name);

// `.visible .const .align 8 .u64 ttt_at_NAME`: whoever loads the module writes the address of the
// program's NAME into it before the first launch. The data flow takes its value for that address.
std::string cell_name(std::string_view variable);
bool is_cell(const Symbol& symbol);
std::string_view cell_variable(std::string_view cell);  // "ttt_at_taps" → "taps"

}  // namespace ttt::ptx
