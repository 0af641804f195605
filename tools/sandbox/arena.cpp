#include "sandbox/arena.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

namespace ttt::sandbox {

Result<Arena> Arena::import(const Driver& driver, CUdevice device, Fd fd, uint64_t bytes,
                            bool host) {
    if (bytes == 0) return make_error(Code::kProtocol, "empty arena");
    Arena a(driver, bytes);
    TTT_CHECK_OK(host ? a.map_host(fd) : a.map_device(device, fd));
    return a;
}

Arena& Arena::operator=(Arena&& o) noexcept {
    if (this == &o) return *this;
    release();
    driver_ = o.driver_;
    bytes_ = o.bytes_;
    device_ = std::exchange(o.device_, 0);
    handle_ = o.handle_;
    mapped_ = std::exchange(o.mapped_, false);
    held_ = std::exchange(o.held_, false);
    host_ = std::exchange(o.host_, nullptr);
    copy_ = std::move(o.copy_);
    return *this;
}

Status Arena::map_host(const Fd& fd) {
    struct stat st {};
    if (::fstat(fd.get(), &st) != 0 || !S_ISREG(st.st_mode) ||
        static_cast<uint64_t>(st.st_size) < bytes_)
        return make_error(Code::kProtocol, "host arena is smaller than announced");
    void* at = ::mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, fd.get(), 0);
    if (at == MAP_FAILED) return make_error(Code::kIo, "cannot map the host arena");
    host_ = static_cast<const std::byte*>(at);
    TTT_TRY(copy_, DeviceBytes::make(*driver_, bytes_, 0));
    return driver_->check(driver_->cuMemcpyHtoD_v2(copy_.at(), host_, bytes_),
                          "copying the host arena");
}

Status Arena::map_device(CUdevice device, const Fd& fd) {
    const Driver& d = *driver_;
    auto* os_handle = reinterpret_cast<void*>(static_cast<intptr_t>(fd.get()));
    TTT_CHECK_OK(d.check(d.cuMemImportFromShareableHandle(&handle_, os_handle,
                                                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
                         "importing the arena"));
    held_ = true;
    TTT_CHECK_OK(d.check(d.cuMemAddressReserve(&device_, bytes_, 0, 0, 0), "reserving addresses"));
    TTT_CHECK_OK(d.check(d.cuMemMap(device_, bytes_, 0, handle_, 0), "mapping the arena"));
    mapped_ = true;
    CUmemAccessDesc access{};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = device;
    // Read only where the driver has it: a stray store of a candidate must not change the evidence.
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
    if (d.cuMemSetAccess(device_, bytes_, &access, 1) == CUDA_SUCCESS) return ok_status();
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return d.check(d.cuMemSetAccess(device_, bytes_, &access, 1), "opening the arena");
}

void Arena::release() {
    if (host_ != nullptr) ::munmap(const_cast<std::byte*>(host_), bytes_);
    if (mapped_) driver_->cuMemUnmap(device_, bytes_);
    if (device_ != 0) driver_->cuMemAddressFree(device_, bytes_);
    if (held_) driver_->cuMemRelease(handle_);
    host_ = nullptr;
    device_ = 0;
    mapped_ = held_ = false;
}

Status Arena::to_device(CUdeviceptr to, uint64_t offset, uint64_t count, CUstream stream) const {
    const Driver& d = *driver_;
    if (host_ != nullptr)
        return d.check(d.cuMemcpyHtoD_v2(to, host_ + offset, count), "filling from the host arena");
    return d.check(d.cuMemcpyDtoDAsync_v2(to, device_ + offset, count, stream),
                   "filling from the arena");
}

Status Arena::to_host(std::span<std::byte> to, uint64_t offset) const {
    const Driver& d = *driver_;
    if (host_ != nullptr) {
        std::copy_n(host_ + offset, to.size(), to.data());
        return ok_status();
    }
    return d.check(d.cuMemcpyDtoH_v2(to.data(), device_ + offset, to.size()), "reading the arena");
}

}  // namespace ttt::sandbox
