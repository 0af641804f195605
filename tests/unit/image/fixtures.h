// Committed fixtures and hand-made fat binaries for the image tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace ttt::image::test {

using Blob = std::vector<std::byte>;

inline Blob read_file(const std::string& name) {
    std::ifstream file(std::string(TTT_SOURCE_DIR) + "/tests/data/image/" + name, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    Blob out(text.size());
    if (!text.empty()) std::memcpy(out.data(), text.data(), text.size());
    return out;
}

inline std::string text_of(const Blob& blob) {
    return {reinterpret_cast<const char*>(blob.data()), blob.size()};
}

template <typename T>
void put(Blob& blob, size_t offset, T value) {
    if (blob.size() < offset + sizeof value) blob.resize(offset + sizeof value);
    std::memcpy(blob.data() + offset, &value, sizeof value);
}

// A fat binary of one entry whose header fields the caller then bends.
inline Blob one_entry(uint16_t kind, uint32_t arch, uint64_t flags, const std::string& payload,
                      uint32_t packed = 0, uint64_t unpacked = 0) {
    Blob b;
    put<uint32_t>(b, 0, 0xBA55ED50);
    put<uint16_t>(b, 4, 1);
    put<uint16_t>(b, 6, 16);
    put<uint64_t>(b, 8, 64 + payload.size());
    put<uint16_t>(b, 16, kind);
    put<uint16_t>(b, 18, 0x101);
    put<uint32_t>(b, 20, 64);
    put<uint64_t>(b, 24, payload.size());
    put<uint32_t>(b, 32, packed);
    put<uint32_t>(b, 36, 0);
    put<uint32_t>(b, 44, arch);
    put<uint64_t>(b, 48, 0);
    put<uint64_t>(b, 56, flags);
    put<uint64_t>(b, 64, 0);
    put<uint64_t>(b, 72, unpacked);
    const size_t at = b.size();
    b.resize(at + payload.size());
    std::memcpy(b.data() + at, payload.data(), payload.size());
    return b;
}

}  // namespace ttt::image::test
