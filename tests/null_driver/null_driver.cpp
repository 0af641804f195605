// Functions whose callers need more than "success": everything else is generated.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "driver_table/proc_address.h"
#include "entry.h"

namespace ttt::null_driver {
namespace {

constexpr CUdevice kDevice = 0;
std::atomic<uint64_t> g_handle{0x100000};
std::atomic<uint64_t> g_address{0x300000000000};
thread_local std::vector<CUcontext> t_contexts;

struct Named {
    void* owner;
    std::string name;
};
// Never destroyed: programs call the driver from their own exit handlers.
struct Names {
    std::mutex mutex;
    std::map<std::pair<void*, std::string>, uint64_t> handles;
    std::map<uint64_t, Named> by_handle;
    std::map<CUfunction, uint64_t> kernels;  // function to kernel
};
Names& names() {
    static Names* all = new Names;
    return *all;
}

// The same name in the same module is the same handle, as programs rely on.
uint64_t named_handle(void* owner, const char* name) {
    const std::lock_guard lock(names().mutex);
    uint64_t& handle = names().handles[{owner, name}];
    if (handle == 0) {
        handle = fresh_handle();
        names().by_handle[handle] = {owner, name};
    }
    return handle;
}

const Named* find_named(const void* handle) {
    const std::lock_guard lock(names().mutex);
    const auto found = names().by_handle.find(reinterpret_cast<uint64_t>(handle));
    return found == names().by_handle.end() ? nullptr : &found->second;
}

const std::vector<size_t>& param_sizes() {
    static const std::vector<size_t>* sizes = [] {
        const char* text = std::getenv("TTT_NULL_PARAMS");
        auto* parsed = new std::vector<size_t>;
        for (const char* p = text != nullptr ? text : "8,8,8,4"; *p != '\0';) {
            char* end = nullptr;
            const size_t size = std::strtoul(p, &end, 10);
            if (end == p) break;
            parsed->push_back(size);
            p = *end == ',' ? end + 1 : end;
        }
        return parsed;
    }();
    return *sizes;
}

CUresult param_info(size_t index, size_t* offset, size_t* size) {
    const auto& sizes = param_sizes();
    if (index >= sizes.size() || offset == nullptr) return CUDA_ERROR_INVALID_VALUE;
    size_t at = 0;
    for (size_t i = 0; i <= index; ++i) {
        const size_t align = std::clamp<size_t>(sizes[i], 1, 8);
        at = (at + align - 1) / align * align;
        if (i < index) at += sizes[i];
    }
    *offset = at;
    if (size != nullptr) *size = sizes[index];
    return CUDA_SUCCESS;
}

CUresult host_memory(void** out, size_t bytes) {
    if (out == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    *out = std::calloc(1, bytes);
    return *out != nullptr ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

}  // namespace

uint64_t fresh_handle() { return g_handle.fetch_add(64, std::memory_order_relaxed); }

int injected_failure(const FunctionId& id) {
    auto& plan = driver_table::process_fault_plan();
    int code = plan.on_call(id.base, id.symbol);
    if (id.launches && code == 0) code = plan.on_launch();
    return code == driver_table::FaultPlan::kFault ? CUDA_ERROR_ILLEGAL_ADDRESS : code;
}

namespace api {

CUresult cuGetProcAddress(const char* symbol, void** pfn, int version, cuuint64_t flags) {
    return driver_table::resolve(symbol, version, flags, pfn, nullptr);
}
CUresult cuGetProcAddress_v2(const char* symbol, void** pfn, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* status) {
    return driver_table::resolve(symbol, version, flags, pfn, status);
}
CUresult cuDriverGetVersion(int* version) {
    *version = CUDA_VERSION;
    return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult error, const char** text) {
    *text = error == CUDA_SUCCESS ? "no error" : "injected error";
    return CUDA_SUCCESS;
}
CUresult cuGetErrorName(CUresult error, const char** text) {
    *text = error == CUDA_SUCCESS ? "CUDA_SUCCESS" : "CUDA_ERROR_INJECTED";
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
    *count = 1;
    return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice* device, int ordinal) {
    if (ordinal != 0) return CUDA_ERROR_INVALID_DEVICE;
    *device = kDevice;
    return CUDA_SUCCESS;
}
CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
    if (device != kDevice || length <= 0) return CUDA_ERROR_INVALID_VALUE;
    std::strncpy(name, "Null GPU", static_cast<size_t>(length));
    name[length - 1] = '\0';
    return CUDA_SUCCESS;
}
CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice) {
    std::memcpy(uuid->bytes, "ttt null driver", 16);
    return CUDA_SUCCESS;
}
CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice) {
    *bytes = size_t{141} << 30;
    return CUDA_SUCCESS;
}
CUresult cuMemGetInfo_v2(size_t* free_bytes, size_t* total) {
    *total = size_t{141} << 30;
    *free_bytes = *total / 2;
    return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
    switch (attribute) {
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
            *value = 9;
            break;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
            *value = 0;
            break;
        case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
            *value = 132;
            break;
        case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
            *value = 32;
            break;
        case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
            *value = 1024;
            break;
        case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
            *value = 1;
            break;
        case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
            *value = 1;
            break;
        case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
            *value = 1;
            break;
        default:
            *value = 0;
    }
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) {
    static const uint64_t primary = fresh_handle();
    *context = reinterpret_cast<CUcontext>(primary);
    return CUDA_SUCCESS;
}
CUresult cuCtxSetCurrent(CUcontext context) {
    if (t_contexts.empty()) {
        t_contexts.push_back(context);
    } else {
        t_contexts.back() = context;
    }
    return CUDA_SUCCESS;
}
CUresult cuCtxPushCurrent_v2(CUcontext context) {
    t_contexts.push_back(context);
    return CUDA_SUCCESS;
}
CUresult cuCtxPopCurrent_v2(CUcontext* context) {
    if (t_contexts.empty()) return CUDA_ERROR_INVALID_CONTEXT;
    if (context != nullptr) *context = t_contexts.back();
    t_contexts.pop_back();
    return CUDA_SUCCESS;
}
CUresult cuCtxGetCurrent(CUcontext* context) {
    *context = t_contexts.empty() ? nullptr : t_contexts.back();
    return CUDA_SUCCESS;
}
CUresult cuCtxCreate_v2(CUcontext* context, unsigned int, CUdevice) {
    *context = reinterpret_cast<CUcontext>(fresh_handle());
    t_contexts.push_back(*context);
    return CUDA_SUCCESS;
}
CUresult cuCtxCreate_v4(CUcontext* context, CUctxCreateParams*, unsigned int flags,
                        CUdevice device) {
    return api::cuCtxCreate_v2(context, flags, device);
}

CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
    if (address == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    *address = g_address.fetch_add((bytes + 511) / 512 * 512, std::memory_order_relaxed);
    return CUDA_SUCCESS;
}
CUresult cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream) {
    return api::cuMemAlloc_v2(address, bytes);
}
CUresult cuMemAddressReserve(CUdeviceptr* address, size_t size, size_t, CUdeviceptr,
                             unsigned long long) {
    return api::cuMemAlloc_v2(address, size);
}
CUresult cuMemAllocPitch_v2(CUdeviceptr* address, size_t* pitch, size_t width, size_t height,
                            unsigned int) {
    *pitch = (width + 511) / 512 * 512;
    return api::cuMemAlloc_v2(address, *pitch * height);
}
CUresult cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp*,
                                       CUmemAllocationGranularity_flags) {
    *granularity = size_t{2} << 20;
    return CUDA_SUCCESS;
}
CUresult cuMemHostAlloc(void** out, size_t bytes, unsigned int) { return host_memory(out, bytes); }
CUresult cuMemAllocHost_v2(void** out, size_t bytes) { return host_memory(out, bytes); }
CUresult cuMemFreeHost(void* pointer) {
    std::free(pointer);
    return CUDA_SUCCESS;
}

// No linker: the "result" is the file $TTT_NULL_LINKED.
CUresult cuLinkComplete(CUlinkState, void** cubin, size_t* size) {
    static const std::string* bytes = [] {
        const char* path = std::getenv("TTT_NULL_LINKED");
        std::ifstream in(path != nullptr ? path : "", std::ios::binary);
        return new std::string(std::istreambuf_iterator<char>(in), {});
    }();
    if (cubin != nullptr) *cubin = const_cast<char*>(bytes->data());
    if (size != nullptr) *size = bytes->size();
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
    if (function == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *function = reinterpret_cast<CUfunction>(named_handle(module, name));
    return CUDA_SUCCESS;
}
CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
    if (kernel == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *kernel = reinterpret_cast<CUkernel>(named_handle(library, name));
    return CUDA_SUCCESS;
}
CUresult cuLibraryGetModule(CUmodule* module, CUlibrary library) {
    *module = reinterpret_cast<CUmodule>(named_handle(library, "(module)"));
    return CUDA_SUCCESS;
}
CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
    const Named* named = find_named(kernel);
    if (named == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    CUmodule module = nullptr;
    api::cuLibraryGetModule(&module, static_cast<CUlibrary>(named->owner));
    return api::cuModuleGetFunction(function, module, named->name.c_str());
}
CUresult cuKernelGetLibrary(CUlibrary* library, CUkernel kernel) {
    const Named* named = find_named(kernel);
    if (named == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    *library = static_cast<CUlibrary>(named->owner);
    return CUDA_SUCCESS;
}
CUresult cuFuncGetModule(CUmodule* module, CUfunction function) {
    const Named* named = find_named(function);
    if (named == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    *module = static_cast<CUmodule>(named->owner);
    return CUDA_SUCCESS;
}
CUresult cuFuncGetName(const char** name, CUfunction function) {
    const Named* named = find_named(function);
    if (named == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    *name = named->name.c_str();
    return CUDA_SUCCESS;
}
CUresult cuKernelGetName(const char** name, CUkernel kernel) {
    return api::cuFuncGetName(name, reinterpret_cast<CUfunction>(kernel));
}
CUresult cuFuncGetParamInfo(CUfunction, size_t index, size_t* offset, size_t* size) {
    return param_info(index, offset, size);
}
CUresult cuKernelGetParamInfo(CUkernel, size_t index, size_t* offset, size_t* size) {
    return param_info(index, offset, size);
}
CUresult cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction) {
    *state = CU_FUNCTION_LOADING_STATE_LOADED;
    return CUDA_SUCCESS;
}
CUresult cuModuleEnumerateFunctions(CUfunction*, unsigned int, CUmodule) { return CUDA_SUCCESS; }
CUresult cuLibraryEnumerateKernels(CUkernel*, unsigned int, CUlibrary) { return CUDA_SUCCESS; }

CUresult cuEventElapsedTime(float* milliseconds, CUevent, CUevent) {
    *milliseconds = 0.01F;
    return CUDA_SUCCESS;
}
CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent first, CUevent second) {
    return api::cuEventElapsedTime(milliseconds, first, second);
}
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
    static thread_local CUstreamCaptureMode current = CU_STREAM_CAPTURE_MODE_GLOBAL;
    std::swap(*mode, current);
    return CUDA_SUCCESS;
}

}  // namespace api
}  // namespace ttt::null_driver

#define TTT_EXPORT extern "C" __attribute__((visibility("default")))
TTT_EXPORT uint64_t ttt_null_launches(void);
TTT_EXPORT uint64_t ttt_null_calls(const char* symbol);

uint64_t ttt_null_launches(void) {
    uint64_t sum = 0;
    for (const auto& slot : ttt::null_driver::g_launches) sum += slot.value.load();
    return sum;
}

uint64_t ttt_null_calls(const char* symbol) {
    using namespace ttt::null_driver;
    for (unsigned i = 0; i < kFunctionCount; ++i) {
        if (std::strcmp(kFunctionNames[i], symbol) == 0) return g_calls[i].load();
    }
    return ~uint64_t{0};
}
