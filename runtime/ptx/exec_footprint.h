// Bytes (or other units) of device memory that a launch touched, one bit each, in pages made on
// demand.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ptx/interpreter.h"

namespace ttt::ptx::exec {

class TouchedBytes {
  public:
    void add(uint64_t address, uint32_t bytes) {
        const uint64_t page = address / kPageBytes;
        if (page != last_ || page_ == nullptr) select(page);
        const auto at = static_cast<uint32_t>(address % kPageBytes);
        if (at + bytes > kPageBytes || at / 64 != (at + bytes - 1) / 64) {
            add_slow(address, bytes);
            return;
        }
        const uint64_t bits = bytes >= 64 ? ~uint64_t{0} : ((uint64_t{1} << bytes) - 1);
        (*page_)[at / 64] |= bits << (at % 64);
    }
    // The bits of `mask`, from `unit` on; they lie within one aligned group of 64.
    void add_mask(uint64_t unit, uint64_t mask) {
        const uint64_t page = unit / kPageBytes;
        if (page != last_ || page_ == nullptr) select(page);
        const auto at = static_cast<uint32_t>(unit % kPageBytes);
        (*page_)[at / 64] |= mask << (at % 64);
    }
    uint64_t count() const;
    // Takes over what `other` holds.
    void merge(const TouchedBytes& other);
    std::vector<Footprint::Range> ranges() const;

  private:
    static constexpr uint64_t kPageBytes = 4096;
    static constexpr size_t kRecent = 16;
    using Page = std::array<uint64_t, kPageBytes / 64>;
    void select(uint64_t page);
    void add_slow(uint64_t address, uint32_t bytes);
    std::unordered_map<uint64_t, std::unique_ptr<Page>> pages_;
    uint64_t last_ = 0;
    Page* page_ = nullptr;
    // A kernel walks several arrays in turn: their pages, by the low bits of the number.
    std::array<std::pair<uint64_t, Page*>, kRecent> recent_ = {};
};

}  // namespace ttt::ptx::exec
