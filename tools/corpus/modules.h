// PTX modules inside installed libraries: walks the fat binaries of shared libraries without
// extracting them to disk.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

namespace ttt::corpus {

struct FoundModule {
    uint32_t index = 0;  // among the PTX entries of the library, in file order
    uint32_t arch = 0;
    std::string text;
};

// Calls `use` for each PTX module of the library; stops early when it returns false. One module is
// in memory at a time.
Status for_each_module(const std::string& library, const std::function<bool(FoundModule&&)>& use);

// Directories to search, most specific first: $TTT_CUDA_LIB, $CUDA_HOME/lib64,
// /usr/local/cuda/lib64.
std::vector<std::string> library_directories();

// Every .so file with at least one fat binary, real paths, each once, sorted by file name. Empty:
// no toolkit here.
std::vector<std::string> toolkit_libraries();

// Path of a library by its file name ("libcufft.so.12.0.0.61"); empty when it is not installed.
std::string find_library(const std::string& file_name);

}  // namespace ttt::corpus
