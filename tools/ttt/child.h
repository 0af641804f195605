// A program run as our child: signals sent to us reach it, its end becomes our exit code.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace ttt::cli {

struct ChildOptions {
    std::vector<std::string> command;
    std::map<std::string, std::string> environment;  // set on top of ours
    std::string stdout_file;                         // empty: inherited
    // Called every `tick_ms` while the child runs; returning a signal number sends it. 0 = nothing.
    std::function<int(pid_t)> tick;
    int tick_ms = 200;
};

struct ChildResult {
    pid_t pid = 0;
    int exit_code = 0;  // 128 + signal when it was killed by one
};

// Error: the program could not be started (kNotFound when there is no such program). While the
// child runs SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 are forwarded; those the
// terminal already sent to it too are not.
Result<ChildResult> run_child(const ChildOptions& options);

}  // namespace ttt::cli
