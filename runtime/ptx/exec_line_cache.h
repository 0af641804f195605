// A first-level cache as one block sees it: which 32-byte sectors of 128-byte lines it holds.
// Direct-mapped, and private to the block, so that counts do not depend on which host thread runs
// what. Internal to the interpreter.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace ttt::ptx::exec {

inline constexpr uint32_t kLineBytes = 128, kSectorBytes = 32;

class LineCache {
  public:
    // Of the sectors in `wanted` (one bit each), those that were not here. They are from now on.
    uint32_t miss(uint64_t line, uint32_t wanted) {
        Entry& e = entries_[(line ^ (line >> 10)) % kLines];
        const uint64_t tag = generation_ << kLineBits | line;
        if (e.tag != tag) e = {tag, 0};
        const uint32_t cold = wanted & ~e.sectors;
        e.sectors |= wanted;
        return cold;
    }
    // Forgets everything.
    void restart() {
        if (++generation_ >> (64 - kLineBits) == 0) return;
        entries_ = {};
        generation_ = 1;
    }

  private:
    // 128 KiB: half of an H200's, whose blocks share it with shared memory and with each other.
    static constexpr size_t kLines = 1024;
    static constexpr uint32_t kLineBits = 42;  // 49-bit addresses
    struct Entry {
        uint64_t tag = 0;
        uint32_t sectors = 0;
    };
    std::array<Entry, kLines> entries_ = {};
    uint64_t generation_ = 0;
};

// An empty one: one of `spare`, or a fresh one.
inline std::unique_ptr<LineCache> take_line_cache(std::vector<std::unique_ptr<LineCache>>& spare) {
    std::unique_ptr<LineCache> cache;
    if (spare.empty()) {
        cache = std::make_unique<LineCache>();
    } else {
        cache = std::move(spare.back());
        spare.pop_back();
    }
    cache->restart();
    return cache;
}

}  // namespace ttt::ptx::exec
