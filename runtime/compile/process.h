// Child processes with limits. Children get our environment without preloads, only the descriptors
// they are given, and their own process group, so that a timeout kills whatever they started.
#pragma once

#include <sys/types.h>

#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace ttt::compile {

struct Limits {
    double seconds = 60;                        // wall clock; twice of it as CPU time
    uint64_t memory_bytes = uint64_t{6} << 30;  // address space; 0 = no limit
};

// Starts `argv` with descriptors[i] as number i; -1 = /dev/null. All others are closed.
Result<pid_t> spawn(const std::vector<std::string>& argv, std::span<const int> descriptors,
                    const Limits& limits);

struct Finished {
    bool exited = false;  // false: killed by `signal`
    int code = 0, signal = 0;
    std::string output;  // stdout and stderr, at most 1 MiB
};
// Runs to the end; kTimeout when it had to be killed. `extra` become descriptors 3, 4, …
Result<Finished> run(const std::vector<std::string>& argv, std::span<const int> extra,
                     const Limits& limits);

void kill_group(pid_t pid);  // SIGKILL to the child and what it started
void reap(pid_t pid);        // waits; for a child that was killed or has closed its channel

}  // namespace ttt::compile
