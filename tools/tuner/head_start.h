// The kernel that waits on the program's stream ahead of a canary's timed launches, as a module for
// one device (measure/canary.h, session/head_start.h).
#pragma once

#include <cstddef>
#include <vector>

#include "compile/compiler.h"
#include "tuner/facts.h"

namespace ttt::tuner {

// Empty where it does not compile (canaries are then timed without it) or makes no sense: the
// emulated GPU's clock knows nothing of the host. The compiler's cache makes it cheap to ask again.
std::vector<std::byte> head_start_module(compile::Compiler& compiler, const Program& program);

}  // namespace ttt::tuner
