// One entry with what it needs, cut out of its module.
#pragma once

#include <string_view>

#include "base/result.h"
#include "ptx/ir.h"

namespace ttt::xform {

// A copy of `module` that prints only `entry`, the functions it can reach and the variables they
// name, in the original order. Line tables and debug sections are left out: they do not reach the
// machine code. Function and symbol indices stay valid. Errors: kNotFound (no such entry),
// kUnsupported (compiled for debugging).
Result<ptx::Module> extract(const ptx::Module& module, std::string_view entry);

}  // namespace ttt::xform
