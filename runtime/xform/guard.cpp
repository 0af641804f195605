#include "xform/guard.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace ttt::xform {
namespace {

bool same_bytes(const ScalarEquals& want, std::span<const std::byte> params) {
    return want.offset <= params.size() && want.bytes.size() <= params.size() - want.offset &&
           (want.bytes.empty() ||
            std::memcmp(params.data() + want.offset, want.bytes.data(), want.bytes.size()) == 0);
}

bool is_aligned(const PointerAligned& want, std::span<const std::byte> params) {
    uint64_t pointer = 0;
    if (params.size() < sizeof pointer || want.offset > params.size() - sizeof pointer)
        return false;
    std::memcpy(&pointer, params.data() + want.offset, sizeof pointer);
    return want.alignment != 0 && pointer % want.alignment == 0;
}

// Small values as the integer a reader expects, anything else as hexadecimal bytes.
std::string value_text(const std::vector<std::byte>& bytes) {
    if (bytes.size() <= sizeof(uint64_t)) {
        uint64_t value = 0;
        std::memcpy(&value, bytes.data(), bytes.size());
        return fmt::format("{}", value);
    }
    std::string out = "0x";
    for (std::byte b : bytes) out += fmt::format("{:02x}", static_cast<unsigned>(b));
    return out;
}

template <typename T, typename Same>
void add_missing(std::vector<T>& into, const std::vector<T>& from, Same same) {
    for (const T& item : from) {
        if (std::none_of(into.begin(), into.end(), [&](const T& x) { return same(x, item); })) {
            into.push_back(item);
        }
    }
}

}  // namespace

bool Guard::holds(const Dim3& g, const Dim3& b, uint32_t shared,
                  std::span<const std::byte> params) const {
    if (grid && !(*grid == g)) return false;
    if (block && !(*block == b)) return false;
    if (dynamic_shared && *dynamic_shared != shared) return false;
    for (const ScalarEquals& want : scalars) {
        if (!same_bytes(want, params)) return false;
    }
    for (const PointerAligned& want : aligned) {
        if (!is_aligned(want, params)) return false;
    }
    return true;
}

std::string Guard::str() const {
    std::vector<std::string> parts;
    if (grid) parts.push_back(fmt::format("grid=({},{},{})", grid->x, grid->y, grid->z));
    if (block) parts.push_back(fmt::format("block=({},{},{})", block->x, block->y, block->z));
    if (dynamic_shared) parts.push_back(fmt::format("shared={}", *dynamic_shared));
    for (const ScalarEquals& s : scalars) {
        parts.push_back(fmt::format("param+{}={}", s.offset, value_text(s.bytes)));
    }
    for (const PointerAligned& a : aligned) {
        parts.push_back(fmt::format("param+{} % {} == 0", a.offset, a.alignment));
    }
    for (const NoOverlap& n : no_overlap) {
        parts.push_back(fmt::format("param+{} apart from param+{}", n.read_offset, n.write_offset));
    }
    return fmt::format("{}", fmt::join(parts, ", "));
}

// Contradicting conditions cannot both hold, so both are kept where the form allows it and an
// impossible one stands in where it does not: a guard that is never true is safe, a dropped
// condition is not.
void Guard::merge(const Guard& other) {
    constexpr Dim3 kNever{0, 0, 0};
    if (other.grid) grid = grid && !(*grid == *other.grid) ? kNever : *other.grid;
    if (other.block) block = block && !(*block == *other.block) ? kNever : *other.block;
    if (other.dynamic_shared) {
        if (dynamic_shared && *dynamic_shared != *other.dynamic_shared) block = kNever;
        dynamic_shared = other.dynamic_shared;
    }
    add_missing(scalars, other.scalars, [](const ScalarEquals& a, const ScalarEquals& b) {
        return a.offset == b.offset && a.bytes == b.bytes;
    });
    add_missing(aligned, other.aligned, [](const PointerAligned& a, const PointerAligned& b) {
        return a.offset == b.offset && a.alignment == b.alignment;
    });
    add_missing(no_overlap, other.no_overlap, [](const NoOverlap& a, const NoOverlap& b) {
        return a.read_offset == b.read_offset && a.write_offset == b.write_offset;
    });
}

}  // namespace ttt::xform
