// Virtual memory management: physical allocations, address ranges, mappings, sharing through file
// descriptors.
#include <fcntl.h>

#include <cstring>

#include "emulator/api.h"

namespace ttt::emulator::api {
namespace {

constexpr size_t kGranularity = size_t{2} << 20;
DeviceMemory& memory() { return *Gpu::get().memory; }

CUresult find_physical(CUmemGenericAllocationHandle handle, Physical** physical) {
    *physical = reinterpret_cast<Physical*>(handle);
    return memory().owns(*physical) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult check_properties(const CUmemAllocationProp* prop) {
    if (prop == nullptr || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    if (prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
    TTT_EMU_TRY(need_device(prop->location.id));
    const unsigned handles = static_cast<unsigned>(prop->requestedHandleTypes);
    return (handles & ~1u) == 0 ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace

CUresult cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp* prop,
                                       CUmemAllocationGranularity_flags) {
    TTT_EMU_TRY(check_properties(prop));
    return give(granularity, kGranularity);
}
CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes,
                     const CUmemAllocationProp* prop, unsigned long long flags) {
    if (handle == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    TTT_EMU_TRY(check_properties(prop));
    Physical* made = nullptr;
    TTT_EMU_TRY(memory().create(bytes, &made));
    *handle = reinterpret_cast<CUmemGenericAllocationHandle>(made);
    return CUDA_SUCCESS;
}
CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
    Physical* physical = nullptr;
    TTT_EMU_TRY(find_physical(handle, &physical));
    memory().release_handle(physical);
    return CUDA_SUCCESS;
}
CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
    const Allocation* found = memory().find(reinterpret_cast<uint64_t>(address));
    if (handle == nullptr || found == nullptr || found->physical == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    ++found->physical->handles;
    *handle = reinterpret_cast<CUmemGenericAllocationHandle>(found->physical);
    return CUDA_SUCCESS;
}
CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* prop,
                                                CUmemGenericAllocationHandle handle) {
    Physical* physical = nullptr;
    TTT_EMU_TRY(find_physical(handle, &physical));
    if (prop == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::memset(prop, 0, sizeof *prop);
    prop->type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop->requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    prop->location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop->location.id = kOnlyDevice;
    return CUDA_SUCCESS;
}
CUresult cuMemExportToShareableHandle(void* shareable, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags) {
    Physical* physical = nullptr;
    TTT_EMU_TRY(find_physical(handle, &physical));
    if (shareable == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
    const int fd = ::fcntl(physical->fd.get(), F_DUPFD_CLOEXEC, 3);
    if (fd < 0) return CUDA_ERROR_OPERATING_SYSTEM;
    std::memcpy(shareable, &fd, sizeof fd);
    return CUDA_SUCCESS;
}
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* os_handle,
                                        CUmemAllocationHandleType type) {
    if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
    Physical* physical = nullptr;
    TTT_EMU_TRY(
        memory().import(static_cast<int>(reinterpret_cast<intptr_t>(os_handle)), &physical));
    *handle = reinterpret_cast<CUmemGenericAllocationHandle>(physical);
    return CUDA_SUCCESS;
}
CUresult cuMemAddressReserve(CUdeviceptr* out, size_t bytes, size_t alignment, CUdeviceptr hint,
                             unsigned long long flags) {
    if (flags != 0 || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    uint64_t address = 0;
    TTT_EMU_TRY(memory().reserve(bytes, alignment, hint, &address));
    return give(out, address);
}
CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes) {
    return memory().unreserve(address, bytes);
}
CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags) {
    Physical* physical = nullptr;
    TTT_EMU_TRY(find_physical(handle, &physical));
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    return memory().map(Gpu::get().current(), address, bytes, offset, physical);
}
CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) { return memory().unmap(address, bytes); }
CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc* access,
                        size_t count) {
    if (access == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; ++i) {
        if (access[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
        TTT_EMU_TRY(need_device(access[i].location.id));
        TTT_EMU_TRY(memory().set_access(address, bytes,
                                        access[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE,
                                        access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    }
    return CUDA_SUCCESS;
}
CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location,
                        CUdeviceptr address) {
    if (location == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto* visible = memory().space().find(address);
    if (memory().find(address) == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (visible == nullptr) return give(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    return give(flags, visible->writable ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                                         : CU_MEM_ACCESS_FLAGS_PROT_READ);
}

}  // namespace ttt::emulator::api
