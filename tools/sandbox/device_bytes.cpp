#include "sandbox/device_bytes.h"

#include <utility>

namespace ttt::sandbox {
namespace {
constexpr uint64_t kAlignment = 256;  // of every allocation
}

Result<DeviceBytes> DeviceBytes::make(const Driver& d, uint64_t bytes, uint64_t like) {
    DeviceBytes b;
    b.driver_ = &d;
    b.start_ = like % kAlignment;
    b.total_ = b.start_ + bytes;
    TTT_CHECK_OK(d.check(d.cuMemAlloc_v2(&b.base_, b.total_), "memory for expected results"));
    return b;
}

DeviceBytes& DeviceBytes::operator=(DeviceBytes&& o) noexcept {
    if (this == &o) return *this;
    release();
    driver_ = o.driver_;
    base_ = std::exchange(o.base_, 0);
    start_ = o.start_;
    total_ = o.total_;
    return *this;
}

void DeviceBytes::release() {
    if (base_ == 0) return;
    driver_->cuMemsetD8Async(base_, 0, total_, nullptr);
    driver_->cuMemFree_v2(base_);  // waits for the memset
    base_ = 0;
}

}  // namespace ttt::sandbox
