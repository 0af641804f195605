// What the program's threads tell ours. Made on a program thread outside the launch path, consumed
// once in order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.h"
#include "session/cuda_api.h"

namespace ttt::session {

struct JitOptions {
    int max_registers = -1, opt_level = -1;
    std::string text;  // every option that was given, for identity
};

struct Event {
    enum class Kind : uint8_t {
        kModule,       // handle was loaded as a CUmodule: image or preserved image, jit
        kLibrary,      // handle was loaded as a CUlibrary
        kUnload,       // handle (module or library) is about to go; epoch
        kNamed,        // function or kernel `handle` named `text` belongs to `owner`
        kAlias,        // CUfunction `handle` is the kernel `owner` in a context
        kMiss,         // `handle` was launched and is not in the table; context, device
        kAttribute,    // function attribute `number` of `handle` set to `value`; number -1: cache
                       // config
        kContextGone,  // context is about to be destroyed; epoch
    };
    Event* next = nullptr;
    Kind kind = Kind::kMiss;
    bool is_kernel = false;  // handle is a CUkernel (kNamed)
    const void* handle = nullptr;
    const void* owner = nullptr;
    CUcontext context = nullptr;
    CUdevice device = -1;
    uint64_t epoch = 0;
    std::string text;
    std::vector<std::vector<std::byte>>
        images;                       // copied while the program's pointer was valid; empty: none
    const void* preserved = nullptr;  // image the program promised to keep
    JitOptions jit;
    int number = 0, value = 0;
};

}  // namespace ttt::session
