#include "emulator/entry.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "driver_table/fault_plan.h"
#include "emulator/emu_log.h"
#include "emulator/gpu.h"

namespace ttt::emulator {
namespace {

std::recursive_mutex& call_mutex() {
    static auto* mutex = new std::recursive_mutex;  // programs call us from exit handlers
    return *mutex;
}
thread_local int t_depth = 0;
thread_local int t_per_thread = 0;

// Calls that work before cuInit.
constexpr std::array<std::string_view, 5> kBeforeInit = {
    "cuInit", "cuDriverGetVersion", "cuGetErrorString", "cuGetErrorName", "cuGetProcAddress"};
// Calls that still work in a context that a kernel has broken.
constexpr std::array<std::string_view, 22> kAfterFault = {
    "cuInit",
    "cuDriverGetVersion",
    "cuGetErrorString",
    "cuGetErrorName",
    "cuGetProcAddress",
    "cuDeviceGet",
    "cuDeviceGetCount",
    "cuDeviceGetName",
    "cuDeviceGetUuid",
    "cuDeviceGetAttribute",
    "cuDeviceTotalMem",
    "cuDevicePrimaryCtxRetain",
    "cuDevicePrimaryCtxRelease",
    "cuDevicePrimaryCtxReset",
    "cuDevicePrimaryCtxGetState",
    "cuCtxCreate",
    "cuCtxDestroy",
    "cuCtxGetCurrent",
    "cuCtxSetCurrent",
    "cuCtxPushCurrent",
    "cuCtxPopCurrent",
    "cuCtxGetDevice",
};

template <size_t N>
bool contains(const std::array<std::string_view, N>& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

CallLock::CallLock() {
    call_mutex().lock();
    ++t_depth;
}
CallLock::~CallLock() {
    --t_depth;
    call_mutex().unlock();
}

Unlocked::Unlocked() : depth_(t_depth) {
    for (int i = 0; i < depth_; ++i) call_mutex().unlock();
    t_depth = 0;
}
Unlocked::~Unlocked() {
    for (int i = 0; i < depth_; ++i) call_mutex().lock();
    t_depth = depth_;
}

PerThreadScope::PerThreadScope() { ++t_per_thread; }
PerThreadScope::~PerThreadScope() { --t_per_thread; }
bool per_thread_default() { return t_per_thread > 0; }

CUresult admission(const FunctionId& id) {
    auto& plan = driver_table::process_fault_plan();
    if (!plan.empty()) {
        if (const int code = plan.on_call(id.base, id.symbol)) {
            note("{}: injected error {}", id.symbol, code);
            return static_cast<CUresult>(code);
        }
    }
    const std::string_view base = id.base;
    Gpu& gpu = Gpu::get();
    if (!gpu.initialised) {
        return contains(kBeforeInit, base) ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
    }
    const Context* context = gpu.current();
    if (context == nullptr || context->sticky == CUDA_SUCCESS || contains(kAfterFault, base)) {
        return CUDA_SUCCESS;
    }
    return context->sticky;
}

CUresult unsupported(const FunctionId& id) {
    note("{} is not supported by the emulated GPU", id.symbol);
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult failed_internally(const FunctionId& id) noexcept {
    try {
        note("{} failed inside the emulator", id.symbol);
    } catch (...) {  // even the message had no memory
    }
    return CUDA_ERROR_OUT_OF_MEMORY;
}

}  // namespace ttt::emulator
