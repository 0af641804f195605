// Capture state of the calling thread.
#pragma once

#include <cuda.h>

namespace ttt::emulator {

const void* this_thread();  // identity, unique among living threads
CUstreamCaptureMode& thread_capture_mode();

}  // namespace ttt::emulator
