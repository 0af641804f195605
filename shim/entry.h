// The one shape of every generated entry point: real address → guard against re-entry → hook. The
// only catch(...) of the library is here. The hook gets a `Call`: it makes the program's call with
// call(args...) and returns its result unchanged; if it throws, the entry point still makes the
// call, once.
#pragma once

#include "real_driver.h"
#include "session/cuda_api.h"
#include "session/session.h"

#define TTT_EXPORT __attribute__((visibility("default")))

namespace ttt::shim {

// Inside one of our hooks on this thread: whatever the driver or our own code calls then goes
// straight through.
extern thread_local constinit int t_depth;

struct Depth {
    Depth() { ++t_depth; }
    ~Depth() { --t_depth; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;
};

template <typename... A>
struct Call {
    using Fn = CUresult (*)(A...);
    Fn real;
    Slot slot;
    CUresult result = CUDA_SUCCESS;
    bool called = false;
    CUresult operator()(A... a) {
        result = real(a...);
        called = true;
        return result;
    }
};

template <Slot S, typename Hook, typename... A>
inline CUresult enter(Hook hook, A... a) {
    auto real = reinterpret_cast<CUresult (*)(A...)>(real_address(S));
    if (__builtin_expect(real == nullptr, 0)) return CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND;
    if (t_depth != 0 ||
        session::g_state.load(std::memory_order_relaxed) == session::State::kDisabled)
        return real(a...);
    const Depth depth;
    Call<A...> call{real, S};
    try {
        return hook(call, a...);
    } catch (...) {
        return call.called ? call.result : real(a...);
    }
}

}  // namespace ttt::shim
