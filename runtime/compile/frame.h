// Messages between a compiler and its worker process: a list of byte strings over a pipe. Both ends
// are ours and of one build, yet sizes are checked: the worker runs code that may corrupt its
// memory.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace ttt::compile {

using Frame = std::vector<std::string>;
using Deadline = std::chrono::steady_clock::time_point;

inline constexpr uint64_t kMaxFrameBytes = uint64_t{1} << 30;

// Error kTimeout at the deadline, kIo when the other end is gone, kProtocol when the bytes are no
// frame.
Status write_frame(int fd, const Frame& frame, Deadline deadline);
Result<Frame> read_frame(int fd, Deadline deadline);

}  // namespace ttt::compile
