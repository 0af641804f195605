// What the tuner knows about the program, its kernels and launch sites: plain data.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/dim3.h"
#include "base/variable_cell.h"
#include "compile/compiler.h"
#include "measure/snapshot.h"
#include "tuner/arena_fd.h"
#include "xform/guard.h"

namespace ttt::tuner {

struct Program {
    int pid = 0;
    std::string exe, mode = "apply", report, device, uuid;
    double foreground = 0;
    uint32_t arch = 0;  // 90
    int driver_version = 0;
    bool emulated = false;
};

struct Kernel {
    uint64_t id = 0, module = 0;
    std::string name;
    std::vector<std::pair<uint32_t, uint32_t>> params;  // offset, size
    uint32_t registers = 0, local_bytes = 0, shared_bytes = 0, max_threads = 0;
};

struct Target {  // allocation behind the 8 bytes at `offset` of the parameter buffer
    uint32_t offset = 0;
    uint64_t base = 0, size = 0;
    bool device_memory = false;
};

struct Site {
    uint64_t id = 0;
    Kernel kernel;
    measure::Launch launch;
    std::vector<bool> stable;
    std::vector<Target> targets;
    double mean_ns = 0;
};

struct Recorded {  // a snapshot, its bytes behind the descriptor
    uint64_t id = 0;
    measure::Snapshot snapshot;
    bool host_arena = false;
    double original_ns = 0;
    std::shared_ptr<ArenaFd> arena;
};

struct ProvenVariant {
    std::string recipe;
    compile::Compiled compiled;
    Dim3 grid, block;
    uint32_t shared = 0;
    xform::Guard guard;
    std::vector<VariableCell> cells;
    double coarse_ns = 0;
    std::string evidence;
};

}  // namespace ttt::tuner
