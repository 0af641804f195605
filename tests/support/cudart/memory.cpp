// Allocation, copies, symbols, device queries.
#include <cstring>

#include "driver.h"

using ttt_cudart::done;
using ttt_cudart::driver;

namespace {

CUdeviceptr device(const void* p) { return reinterpret_cast<CUdeviceptr>(p); }

CUresult copy(void* dst, const void* src, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream,
              bool async) {
    const auto* d = driver();
    switch (kind) {
        case cudaMemcpyHostToHost:
            std::memcpy(dst, src, bytes);
            return CUDA_SUCCESS;
        case cudaMemcpyHostToDevice:
            return async ? d->p_cuMemcpyHtoDAsync(device(dst), src, bytes, stream)
                         : d->p_cuMemcpyHtoD(device(dst), src, bytes);
        case cudaMemcpyDeviceToHost:
            return async ? d->p_cuMemcpyDtoHAsync(dst, device(src), bytes, stream)
                         : d->p_cuMemcpyDtoH(dst, device(src), bytes);
        case cudaMemcpyDeviceToDevice:
            return async ? d->p_cuMemcpyDtoDAsync(device(dst), device(src), bytes, stream)
                         : d->p_cuMemcpyDtoD(device(dst), device(src), bytes);
        case cudaMemcpyDefault:
            return async ? d->p_cuMemcpyAsync(device(dst), device(src), bytes, stream)
                         : d->p_cuMemcpy(device(dst), device(src), bytes);
    }
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult symbol(const void* host, size_t bytes, size_t offset, CUdeviceptr* address) {
    size_t size = 0;
    const CUresult r = ttt_cudart::variable_of(host, address, &size);
    if (r != CUDA_SUCCESS) return r;
    if (offset > size || bytes > size - offset) return CUDA_ERROR_INVALID_VALUE;
    *address += offset;
    return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
    TTT_ENTER();
    CUdeviceptr p = 0;
    const CUresult r = driver()->p_cuMemAlloc(&p, bytes);
    if (r == CUDA_SUCCESS) *pointer = reinterpret_cast<void*>(p);
    return done(r);
}
cudaError_t cudaFree(void* pointer) {
    TTT_ENTER();
    return pointer == nullptr ? cudaSuccess : done(driver()->p_cuMemFree(device(pointer)));
}
cudaError_t cudaMallocHost(void** pointer, size_t bytes) {
    TTT_ENTER();
    return done(driver()->p_cuMemAllocHost(pointer, bytes));
}
cudaError_t cudaFreeHost(void* pointer) {
    TTT_ENTER();
    return done(driver()->p_cuMemFreeHost(pointer));
}
cudaError_t cudaMemcpy(void* dst, const void* src, size_t bytes, cudaMemcpyKind kind) {
    TTT_ENTER();
    return done(copy(dst, src, bytes, kind, nullptr, false));
}
cudaError_t cudaMemcpyAsync(void* dst, const void* src, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
    TTT_ENTER();
    return done(copy(dst, src, bytes, kind, stream, true));
}
cudaError_t cudaMemset(void* pointer, int value, size_t bytes) {
    TTT_ENTER();
    return done(driver()->p_cuMemsetD8(device(pointer), static_cast<unsigned char>(value), bytes));
}
cudaError_t cudaMemsetAsync(void* pointer, int value, size_t bytes, cudaStream_t stream) {
    TTT_ENTER();
    return done(driver()->p_cuMemsetD8Async(device(pointer), static_cast<unsigned char>(value),
                                            bytes, stream));
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
    TTT_ENTER();
    return done(driver()->p_cuMemGetInfo(free, total));
}

cudaError_t cudaMemcpyToSymbol(const void* host, const void* src, size_t bytes, size_t offset,
                               cudaMemcpyKind kind) {
    TTT_ENTER();
    CUdeviceptr p = 0;
    if (const CUresult r = symbol(host, bytes, offset, &p); r != CUDA_SUCCESS) return done(r);
    return done(copy(reinterpret_cast<void*>(p), src, bytes, kind, nullptr, false));
}
cudaError_t cudaMemcpyFromSymbol(void* dst, const void* host, size_t bytes, size_t offset,
                                 cudaMemcpyKind kind) {
    TTT_ENTER();
    CUdeviceptr p = 0;
    if (const CUresult r = symbol(host, bytes, offset, &p); r != CUDA_SUCCESS) return done(r);
    return done(copy(dst, reinterpret_cast<void*>(p), bytes, kind, nullptr, false));
}
cudaError_t cudaGetSymbolAddress(void** pointer, const void* host) {
    TTT_ENTER();
    CUdeviceptr p = 0;
    const CUresult r = symbol(host, 0, 0, &p);
    if (r == CUDA_SUCCESS) *pointer = reinterpret_cast<void*>(p);
    return done(r);
}
cudaError_t cudaGetSymbolSize(size_t* bytes, const void* host) {
    TTT_ENTER();
    CUdeviceptr p = 0;
    return done(ttt_cudart::variable_of(host, &p, bytes));
}

cudaError_t cudaGetDeviceCount(int* count) {
    TTT_ENTER();
    return done(driver()->p_cuDeviceGetCount(count));
}
cudaError_t cudaGetDevice(int* ordinal) {
    *ordinal = 0;
    return cudaSuccess;
}
cudaError_t cudaSetDevice(int ordinal) {
    TTT_ENTER();
    return ordinal == 0 ? cudaSuccess : done(cudaErrorInvalidDevice);
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int ordinal) {
    TTT_ENTER();
    return done(driver()->p_cuDeviceGetAttribute(value, static_cast<CUdevice_attribute>(attribute),
                                                 ordinal));
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* prop, int ordinal) {
    TTT_ENTER();
    std::memset(prop, 0, sizeof *prop);
    const auto* d = driver();
    const auto get = [&](CUdevice_attribute a) {
        int v = 0;
        d->p_cuDeviceGetAttribute(&v, a, ordinal);
        return v;
    };
    prop->major = get(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    prop->minor = get(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    prop->multiProcessorCount = get(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    prop->warpSize = get(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
    prop->maxThreadsPerBlock = get(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    prop->sharedMemPerBlock =
        static_cast<size_t>(get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK));
    d->p_cuDeviceTotalMem(&prop->totalGlobalMem, ordinal);
    return done(d->p_cuDeviceGetName(prop->name, sizeof prop->name, ordinal));
}
cudaError_t cudaDriverGetVersion(int* version) {
    TTT_ENTER();
    return done(driver()->p_cuDriverGetVersion(version));
}
cudaError_t cudaRuntimeGetVersion(int* version) {
    *version = CUDART_VERSION;
    return cudaSuccess;
}

}  // extern "C"
