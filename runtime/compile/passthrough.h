// The emulated GPU's compiler over a given assembler; null = the machine has none and resources are
// estimated.
#pragma once

#include <memory>

#include "compile/compiler.h"

namespace ttt::compile {

std::unique_ptr<Compiler> make_passthrough_over(std::unique_ptr<Compiler> assembler);

}  // namespace ttt::compile
