// A short wait on the GPU ahead of a canary's timed launch.
//
// On a stream that has run dry the event before a launch fires while the host still prepares the
// launch, so that their distance is mostly the host's time, microseconds that differ from launch to
// launch. Behind a wait that outlasts the host's three calls, events and kernel run back to back.
// One thread of one block waits; the program's launch is later by kHeadStartNs (measure/canary.h).
#pragma once

#include <cstddef>
#include <span>

#include "session/driver.h"
#include "session/sample.h"

namespace ttt::session {

// Longer kernels are timed well enough as they are.
inline constexpr double kHeadStartBelowNs = 100e3;

// Loads the waiting kernel for the pool's context, once. Our thread, inside a driver section of
// that context. Without it timed launches are what they were.
void load_head_start(const Driver& driver, std::span<const std::byte> module, ContextPool& pool);

// Enqueues the wait, if there is one. Launching thread; the pool's context is current.
void give_head_start(const Driver& driver, const ContextPool& pool, CUstream stream,
                     bool per_thread);

}  // namespace ttt::session
