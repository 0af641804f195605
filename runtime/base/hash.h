// 128-bit content hashes (XXH3): identities of kernels, sites, recipes. Not cryptographic.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ttt {

struct Hash128 {
    uint64_t hi = 0, lo = 0;
    friend bool operator==(const Hash128&, const Hash128&) = default;
    friend auto operator<=>(const Hash128&, const Hash128&) = default;
    std::string hex() const;  // 32 lower-case digits
};

Hash128 hash_bytes(std::span<const std::byte> bytes, uint64_t seed = 0);
Hash128 hash_text(std::string_view text, uint64_t seed = 0);
Hash128 hash_combine(Hash128 a, Hash128 b);

// splitmix64 of one value: the generator behind launch-spec fills and every seeded test.
uint64_t splitmix64(uint64_t x);

}  // namespace ttt
