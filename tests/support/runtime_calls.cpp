// Devices, memory, symbols, errors.
#include <algorithm>
#include <cstring>

#include "support/runtime.h"

using namespace ttt::test_runtime;

namespace {

CUdeviceptr address_of(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }
void* pointer_to(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

CUresult attribute(CUdevice_attribute which, int* value) {
    return DRIVER(cuDeviceGetAttribute)(value, which, 0);
}

CUresult copy_2d(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                 size_t height, cudaStream_t* stream) {
    CUDA_MEMCPY2D copy{};
    copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
    copy.srcDevice = address_of(from);
    copy.dstDevice = address_of(to);
    copy.srcPitch = from_pitch;
    copy.dstPitch = to_pitch;
    copy.WidthInBytes = width;
    copy.Height = height;
    return stream != nullptr ? DRIVER(cuMemcpy2DAsync)(&copy, *stream) : DRIVER(cuMemcpy2D)(&copy);
}

struct SymbolRange {
    CUdeviceptr address;
    cudaError_t error;
};
SymbolRange range(const void* host, size_t bytes, size_t offset) {
    Symbol* symbol = nullptr;
    if (const cudaError_t bad = find_variable(host, &symbol); bad != cudaSuccess) return {0, bad};
    if (offset > symbol->bytes || bytes > symbol->bytes - offset) return {0, cudaErrorInvalidValue};
    return {symbol->address + offset, cudaSuccess};
}

}  // namespace

extern "C" {

cudaError_t cudaGetLastError(void) { return last_error(true); }
cudaError_t cudaPeekAtLastError(void) { return last_error(false); }
const char* cudaGetErrorString(cudaError_t code) {
    const char* text = nullptr;
    DRIVER(cuGetErrorString)(static_cast<CUresult>(code), &text);
    return text != nullptr ? text : "unrecognized error code";
}
const char* cudaGetErrorName(cudaError_t code) {
    const char* text = nullptr;
    DRIVER(cuGetErrorName)(static_cast<CUresult>(code), &text);
    return text != nullptr ? text : "unrecognized error code";
}

cudaError_t cudaGetDeviceCount(int* count) {
    TTT_START();
    return keep(DRIVER(cuDeviceGetCount)(count));
}
cudaError_t cudaGetDevice(int* device) {
    TTT_START();
    *device = 0;
    return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
    TTT_START();
    return device == 0 ? cudaSuccess : keep(cudaErrorInvalidDevice);
}
cudaError_t cudaDeviceSynchronize(void) {
    TTT_START();
    return keep(DRIVER(cuCtxSynchronize)());
}
cudaError_t cudaDeviceReset(void) {
    TTT_START();
    return keep(DRIVER(cuDevicePrimaryCtxReset)(0));
}
cudaError_t cudaDriverGetVersion(int* version) { return keep(DRIVER(cuDriverGetVersion)(version)); }
cudaError_t cudaRuntimeGetVersion(int* version) {
    *version = CUDART_VERSION;
    return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int device) {
    TTT_START();
    return keep(
        DRIVER(cuDeviceGetAttribute)(value, static_cast<CUdevice_attribute>(which), device));
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
    TTT_START();
    if (device != 0) return keep(cudaErrorInvalidDevice);
    std::memset(properties, 0, sizeof *properties);
    DRIVER(cuDeviceGetName)(properties->name, sizeof properties->name, device);
    DRIVER(cuDeviceTotalMem)(&properties->totalGlobalMem, device);
    int shared = 0, pitch = 0, total_constant = 0, shared_sm = 0, shared_optin = 0;
    attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &properties->major);
    attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &properties->minor);
    attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &properties->multiProcessorCount);
    attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &properties->maxThreadsPerBlock);
    attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
              &properties->maxThreadsPerMultiProcessor);
    attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE, &properties->warpSize);
    attribute(CU_DEVICE_ATTRIBUTE_REGISTERS_PER_BLOCK, &properties->regsPerBlock);
    attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR,
              &properties->regsPerMultiprocessor);
    attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, &properties->l2CacheSize);
    attribute(CU_DEVICE_ATTRIBUTE_INTEGRATED, &properties->integrated);
    attribute(CU_DEVICE_ATTRIBUTE_SHARED_MEMORY_PER_BLOCK, &shared);
    attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, &shared_sm);
    attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &shared_optin);
    attribute(CU_DEVICE_ATTRIBUTE_MAX_PITCH, &pitch);
    attribute(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, &total_constant);
    attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, &properties->maxThreadsDim[0]);
    attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, &properties->maxThreadsDim[1]);
    attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, &properties->maxThreadsDim[2]);
    attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, &properties->maxGridSize[0]);
    attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, &properties->maxGridSize[1]);
    attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, &properties->maxGridSize[2]);
    properties->sharedMemPerBlock = static_cast<size_t>(shared);
    properties->sharedMemPerMultiprocessor = static_cast<size_t>(shared_sm);
    properties->sharedMemPerBlockOptin = static_cast<size_t>(shared_optin);
    properties->memPitch = static_cast<size_t>(pitch);
    properties->totalConstMem = static_cast<size_t>(total_constant);
    return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total) {
    TTT_START();
    return keep(DRIVER(cuMemGetInfo)(free_bytes, total));
}

cudaError_t cudaMalloc(void** out, size_t bytes) {
    TTT_START();
    if (bytes == 0) {
        *out = nullptr;
        return cudaSuccess;
    }
    CUdeviceptr address = 0;
    const CUresult result = DRIVER(cuMemAlloc)(&address, bytes);
    *out = pointer_to(address);
    return keep(result);
}
cudaError_t cudaMallocPitch(void** out, size_t* pitch, size_t width, size_t height) {
    TTT_START();
    CUdeviceptr address = 0;
    const CUresult result = DRIVER(cuMemAllocPitch)(&address, pitch, width, height, 4);
    *out = pointer_to(address);
    return keep(result);
}
cudaError_t cudaMallocManaged(void** out, size_t bytes, unsigned flags) {
    TTT_START();
    CUdeviceptr address = 0;
    const CUresult result = DRIVER(cuMemAllocManaged)(&address, bytes, flags);
    *out = pointer_to(address);
    return keep(result);
}
cudaError_t cudaMallocAsync(void** out, size_t bytes, cudaStream_t stream) {
    TTT_START();
    CUdeviceptr address = 0;
    const CUresult result = DRIVER(cuMemAllocAsync)(&address, bytes, stream);
    *out = pointer_to(address);
    return keep(result);
}
cudaError_t cudaFree(void* pointer) {
    TTT_START();
    return pointer == nullptr ? cudaSuccess : keep(DRIVER(cuMemFree)(address_of(pointer)));
}
cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
    TTT_START();
    return keep(DRIVER(cuMemFreeAsync)(address_of(pointer), stream));
}
cudaError_t cudaMallocHost(void** out, size_t bytes) {
    TTT_START();
    return keep(DRIVER(cuMemHostAlloc)(out, bytes, 0));
}
cudaError_t cudaHostAlloc(void** out, size_t bytes, unsigned flags) {
    TTT_START();
    return keep(DRIVER(cuMemHostAlloc)(out, bytes, flags));
}
cudaError_t cudaFreeHost(void* pointer) {
    TTT_START();
    return keep(DRIVER(cuMemFreeHost)(pointer));
}
cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned flags) {
    TTT_START();
    return keep(DRIVER(cuMemHostRegister)(pointer, bytes, flags));
}
cudaError_t cudaHostUnregister(void* pointer) {
    TTT_START();
    return keep(DRIVER(cuMemHostUnregister)(pointer));
}
cudaError_t cudaHostGetDevicePointer(void** out, void* pointer, unsigned flags) {
    TTT_START();
    CUdeviceptr address = 0;
    const CUresult result = DRIVER(cuMemHostGetDevicePointer)(&address, pointer, flags);
    *out = pointer_to(address);
    return keep(result);
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
    TTT_START();
    return bytes == 0 ? cudaSuccess
                      : keep(DRIVER(cuMemcpy)(address_of(to), address_of(from), bytes));
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
    TTT_START();
    return bytes == 0
               ? cudaSuccess
               : keep(DRIVER(cuMemcpyAsync)(address_of(to), address_of(from), bytes, stream));
}
cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                         size_t width, size_t height, cudaMemcpyKind) {
    TTT_START();
    return keep(copy_2d(to, to_pitch, from, from_pitch, width, height, nullptr));
}
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind, cudaStream_t stream) {
    TTT_START();
    return keep(copy_2d(to, to_pitch, from, from_pitch, width, height, &stream));
}
cudaError_t cudaMemset(void* to, int value, size_t bytes) {
    TTT_START();
    return keep(DRIVER(cuMemsetD8)(address_of(to), static_cast<unsigned char>(value), bytes));
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
    TTT_START();
    return keep(
        DRIVER(cuMemsetD8Async)(address_of(to), static_cast<unsigned char>(value), bytes, stream));
}

cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, size_t bytes, size_t offset,
                               cudaMemcpyKind) {
    TTT_START();
    const SymbolRange target = range(symbol, bytes, offset);
    if (target.error != cudaSuccess) return keep(target.error);
    return keep(DRIVER(cuMemcpy)(target.address, address_of(from), bytes));
}
cudaError_t cudaMemcpyFromSymbol(void* to, const void* symbol, size_t bytes, size_t offset,
                                 cudaMemcpyKind) {
    TTT_START();
    const SymbolRange source = range(symbol, bytes, offset);
    if (source.error != cudaSuccess) return keep(source.error);
    return keep(DRIVER(cuMemcpy)(address_of(to), source.address, bytes));
}
cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* from, size_t bytes,
                                    size_t offset, cudaMemcpyKind, cudaStream_t stream) {
    TTT_START();
    const SymbolRange target = range(symbol, bytes, offset);
    if (target.error != cudaSuccess) return keep(target.error);
    return keep(DRIVER(cuMemcpyAsync)(target.address, address_of(from), bytes, stream));
}
cudaError_t cudaGetSymbolAddress(void** out, const void* symbol) {
    TTT_START();
    const SymbolRange found = range(symbol, 0, 0);
    *out = pointer_to(found.address);
    return keep(found.error);
}
cudaError_t cudaGetSymbolSize(size_t* bytes, const void* host) {
    TTT_START();
    Symbol* symbol = nullptr;
    const cudaError_t result = find_variable(host, &symbol);
    if (result == cudaSuccess) *bytes = symbol->bytes;
    return keep(result);
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* out, const void* host) {
    TTT_START();
    CUkernel kernel = nullptr;
    if (const cudaError_t bad = find_kernel(host, &kernel); bad != cudaSuccess) return keep(bad);
    std::memset(out, 0, sizeof *out);
    const auto get = [&](CUfunction_attribute which) {
        int value = 0;
        DRIVER(cuKernelGetAttribute)(&value, which, kernel, 0);
        return value;
    };
    out->numRegs = get(CU_FUNC_ATTRIBUTE_NUM_REGS);
    out->maxThreadsPerBlock = get(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    out->sharedSizeBytes = static_cast<size_t>(get(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES));
    out->localSizeBytes = static_cast<size_t>(get(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES));
    out->ptxVersion = get(CU_FUNC_ATTRIBUTE_PTX_VERSION);
    out->binaryVersion = get(CU_FUNC_ATTRIBUTE_BINARY_VERSION);
    out->maxDynamicSharedSizeBytes = get(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void* host, cudaFuncAttribute which, int value) {
    TTT_START();
    CUkernel kernel = nullptr;
    if (const cudaError_t bad = find_kernel(host, &kernel); bad != cudaSuccess) return keep(bad);
    return keep(
        DRIVER(cuKernelSetAttribute)(static_cast<CUfunction_attribute>(which), value, kernel, 0));
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* host, int block,
                                                          size_t shared) {
    TTT_START();
    CUkernel kernel = nullptr;
    if (const cudaError_t bad = find_kernel(host, &kernel); bad != cudaSuccess) return keep(bad);
    return keep(DRIVER(cuOccupancyMaxActiveBlocksPerMultiprocessor)(
        blocks, reinterpret_cast<CUfunction>(kernel), block, shared));
}

}  // extern "C"
