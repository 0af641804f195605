// Allocation, host memory, pools, pointer attributes.
#include <algorithm>
#include <cstring>

#include "emulator/api.h"

namespace ttt::emulator::api {
namespace {

using Kind = Allocation::Kind;
DeviceMemory& memory() { return *Gpu::get().memory; }

CUresult host_memory(void** out, size_t bytes) {
    Context* context = nullptr;
    TTT_EMU_TRY(need_context(&context));
    TTT_EMU_TRY(refuse_in_capture());
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    uint64_t address = 0;
    TTT_EMU_TRY(memory().allocate_shared(context, Kind::kPinned, bytes, &address));
    *out = reinterpret_cast<void*>(address);
    return CUDA_SUCCESS;
}

CUresult allocate_async(CUdeviceptr* out, size_t bytes, CUmemoryPool pool, CUstream handle) {
    Stream* stream = nullptr;
    TTT_EMU_TRY(need_stream(handle, &stream));
    if (stream->capture != nullptr) return CUDA_ERROR_NOT_SUPPORTED;  // graph memory nodes
    uint64_t address = 0;
    TTT_EMU_TRY(memory().allocate(stream->context, bytes, &address, pool));
    return give(out, address);
}

template <typename T>
CUresult put(void* data, T value) {
    std::memcpy(data, &value, sizeof value);
    return CUDA_SUCCESS;
}

CUresult attribute(void* data, CUpointer_attribute which, const Allocation& a,
                   CUdeviceptr pointer) {
    const bool on_host = a.kind == Kind::kPinned || a.kind == Kind::kRegistered;
    const uint64_t offset = pointer >= a.address && pointer - a.address < a.bytes
                                ? pointer - a.address
                                : pointer - a.host_address;
    switch (which) {
        case CU_POINTER_ATTRIBUTE_CONTEXT:
            return put(data, Gpu::get().handle(a.context));
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
            return put(data, on_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
        case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
            return put<CUdeviceptr>(data, a.address + offset);
        case CU_POINTER_ATTRIBUTE_HOST_POINTER:
            if (a.host_address == 0) {
                put<void*>(data, nullptr);
                return CUDA_ERROR_INVALID_VALUE;
            }
            return put<uint64_t>(data, a.host_address + offset);
        case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
            return put<unsigned>(data, 0);
        case CU_POINTER_ATTRIBUTE_BUFFER_ID:
            return put<unsigned long long>(data, a.id);
        case CU_POINTER_ATTRIBUTE_IS_MANAGED:
            return put<unsigned>(data, a.kind == Kind::kManaged);
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
            return put<int>(data, kOnlyDevice);
        case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
            return put<unsigned>(data, 0);
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
            return put<CUdeviceptr>(data, a.address);
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
            return put<size_t>(data, a.bytes);
        case CU_POINTER_ATTRIBUTE_MAPPED:
            return put<unsigned>(data, 1);
        case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
            return put<unsigned long long>(
                data, a.kind == Kind::kMapped ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : 0);
        case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
            return put<unsigned>(data, CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE);
        case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
            return put<void*>(data, a.pool);
        case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
            return put<size_t>(data, a.bytes);
        case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
            return put<CUdeviceptr>(data, a.address);
        case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
            return put<unsigned long long>(data, a.id);
        default:
            return CUDA_ERROR_NOT_SUPPORTED;
    }
}

// What cuPointerGetAttributes reports for memory the driver does not know.
size_t attribute_bytes(CUpointer_attribute which) {
    switch (which) {
        case CU_POINTER_ATTRIBUTE_CONTEXT:
        case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
            return 8;
        default:
            return 4;
    }
}

}  // namespace

CUresult cuMemGetInfo_v2(size_t* free_bytes, size_t* total) {
    Context* context = nullptr;
    TTT_EMU_TRY(need_context(&context));
    give_if(free_bytes, memory().capacity() - std::min(memory().used(), memory().capacity()));
    give_if(total, memory().capacity());
    return CUDA_SUCCESS;
}
CUresult cuMemAlloc_v2(CUdeviceptr* out, size_t bytes) {
    Context* context = nullptr;
    TTT_EMU_TRY(need_context(&context));
    TTT_EMU_TRY(refuse_in_capture());
    uint64_t address = 0;
    TTT_EMU_TRY(memory().allocate(context, bytes, &address));
    return give(out, address);
}
CUresult cuMemAllocPitch_v2(CUdeviceptr* out, size_t* pitch, size_t width, size_t height,
                            unsigned int element) {
    if (pitch == nullptr || (element != 4 && element != 8 && element != 16))
        return CUDA_ERROR_INVALID_VALUE;
    constexpr size_t kPitch = 512;
    *pitch = (width + kPitch - 1) / kPitch * kPitch;
    return api::cuMemAlloc_v2(out, *pitch * height);
}
CUresult cuMemFree_v2(CUdeviceptr address) {
    Context* context = nullptr;
    TTT_EMU_TRY(need_context(&context));
    if (address == 0) return CUDA_SUCCESS;
    TTT_EMU_TRY(refuse_in_capture());
    wait_for_context(*context);
    return memory().free(address, {Kind::kDevice, Kind::kManaged});
}
CUresult cuMemAllocManaged(CUdeviceptr* out, size_t bytes, unsigned int flags) {
    Context* context = nullptr;
    TTT_EMU_TRY(need_context(&context));
    TTT_EMU_TRY(refuse_in_capture());
    if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t address = 0;
    TTT_EMU_TRY(memory().allocate_shared(context, Kind::kManaged, bytes, &address));
    return give(out, address);
}
CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* size, CUdeviceptr address) {
    const Allocation* found = memory().find(address);
    if (found == nullptr) return CUDA_ERROR_NOT_FOUND;
    give_if(base, found->address);
    give_if(size, found->bytes);
    return CUDA_SUCCESS;
}

CUresult cuMemAllocHost_v2(void** out, size_t bytes) { return host_memory(out, bytes); }
CUresult cuMemHostAlloc(void** out, size_t bytes, unsigned int flags) {
    constexpr unsigned kFlags =
        CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    if ((flags & ~kFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
    return host_memory(out, bytes);
}
CUresult cuMemFreeHost(void* pointer) {
    if (pointer == nullptr) return CUDA_SUCCESS;
    return memory().free(reinterpret_cast<uint64_t>(pointer), {Kind::kPinned});
}
CUresult cuMemHostRegister_v2(void* pointer, size_t bytes, unsigned int) {
    Context* context = nullptr;
    TTT_EMU_TRY(need_context(&context));
    return memory().register_host(context, pointer, bytes);
}
CUresult cuMemHostUnregister(void* pointer) {
    const CUresult result = memory().free(reinterpret_cast<uint64_t>(pointer), {Kind::kRegistered});
    return result == CUDA_SUCCESS ? result : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* out, void* pointer, unsigned int flags) {
    const Allocation* found = memory().find(reinterpret_cast<uint64_t>(pointer));
    if (out == nullptr || flags != 0 || found == nullptr || found->host_address == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = found->address + (reinterpret_cast<uint64_t>(pointer) - found->host_address);
    return CUDA_SUCCESS;
}
CUresult cuMemHostGetFlags(unsigned int* flags, void* pointer) {
    const Allocation* found = memory().find(reinterpret_cast<uint64_t>(pointer));
    if (found == nullptr || found->kind != Kind::kPinned) return CUDA_ERROR_INVALID_VALUE;
    return give(flags, CU_MEMHOSTALLOC_DEVICEMAP);
}

CUresult cuMemAllocAsync(CUdeviceptr* out, size_t bytes, CUstream stream) {
    return allocate_async(out, bytes, Gpu::get().current_pool, stream);
}
CUresult cuMemAllocFromPoolAsync(CUdeviceptr* out, size_t bytes, CUmemoryPool pool,
                                 CUstream stream) {
    if (Gpu::get().pools.find(pool) == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return allocate_async(out, bytes, pool, stream);
}
CUresult cuMemFreeAsync(CUdeviceptr address, CUstream handle) {
    Stream* stream = nullptr;
    TTT_EMU_TRY(need_stream(handle, &stream));
    if (stream->capture != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    if (address == 0) return CUDA_SUCCESS;
    return memory().free(address, {Kind::kDevice, Kind::kManaged});
}
CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* props) {
    if (pool == nullptr || props == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (props->handleTypes != CU_MEM_HANDLE_TYPE_NONE) return CUDA_ERROR_NOT_SUPPORTED;
    return give(pool, Gpu::get().pools.add(std::make_unique<Pool>()));
}
CUresult cuMemPoolDestroy(CUmemoryPool pool) {
    Gpu& gpu = Gpu::get();
    if (pool == gpu.default_pool || !gpu.pools.remove(pool)) return CUDA_ERROR_INVALID_VALUE;
    if (gpu.current_pool == pool) gpu.current_pool = gpu.default_pool;
    return CUDA_SUCCESS;
}
CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t) {
    return Gpu::get().pools.find(pool) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute_id, void* value) {
    Pool* pool = Gpu::get().pools.find(handle);
    if (pool == nullptr || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const bool wide = attribute_id >= CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
    uint64_t stored = 0;
    std::memcpy(&stored, value, wide ? 8 : 4);
    pool->attributes[attribute_id] = stored;
    return CUDA_SUCCESS;
}
CUresult cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute_id, void* value) {
    Pool* pool = Gpu::get().pools.find(handle);
    if (pool == nullptr || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const bool wide = attribute_id >= CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
    const auto set = pool->attributes.find(attribute_id);
    const uint64_t stored = set != pool->attributes.end() ? set->second : (wide ? 0 : 1);
    std::memcpy(value, &stored, wide ? 8 : 4);
    return CUDA_SUCCESS;
}
CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc*, size_t) {
    return Gpu::get().pools.find(pool) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
    TTT_EMU_TRY(need_device(device));
    return give(pool, Gpu::get().default_pool);
}
CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice device) {
    TTT_EMU_TRY(need_device(device));
    return give(pool, Gpu::get().current_pool);
}
CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
    TTT_EMU_TRY(need_device(device));
    if (Gpu::get().pools.find(pool) == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Gpu::get().current_pool = pool;
    return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute which, CUdeviceptr pointer) {
    if (data == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const Allocation* found = memory().find(pointer);
    return found != nullptr ? attribute(data, which, *found, pointer) : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute* which, void** data,
                                CUdeviceptr pointer) {
    if (which == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const Allocation* found = memory().find(pointer);
    for (unsigned i = 0; i < count; ++i) {
        std::memset(data[i], 0, attribute_bytes(which[i]));
        if (found == nullptr) {
            if (which[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) put<int>(data[i], -2);
            continue;
        }
        const CUresult result = attribute(data[i], which[i], *found, pointer);
        if (result != CUDA_SUCCESS && which[i] != CU_POINTER_ATTRIBUTE_HOST_POINTER) return result;
    }
    return CUDA_SUCCESS;
}
CUresult cuPointerSetAttribute(const void* value, CUpointer_attribute which, CUdeviceptr pointer) {
    if (value == nullptr || memory().find(pointer) == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return which == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// Hints change nothing here: everything is executed in order in one memory.
CUresult cuMemPrefetchAsync(CUdeviceptr address, size_t, CUdevice, CUstream) {
    return memory().find(address) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuMemPrefetchAsync_v2(CUdeviceptr address, size_t, CUmemLocation, unsigned int, CUstream) {
    return memory().find(address) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuMemAdvise(CUdeviceptr address, size_t, CUmem_advise, CUdevice) {
    return memory().find(address) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuMemAdvise_v2(CUdeviceptr address, size_t, CUmem_advise, CUmemLocation) {
    return memory().find(address) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace ttt::emulator::api
