// Device memory a candidate may touch: one buffer per region of the snapshot, with the program's
// alignment and guard zones on both sides; none for module variables, which lie in a module. Zeroed
// before it is released.
#pragma once

#include <optional>
#include <vector>

#include "measure/snapshot.h"
#include "sandbox/arena.h"
#include "sandbox/driver.h"

namespace ttt::sandbox {

inline constexpr uint64_t kGuardBytes = 4096;

class WorkMemory {
  public:
    static Result<WorkMemory> make(const Driver& driver,
                                   const std::vector<measure::Region>& regions);
    WorkMemory(WorkMemory&& other) noexcept
        : driver_(other.driver_), buffers_(std::move(other.buffers_)) {
        other.buffers_.clear();
    }
    WorkMemory& operator=(WorkMemory&&) = delete;
    ~WorkMemory();

    // Start of each region's buffer: equal to the program's address modulo 4096. 0 where there is
    // none.
    std::vector<uint64_t> bases() const;
    Status fill_guards(unsigned char pattern, CUstream stream) const;
    // Index of the first region with a changed guard byte; nullopt when all are intact.
    Result<std::optional<size_t>> broken_guard(unsigned char pattern) const;

  private:
    struct Buffer {
        CUdeviceptr base = 0;
        uint64_t total = 0, start = 0, bytes = 0;  // start: offset of the region in the buffer
    };
    explicit WorkMemory(const Driver& driver) : driver_(&driver) {}
    const Driver* driver_;
    std::vector<Buffer> buffers_;
};

}  // namespace ttt::sandbox
