// Device memory of the sandbox's own, zeroed before it is released: the program's data pass through
// it.
#pragma once

#include "base/result.h"
#include "sandbox/driver.h"

namespace ttt::sandbox {

class DeviceBytes {
  public:
    DeviceBytes() = default;
    // `bytes` of memory whose address equals `like` modulo 256, so that both can be read in the
    // same steps.
    static Result<DeviceBytes> make(const Driver& driver, uint64_t bytes, uint64_t like);
    DeviceBytes(DeviceBytes&& other) noexcept { *this = std::move(other); }
    DeviceBytes& operator=(DeviceBytes&& other) noexcept;
    ~DeviceBytes() { release(); }

    bool valid() const { return base_ != 0; }
    CUdeviceptr at() const { return base_ + start_; }

  private:
    void release();
    const Driver* driver_ = nullptr;
    CUdeviceptr base_ = 0;
    uint64_t start_ = 0, total_ = 0;
};

}  // namespace ttt::sandbox
