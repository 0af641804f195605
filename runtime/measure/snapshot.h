// One recorded launch, as plain data that travels between the processes: where its bytes lie in the
// arena and how its pointers map to them. No CUDA headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/dim3.h"

namespace ttt::measure {

inline constexpr uint64_t kNoBytes = ~uint64_t{0};

struct Region {            // one allocation or module variable that the launch can reach
    uint64_t address = 0;  // device address in the program (start of the recorded bytes)
    uint64_t bytes = 0;
    uint64_t pre_offset = 0;          // in the arena
    uint64_t post_offset = kNoBytes;  // kNoBytes: the launch cannot write it
    bool read = true, written = false;
    std::vector<uint32_t> pointers;  // offsets in the parameter buffer of pointers into this region
    // Name of the module variable that it is; then no pointers, never written.
    std::string variable{};
};

struct Launch {
    Dim3 grid, block;
    uint32_t dynamic_shared = 0;
    std::vector<std::byte> params;
};

struct Snapshot {
    Launch launch;
    std::vector<Region> regions;
    uint64_t arena_bytes = 0;
};

// Parameter buffer with every pointer of `regions` moved by new_base[i] - region[i].address.
std::vector<std::byte> relocate(const Launch& launch, const std::vector<Region>& regions,
                                const std::vector<uint64_t>& new_base);

}  // namespace ttt::measure
