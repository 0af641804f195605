// What every generated entry point goes through: one lock, injected faults, sticky errors, and the
// only catch.
#pragma once

#include <cuda.h>

#include <mutex>

namespace ttt::emulator {

struct FunctionId {
    unsigned index;
    const char* base;
    const char* symbol;
    bool launches;
};
extern const unsigned kFunctionCount;
extern const char* const kFunctionNames[];

// Held during one driver call. The emulated GPU runs everything at the call, in call order.
class CallLock {
  public:
    CallLock();
    ~CallLock();
    CallLock(const CallLock&) = delete;
    CallLock& operator=(const CallLock&) = delete;
};

// Lets host callbacks run without the lock: they may wait for threads that call the driver.
class Unlocked {
  public:
    Unlocked();
    ~Unlocked();
    Unlocked(const Unlocked&) = delete;
    Unlocked& operator=(const Unlocked&) = delete;

  private:
    int depth_;
};

// While alive, stream handle 0 of this thread means its per-thread default stream.
class PerThreadScope {
  public:
    PerThreadScope();
    ~PerThreadScope();
    PerThreadScope(const PerThreadScope&) = delete;
    PerThreadScope& operator=(const PerThreadScope&) = delete;
};
bool per_thread_default();

// The error a call must return before it does anything, or CUDA_SUCCESS. Caller holds the lock.
CUresult admission(const FunctionId& id);
CUresult unsupported(const FunctionId& id);
CUresult failed_internally(const FunctionId& id) noexcept;

template <typename F>
CUresult enter(const FunctionId& id, F&& call) noexcept {
    try {
        const CallLock lock;
        if (const CUresult refused = admission(id); refused != CUDA_SUCCESS) return refused;
        return call();
    } catch (...) {  // out of memory, or a bug of ours: never into the program
        return failed_internally(id);
    }
}

}  // namespace ttt::emulator
