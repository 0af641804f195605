// Rules of stream capture: which calls are refused while one is going on.
#include "emulator/emu_log.h"
#include "emulator/gpu.h"
#include "emulator/thread_mode.h"

namespace ttt::emulator {
namespace {

thread_local CUstreamCaptureMode t_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
thread_local char t_identity;

// Captures that a possibly unsafe call of this thread breaks: its own ones unless it is relaxed;
// other threads' ones when they and this thread's mode are global.
bool affected(const Capture& capture) {
    if (capture.invalid || capture.mode == CU_STREAM_CAPTURE_MODE_RELAXED) return false;
    if (t_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return false;
    if (capture.thread == this_thread()) return true;
    return capture.mode == CU_STREAM_CAPTURE_MODE_GLOBAL && t_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

template <typename F>
CUresult refuse(F&& matches, CUresult code) {
    bool hit = false;
    auto& captures = Gpu::get().captures;
    std::erase_if(captures, [](const auto& weak) { return weak.expired(); });
    for (const auto& weak : captures) {
        const auto capture = weak.lock();
        if (capture == nullptr || !matches(*capture)) continue;
        invalidate(*capture);
        hit = true;
    }
    return hit ? code : CUDA_SUCCESS;
}

}  // namespace

const void* this_thread() { return &t_identity; }
CUstreamCaptureMode& thread_capture_mode() { return t_mode; }

void invalidate(Capture& capture) {
    if (!capture.invalid) note("stream capture {} invalidated by an unsafe call", capture.id);
    capture.invalid = true;
}

CUresult refuse_in_capture() {
    if (Gpu::get().captures.empty()) return CUDA_SUCCESS;
    return refuse(affected, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

CUresult refuse_legacy_in_capture() {
    if (Gpu::get().captures.empty()) return CUDA_SUCCESS;
    return refuse(
        [](const Capture& capture) {
            return !capture.invalid && capture.origin->blocking() &&
                   capture.origin->context == Gpu::get().current();
        },
        CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
}

}  // namespace ttt::emulator
