#include "sandbox/work_memory.h"

#include <algorithm>

namespace ttt::sandbox {
namespace {

constexpr uint64_t kAlignment = 4096;

bool all_equal(const std::vector<unsigned char>& bytes, unsigned char pattern) {
    return std::all_of(bytes.begin(), bytes.end(), [&](unsigned char b) { return b == pattern; });
}

}  // namespace

Result<WorkMemory> WorkMemory::make(const Driver& d, const std::vector<measure::Region>& regions) {
    WorkMemory w(d);
    for (const measure::Region& r : regions) {
        if (!r.variable.empty()) {
            w.buffers_.push_back({});
            continue;
        }
        Buffer b;
        b.bytes = r.bytes;
        b.total = r.bytes + 2 * kGuardBytes + 2 * kAlignment;
        TTT_CHECK_OK(d.check(d.cuMemAlloc_v2(&b.base, b.total), "memory for a replay"));
        w.buffers_.push_back(b);
        const uint64_t earliest = b.base + kGuardBytes;
        w.buffers_.back().start =
            earliest + (r.address - earliest) % kAlignment - b.base;  // unsigned wrap is meant
    }
    return w;
}

WorkMemory::~WorkMemory() {
    for (const Buffer& b : buffers_) {
        if (b.base == 0) continue;
        driver_->cuMemsetD8Async(b.base, 0, b.total, nullptr);
        driver_->cuMemFree_v2(b.base);  // waits for the memset
    }
}

std::vector<uint64_t> WorkMemory::bases() const {
    std::vector<uint64_t> out;
    for (const Buffer& b : buffers_) out.push_back(b.base + b.start);
    return out;
}

Status WorkMemory::fill_guards(unsigned char pattern, CUstream stream) const {
    for (const Buffer& b : buffers_) {
        if (b.base == 0) continue;
        const uint64_t end = b.start + b.bytes;
        TTT_CHECK_OK(driver_->check(driver_->cuMemsetD8Async(b.base, pattern, b.start, stream),
                                    "filling a guard zone"));
        TTT_CHECK_OK(
            driver_->check(driver_->cuMemsetD8Async(b.base + end, pattern, b.total - end, stream),
                           "filling a guard zone"));
    }
    return ok_status();
}

Result<std::optional<size_t>> WorkMemory::broken_guard(unsigned char pattern) const {
    for (size_t i = 0; i < buffers_.size(); ++i) {
        const Buffer& b = buffers_[i];
        if (b.base == 0) continue;
        const uint64_t end = b.start + b.bytes;
        std::vector<unsigned char> before(b.start), after(b.total - end);
        TTT_CHECK_OK(driver_->check(driver_->cuMemcpyDtoH_v2(before.data(), b.base, before.size()),
                                    "reading a guard"));
        TTT_CHECK_OK(driver_->check(
            driver_->cuMemcpyDtoH_v2(after.data(), b.base + end, after.size()), "reading a guard"));
        if (!all_equal(before, pattern) || !all_equal(after, pattern)) return std::optional(i);
    }
    return std::optional<size_t>();
}

}  // namespace ttt::sandbox
