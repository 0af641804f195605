// Bounds-checked little-endian reads from foreign bytes. Internal to runtime/image.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace ttt::image {

using Bytes = std::span<const std::byte>;

// False when [offset, offset + sizeof(T)) is not inside `bytes`; `out` is then untouched.
template <typename T>
bool load(Bytes bytes, uint64_t offset, T& out) {
    if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return false;
    std::memcpy(&out, bytes.data() + offset, sizeof(T));
    return true;
}

// As load, but zero for bytes outside: for optional header fields.
template <typename T>
T load_or_zero(Bytes bytes, uint64_t offset) {
    T out{};
    load(bytes, offset, out);
    return out;
}

// False when the range is not inside `bytes` (also when offset + size would overflow).
inline bool slice(Bytes bytes, uint64_t offset, uint64_t size, Bytes& out) {
    if (offset > bytes.size() || bytes.size() - offset < size) return false;
    out = bytes.subspan(static_cast<size_t>(offset), static_cast<size_t>(size));
    return true;
}

inline std::string_view as_text(Bytes bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace ttt::image
