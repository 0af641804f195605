// Contexts: created, primary, current.
#include <algorithm>

#include "emulator/api.h"

namespace ttt::emulator::api {
namespace {

CUresult find_context(CUcontext handle, Context** context) {
    *context = Gpu::get().contexts.find(handle);
    return *context != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult create(CUcontext* out, unsigned flags, CUdevice device) {
    TTT_EMU_TRY(need_device(device));
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Gpu& gpu = Gpu::get();
    Context* context = gpu.create_context(flags, false);
    gpu.stack().push_back(context);
    return give(out, gpu.handle(context));
}

CUresult synchronize(Context& context) {
    TTT_EMU_TRY(refuse_in_capture());
    wait_for_context(context);
    return context.sticky;
}

size_t default_limit(CUlimit limit) {
    switch (limit) {
        case CU_LIMIT_STACK_SIZE:
            return 1024;
        case CU_LIMIT_PRINTF_FIFO_SIZE:
            return size_t{1} << 20;
        case CU_LIMIT_MALLOC_HEAP_SIZE:
            return size_t{8} << 20;
        default:
            return 0;
    }
}

}  // namespace

CUresult cuCtxCreate_v2(CUcontext* out, unsigned int flags, CUdevice device) {
    return create(out, flags, device);
}
CUresult cuCtxCreate(CUcontext* out, unsigned int flags, CUdevice device) {
    return create(out, flags, device);
}
CUresult cuCtxCreate_v3(CUcontext* out, CUexecAffinityParam*, int count, unsigned int flags,
                        CUdevice device) {
    return count == 0 ? create(out, flags, device) : CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
}
CUresult cuCtxCreate_v4(CUcontext* out, CUctxCreateParams* params, unsigned int flags,
                        CUdevice device) {
    if (params != nullptr && params->numExecAffinityParams != 0)
        return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    return create(out, flags, device);
}
CUresult cuCtxDestroy_v2(CUcontext handle) {
    Context* context = nullptr;
    TTT_EMU_TRY(find_context(handle, &context));
    if (context->primary) return CUDA_ERROR_INVALID_CONTEXT;
    Gpu& gpu = Gpu::get();
    auto& stack = gpu.stack();
    if (!stack.empty() && stack.back() == context) stack.pop_back();
    gpu.destroy_context(context);
    return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext handle) {
    Context* context = nullptr;
    TTT_EMU_TRY(find_context(handle, &context));
    Gpu::get().stack().push_back(context);
    return CUDA_SUCCESS;
}
CUresult cuCtxPopCurrent_v2(CUcontext* out) {
    auto& stack = Gpu::get().stack();
    if (stack.empty() || stack.back() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    give_if(out, Gpu::get().handle(stack.back()));
    stack.pop_back();
    return CUDA_SUCCESS;
}
CUresult cuCtxSetCurrent(CUcontext handle) {
    auto& stack = Gpu::get().stack();
    Context* context = nullptr;
    if (handle != nullptr) TTT_EMU_TRY(find_context(handle, &context));
    if (!stack.empty()) stack.pop_back();
    if (context != nullptr) stack.push_back(context);
    return CUDA_SUCCESS;
}
CUresult cuCtxGetCurrent(CUcontext* out) {
    Context* context = Gpu::get().current();
    return give(out, context != nullptr ? Gpu::get().handle(context) : nullptr);
}
CUresult cuCtxGetDevice(CUdevice* device) {
    Context* context = nullptr;
    TTT_EMU_TRY(need_context(&context));
    return give(device, kOnlyDevice);
}
CUresult cuCtxGetDevice_v2(CUdevice* device, CUcontext handle) {
    Context* context = nullptr;
    TTT_EMU_TRY(handle != nullptr ? find_context(handle, &context) : need_context(&context));
    return give(device, kOnlyDevice);
}
CUresult cuCtxGetFlags(unsigned int* flags) {
    Context* context = nullptr;
    TTT_EMU_TRY(need_context(&context));
    return give(flags, context->flags);
}
CUresult cuCtxSetFlags(unsigned int flags) {
    Context* context = nullptr;
    TTT_EMU_TRY(need_context(&context));
    context->flags = flags;
    return CUDA_SUCCESS;
}
CUresult cuCtxGetId(CUcontext handle, unsigned long long* id) {
    Context* context = nullptr;
    TTT_EMU_TRY(handle != nullptr ? find_context(handle, &context) : need_context(&context));
    return give(id, context->id);
}
CUresult cuCtxGetApiVersion(CUcontext handle, unsigned int* version) {
    Context* context = nullptr;
    TTT_EMU_TRY(handle != nullptr ? find_context(handle, &context) : need_context(&context));
    return give(version, 3020);
}
CUresult cuCtxSynchronize() {
    Context* context = nullptr;
    TTT_EMU_TRY(need_context(&context));
    return synchronize(*context);
}
CUresult cuCtxSynchronize_v2(CUcontext handle) {
    Context* context = nullptr;
    TTT_EMU_TRY(handle != nullptr ? find_context(handle, &context) : need_context(&context));
    return synchronize(*context);
}
CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
    Context* context = nullptr;
    TTT_EMU_TRY(need_context(&context));
    if (limit < 0 || limit >= CU_LIMIT_MAX) return CUDA_ERROR_UNSUPPORTED_LIMIT;
    context->limits[limit] = value;
    return CUDA_SUCCESS;
}
CUresult cuCtxGetLimit(size_t* value, CUlimit limit) {
    Context* context = nullptr;
    TTT_EMU_TRY(need_context(&context));
    if (limit < 0 || limit >= CU_LIMIT_MAX) return CUDA_ERROR_UNSUPPORTED_LIMIT;
    const auto set = context->limits.find(limit);
    return give(value, set != context->limits.end() ? set->second : default_limit(limit));
}
CUresult cuCtxGetCacheConfig(CUfunc_cache* config) {
    Context* context = nullptr;
    TTT_EMU_TRY(need_context(&context));
    return give(config, context->cache);
}
CUresult cuCtxSetCacheConfig(CUfunc_cache config) {
    Context* context = nullptr;
    TTT_EMU_TRY(need_context(&context));
    context->cache = config;
    return CUDA_SUCCESS;
}
CUresult cuCtxGetSharedMemConfig(CUsharedconfig* config) {
    Context* context = nullptr;
    TTT_EMU_TRY(need_context(&context));
    return give(config, context->shared);
}
CUresult cuCtxSetSharedMemConfig(CUsharedconfig config) {
    Context* context = nullptr;
    TTT_EMU_TRY(need_context(&context));
    context->shared = config;
    return CUDA_SUCCESS;
}
CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
    Context* context = nullptr;
    TTT_EMU_TRY(need_context(&context));
    give_if(least, 0);
    give_if(greatest, -5);
    return CUDA_SUCCESS;
}
CUresult cuCtxResetPersistingL2Cache() { return CUDA_SUCCESS; }

CUresult cuDevicePrimaryCtxRetain(CUcontext* out, CUdevice device) {
    TTT_EMU_TRY(need_device(device));
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Gpu& gpu = Gpu::get();
    if (gpu.primary == nullptr) gpu.primary = gpu.create_context(gpu.primary_flags, true);
    ++gpu.primary->references;
    return give(out, gpu.handle(gpu.primary));
}
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    TTT_EMU_TRY(need_device(device));
    Gpu& gpu = Gpu::get();
    if (gpu.primary == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    if (--gpu.primary->references == 0) gpu.destroy_context(gpu.primary);
    return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
    TTT_EMU_TRY(need_device(device));
    Gpu& gpu = Gpu::get();
    if (gpu.primary != nullptr) gpu.destroy_context(gpu.primary);
    return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags) {
    TTT_EMU_TRY(need_device(device));
    Gpu& gpu = Gpu::get();
    gpu.primary_flags = flags;
    if (gpu.primary != nullptr) gpu.primary->flags = flags;
    return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int* flags, int* active) {
    TTT_EMU_TRY(need_device(device));
    Gpu& gpu = Gpu::get();
    give_if(flags, gpu.primary_flags);
    give_if(active, gpu.primary != nullptr ? 1 : 0);
    return CUDA_SUCCESS;
}

}  // namespace ttt::emulator::api
