// The driver had no device memory left for the program: it gets ours. The program's thread asks and
// waits a moment; our thread frees the arenas and has the tuner end its sandbox. Any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace ttt::session {

struct Shared;

struct MemoryRequest {
    std::atomic<uint32_t> holding{0};  // our thread: arenas or a sandbox may exist
    std::atomic<uint32_t> asked{0};    // requests so far
    std::atomic<uint32_t> served{0};   // of them, those our thread has dealt with
};

// Blocks for at most two seconds. False if there was nothing of ours to give, or our thread did not
// get to it: trying again would be no use.
bool give_memory_back(Shared& s);

}  // namespace ttt::session
