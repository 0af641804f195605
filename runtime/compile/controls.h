// From a recipe's controls to an assembler's options. Internal to runtime/compile.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "xform/transform.h"

namespace ttt::compile {

// kInvalidArgument for an option that is no plain switch: recipes may come from a store, so nothing
// that names a file or changes input, output or architecture may reach the command line.
Result<std::vector<std::string>> assembler_options(const xform::CompileControls& controls);

// "sm_90", "sm_90a", "sm_100f"; compute_ is refused.
Status check_arch(std::string_view arch);

}  // namespace ttt::compile
