// The program's allocations, kept by the hooks on the program's own threads. Locked among those
// threads only: our thread never takes the lock, so no entry point can wait for it.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>

namespace ttt::session {

enum class MemoryKind : uint8_t { kDevice, kAsync, kVmm, kManaged, kHost, kForeign };

struct Allocation {
    uint64_t base = 0, bytes = 0;
    MemoryKind kind = MemoryKind::kDevice;
    uint64_t end() const { return base + bytes; }
    // Ordinary memory of the device: what a snapshot may copy (rules: managed, host, peer and
    // imported are not).
    bool device_memory() const { return kind <= MemoryKind::kVmm; }
};

class Allocations {
  public:
    void add(uint64_t base, uint64_t bytes, MemoryKind kind);
    void remove(uint64_t base);
    // Everything inside [base, base + bytes): unmapping removes several mappings at once.
    void remove_range(uint64_t base, uint64_t bytes);
    // Device memory of one context is gone with it; which allocation belonged to it is not
    // recorded, so all go.
    void clear();
    // The allocation that contains `address`; false if none is known.
    bool find(uint64_t address, Allocation* out) const;
    // Changes whenever the table does: lets a launch cache an answer.
    uint64_t generation() const { return generation_.load(std::memory_order_acquire); }
    size_t size() const;

  private:
    mutable std::mutex mutex_;
    std::map<uint64_t, Allocation> by_base_;
    std::atomic<uint64_t> generation_{1};
};

}  // namespace ttt::session
