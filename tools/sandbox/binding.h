// Address cells of a module under trial, and the module whose variables they lead to. Plain data.
#pragma once

#include <cstdint>
#include <vector>

#include "base/variable_cell.h"

namespace ttt::sandbox {

struct Binding {
    uint64_t original = 0;  // module id
    std::vector<VariableCell> cells;
};

}  // namespace ttt::sandbox
