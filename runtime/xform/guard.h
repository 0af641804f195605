// The conditions under which a variant equals the original. Checked at every launch by the session:
// plain data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/dim3.h"

namespace ttt::xform {

struct ScalarEquals {
    uint32_t offset;
    std::vector<std::byte> bytes;
};  // parameter bytes at offset
struct PointerAligned {
    uint32_t offset;
    uint32_t alignment;
};  // 8-byte pointer at offset
struct NoOverlap {
    uint32_t read_offset, write_offset;
};  // allocations behind two pointers are distinct

struct Guard {
    std::optional<Dim3> grid, block;
    std::optional<uint32_t> dynamic_shared;
    std::vector<ScalarEquals> scalars;
    std::vector<PointerAligned> aligned;
    std::vector<NoOverlap> no_overlap;

    // Everything but no_overlap, which needs the session's allocation table.
    bool holds(const Dim3& g, const Dim3& b, uint32_t shared,
               std::span<const std::byte> params) const;
    std::string str() const;  // "n=1024, block=(256,1,1), p0 % 16 == 0"
    void merge(const Guard& other);
};

}  // namespace ttt::xform
