// Starts a child that the program cannot notice: no SIGCHLD, not reaped by its wait(-1), no
// descriptor of the program's left open in it, not in its process group.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.h"

namespace ttt::session {

struct Spawn {
    std::string path;
    std::vector<std::string> arguments;    // without argv[0]
    std::vector<std::string> environment;  // "NAME=value"
    int channel = -1;  // becomes descriptor 3; 0, 1 and 2 are /dev/null; no other stays open
    int nice = 10;
};

// The environment without what would pull us, an injection library or a profiler into the child.
std::vector<std::string> child_environment(const std::vector<std::string>& program);

// May block for the exec; not on a program thread. kIo with the reason when the program cannot be
// run.
Result<pid_t> spawn_invisible(const Spawn& spawn);

}  // namespace ttt::session
