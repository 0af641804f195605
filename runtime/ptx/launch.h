// What is known about one launch of a kernel: used by analyses, transforms, guards and the
// interpreter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/dim3.h"

namespace ttt::ptx {

struct LaunchFacts {
    std::string entry;
    Dim3 grid, block;
    uint32_t dynamic_shared = 0;  // bytes
    std::vector<std::byte>
        params;                // the launch's parameter buffer, laid out as ptx::param_layout says
    std::vector<bool> stable;  // per parameter: its value did not change over the observed launches
    std::string arch = "sm_90";  // architecture variants are compiled for
};

}  // namespace ttt::ptx
