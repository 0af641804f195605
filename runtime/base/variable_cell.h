// An address cell of a variant's module: an 8-byte constant that whoever loads the module fills
// with the address that a module variable of the program's own module has there. Plain data.
#pragma once

#include <cstdint>
#include <string>

namespace ttt {

struct VariableCell {
    std::string cell, variable;  // names in the variant's and in the program's module
    uint64_t bytes = 0;          // of the variable
    friend bool operator==(const VariableCell&, const VariableCell&) = default;
};

}  // namespace ttt
