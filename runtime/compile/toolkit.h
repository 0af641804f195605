// Where the pieces of a CUDA toolkit are on this machine: a toolkit folder, the system's libraries,
// or Python wheels.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ttt::compile {

// Paths worth trying, best first; only files that exist, except plain library names for the dynamic
// loader. Order: `cuda_home`, $TTT_CUDA_HOME, $CUDA_HOME, $CUDA_PATH, /usr/local/cuda, system
// folders, Python wheels (site-packages of $VIRTUAL_ENV, $CONDA_PREFIX, python3 on PATH, the user's
// and the system's), loader names. A `cuda_home` that is given and holds the file is the only
// answer: the user's choice is not second-guessed.
std::vector<std::string> find_nvjitlink(std::string_view cuda_home);
std::vector<std::string> find_ptxas(std::string_view cuda_home);

}  // namespace ttt::compile
