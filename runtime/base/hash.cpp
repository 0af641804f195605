#include "base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstdio>

namespace ttt {

std::string Hash128::hex() const {
    char text[33];
    std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(hi),
                  static_cast<unsigned long long>(lo));
    return text;
}

Hash128 hash_bytes(std::span<const std::byte> bytes, uint64_t seed) {
    const XXH128_hash_t h = XXH3_128bits_withSeed(bytes.data(), bytes.size(), seed);
    return {h.high64, h.low64};
}

Hash128 hash_text(std::string_view text, uint64_t seed) {
    return hash_bytes(std::as_bytes(std::span(text.data(), text.size())), seed);
}

Hash128 hash_combine(Hash128 a, Hash128 b) {
    const uint64_t words[4] = {a.hi, a.lo, b.hi, b.lo};
    return hash_bytes(std::as_bytes(std::span(words)));
}

uint64_t splitmix64(uint64_t x) {
    x += 0x9E3779B97F4A7C15ull;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
}

}  // namespace ttt
