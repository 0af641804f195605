// Compares device memory on the device, so that a replay of hundreds of megabytes does not wait for
// the bus. Says only where two ranges first differ, to 16 bytes; the evidence is the host's to
// collect. One thread.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "sandbox/driver.h"

namespace ttt::sandbox {

class DeviceCompare {
  public:
    static constexpr uint64_t kEqual = ~uint64_t{0};
    struct Ranges {
        CUdeviceptr found = 0, expected = 0;
        uint64_t bytes = 0;
    };

    static Result<std::unique_ptr<DeviceCompare>> make(const Driver& driver);
    ~DeviceCompare();
    DeviceCompare(const DeviceCompare&) = delete;
    DeviceCompare& operator=(const DeviceCompare&) = delete;

    // Per pair of ranges: an offset no differing byte lies below, kEqual when there is none. Waits
    // for the stream once, whatever the number of ranges.
    Result<std::vector<uint64_t>> first_differences(std::span<const Ranges> pairs, CUstream stream);

  private:
    explicit DeviceCompare(const Driver& driver) : driver_(driver) {}
    Status compare(const Ranges& r, CUdeviceptr result, CUstream stream) const;
    Status launch(CUfunction f, const Ranges& r, uint64_t offset, uint64_t units,
                  CUdeviceptr result, CUstream stream) const;
    Status reserve(size_t results);

    const Driver& driver_;
    CUmodule module_ = nullptr;
    CUfunction by_vector_ = nullptr, by_byte_ = nullptr;
    CUdeviceptr results_ = 0;
    size_t room_ = 0;
};

}  // namespace ttt::sandbox
