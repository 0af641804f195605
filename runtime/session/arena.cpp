#include "session/arena.h"

namespace ttt::session {
namespace {

CUmemAllocationProp exportable(CUdevice device) {
    CUmemAllocationProp p{};
    p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    p.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    p.location.id = device;
    return p;
}

bool map(const Driver& d, CUdevice device, Arena& a) {
    CUdeviceptr base = 0;
    if (d.cuMemAddressReserve(&base, a.bytes, 0, 0, 0) != CUDA_SUCCESS) return false;
    a.base = base;
    CUmemAccessDesc access{};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = device;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    if (d.cuMemMap(base, a.bytes, 0, a.handle, 0) == CUDA_SUCCESS) {
        if (d.cuMemSetAccess(base, a.bytes, &access, 1) == CUDA_SUCCESS) return true;
        d.cuMemUnmap(base, a.bytes);
    }
    d.cuMemAddressFree(base, a.bytes);
    a.base = 0;
    return false;
}

bool make_vmm(const Driver& d, CUdevice device, uint64_t bytes, Arena& a) {
    if (!d.cuMemCreate || !d.cuMemRelease || !d.cuMemExportToShareableHandle ||
        !d.cuMemGetAllocationGranularity || !d.cuMemAddressReserve || !d.cuMemAddressFree ||
        !d.cuMemMap || !d.cuMemUnmap || !d.cuMemSetAccess)
        return false;
    const CUmemAllocationProp prop = exportable(device);
    size_t granularity = 0;
    if (d.cuMemGetAllocationGranularity(&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM) !=
            CUDA_SUCCESS ||
        granularity == 0)
        return false;
    a.bytes = (bytes + granularity - 1) / granularity * granularity;
    if (d.cuMemCreate(&a.handle, a.bytes, &prop, 0) != CUDA_SUCCESS) return false;
    int fd = -1;
    if (d.cuMemExportToShareableHandle(&fd, a.handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                       0) == CUDA_SUCCESS &&
        fd >= 0 && map(d, device, a)) {
        a.exported.reset(fd);
        a.vmm = true;
        return true;
    }
    if (fd >= 0) ::close(fd);
    d.cuMemRelease(a.handle);
    return false;
}

}  // namespace

uint64_t place_in_arena(uint64_t* cursor, uint64_t address, uint64_t bytes) {
    constexpr uint64_t kAlign = 256;
    const uint64_t offset = (*cursor + kAlign - 1) / kAlign * kAlign + address % kAlign;
    *cursor = offset + bytes;
    return offset;
}

Result<Arena> make_arena(const Driver& d, CUdevice device, uint64_t bytes, bool vmm_export) {
    Arena a;
    if (vmm_export && make_vmm(d, device, bytes, a)) return a;
    CUdeviceptr base = 0;
    if (d.cuMemAlloc_v2(&base, bytes) != CUDA_SUCCESS)
        return make_error(Code::kExhausted, "no device memory for the snapshot");
    a = Arena{};
    a.base = base;
    a.bytes = bytes;
    return a;
}

void destroy_arena(const Driver& d, Arena& a, CUstream stream) {
    if (a.base == 0) return;
    if (d.cuMemsetD8Async(a.base, 0, a.bytes, stream) == CUDA_SUCCESS)
        d.cuStreamSynchronize(stream);
    if (a.vmm) {
        d.cuMemUnmap(a.base, a.bytes);
        d.cuMemAddressFree(a.base, a.bytes);
        d.cuMemRelease(a.handle);
    } else {
        d.cuMemFree_v2(a.base);
    }
    a = Arena{};
}

}  // namespace ttt::session
