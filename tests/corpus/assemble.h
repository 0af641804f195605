// Machine code of a PTX text by ptxas, for comparing what a module assembles to before and after
// printing.
#pragma once

#include <map>
#include <string>

#include "base/result.h"

namespace ttt::corpus {

// Path of ptxas ($TTT_PTXAS, $CUDA_HOME/bin, /usr/local/cuda/bin, PATH); empty when not installed.
std::string find_ptxas();

// Section name → bytes of every .text.* section of the cubin. Compiles for the target the text
// names; calls that are left open are allowed. Error (kCompile) carries the assembler's first line.
Result<std::map<std::string, std::string>> machine_code(const std::string& ptxas,
                                                        const std::string& ptx);

}  // namespace ttt::corpus
