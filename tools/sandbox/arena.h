// The snapshot's bytes as they came from the program: imported device memory, or a host memfd. Read
// only.
#pragma once

#include <span>

#include "base/fd.h"
#include "base/result.h"
#include "sandbox/device_bytes.h"
#include "sandbox/driver.h"

namespace ttt::sandbox {

class Arena {
  public:
    // Takes the descriptor. kProtocol when a host arena is smaller than `bytes` claims.
    static Result<Arena> import(const Driver& driver, CUdevice device, Fd fd, uint64_t bytes,
                                bool host);
    Arena(Arena&& other) noexcept { *this = std::move(other); }
    Arena& operator=(Arena&& other) noexcept;
    ~Arena() { release(); }

    uint64_t bytes() const { return bytes_; }
    // Preconditions: offset + count within bytes().
    Status to_device(CUdeviceptr to, uint64_t offset, uint64_t count, CUstream stream) const;
    Status to_host(std::span<std::byte> to, uint64_t offset) const;
    // Where the bytes at `offset` can be read on the device. Of a host arena that is a copy, which
    // a stray store can reach: what differs there is to be looked at with to_host().
    CUdeviceptr device_at(uint64_t offset) const {
        return (host_ != nullptr ? copy_.at() : device_) + offset;
    }

  private:
    Arena(const Driver& driver, uint64_t bytes) : driver_(&driver), bytes_(bytes) {}
    Status map_device(CUdevice device, const Fd& fd);
    Status map_host(const Fd& fd);
    void release();

    const Driver* driver_ = nullptr;
    uint64_t bytes_ = 0;
    CUdeviceptr device_ = 0;
    CUmemGenericAllocationHandle handle_ = 0;
    bool mapped_ = false, held_ = false;
    const std::byte* host_ = nullptr;
    DeviceBytes copy_;  // of a host arena
};

}  // namespace ttt::sandbox
