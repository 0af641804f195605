// The real driver's functions that the session calls. Filled once by the shim before the session
// starts, immutable afterwards; any thread. The session never calls a driver function by its
// exported name: that would be our own hook.
#pragma once

#include "base/result.h"
#include "session/cuda_api.h"

namespace ttt::session {

struct Driver {
#define TTT_USES(need, symbol) decltype(&::symbol) symbol = nullptr;
#include "session/driver_uses.def"
#undef TTT_USES
    bool emulated = false;  // the emulated libcuda: no machine code, variants are PTX

    // Address of an exported symbol of the real driver; null if it has none.
    using Resolve = void* (*)(void* state, const char* symbol);
    // kNotFound naming the first function that is needed and missing.
    static Result<Driver> load(Resolve resolve, void* state);
};

// Relaxed capture mode while alive, so that nothing of ours invalidates a capture the program has
// under way.
class RelaxedCapture {
  public:
    explicit RelaxedCapture(const Driver& d) : driver_(d) {
        driver_.cuThreadExchangeStreamCaptureMode(&mode_);
    }
    ~RelaxedCapture() { driver_.cuThreadExchangeStreamCaptureMode(&mode_); }
    RelaxedCapture(const RelaxedCapture&) = delete;
    RelaxedCapture& operator=(const RelaxedCapture&) = delete;

  private:
    const Driver& driver_;
    CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

// The forms for per-thread default streams where the program uses those.
struct StreamApi {
    decltype(&::cuEventRecord) record;
    decltype(&::cuStreamIsCapturing) is_capturing;
    decltype(&::cuMemcpyDtoDAsync_v2) copy;
    decltype(&::cuStreamSynchronize) synchronize;
};
StreamApi stream_api(const Driver& driver, bool per_thread);

}  // namespace ttt::session
