// Questions to the tuner of a running process, over its own socket: <folder>/ttt-PID.sock, PID
// being the program's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ttt::cli {

std::vector<int> tuned_processes();  // of this user, with a socket that someone listens on
bool has_tuner(int pid);             // its socket exists
// The JSON the tuner answers with. Errors: kNotFound (no such process under libttt.so), kTimeout,
// kProtocol.
Result<std::string> ask_tuner(int pid, std::string_view what, int timeout_ms = 3000);

}  // namespace ttt::cli
