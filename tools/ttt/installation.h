// Where the parts of this installation are, relative to the running `ttt`.
#pragma once

#include <string>

namespace ttt::cli {

struct Installation {
    std::string bin;                                        // folder of ttt
    std::string library;                                    // libttt.so; empty = not found
    std::string tuner, sandbox, kernel_loop, bench_launch;  // empty = not found
    std::string emulator;     // folder holding the emulated libcuda.so.1; empty = not found
    std::string null_driver;  // folder holding the null libcuda.so.1; empty = not found
};
// Environment: TTT_LIBRARY, TTT_TUNER and TTT_SANDBOX win over the places beside ttt.
Installation find_installation();

// What keeps libttt.so from being preloaded, or "": LD_PRELOAD is split at spaces and colons, which
// no quoting prevents, so a path that has one would be ignored with a warning of the loader's.
std::string preload_problem(const Installation& here);

// "first:rest", or "first" when rest is empty.
std::string prepend(const std::string& first, const std::string& rest);
std::string environment(const char* name);  // "" when unset

}  // namespace ttt::cli
