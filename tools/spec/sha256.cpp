#include "spec/sha256.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "spec/launch_spec.h"

namespace ttt::spec {
namespace {

// The constants are defined as fraction bits of roots of the first primes, so they are computed,
// not listed.
struct Constants {
    std::array<uint32_t, 64> k{};
    std::array<uint32_t, 8> h{};
    Constants() {
        unsigned found = 0;
        for (unsigned n = 2; found < 64; ++n) {
            bool prime = true;
            for (unsigned d = 2; d * d <= n; ++d) prime = prime && n % d != 0;
            if (!prime) continue;
            k[found] = root_fraction(n, 3);
            if (found < 8) h[found] = root_fraction(n, 2);
            ++found;
        }
    }
    // The largest x (in units of 2⁻³²) with x^power <= n, by bisection in exact integers.
    static uint32_t root_fraction(unsigned n, unsigned power) {
        unsigned __int128 lo = 0, hi = uint64_t{32} << 32;
        while (hi - lo > 1) {
            const unsigned __int128 mid = (lo + hi) / 2;
            if (at_most(mid, n, power))
                lo = mid;
            else
                hi = mid;
        }
        return static_cast<uint32_t>(lo);
    }
    static bool at_most(unsigned __int128 x, unsigned n, unsigned power) {
        const unsigned __int128 square = x * x;  // below 2^74
        if (power == 2) return square <= static_cast<unsigned __int128>(n) << 64;
        // x³ needs up to 111 bits: x < 2^37.
        return square * x <= static_cast<unsigned __int128>(n) << 96;
    }
};

void compress(std::array<uint32_t, 8>& h, const std::byte* block,
              const std::array<uint32_t, 64>& k) {
    uint32_t w[64];
    for (unsigned i = 0; i < 16; ++i) {
        w[i] = 0;
        for (unsigned b = 0; b < 4; ++b) w[i] = w[i] << 8 | static_cast<uint32_t>(block[4 * i + b]);
    }
    for (unsigned i = 16; i < 64; ++i) {
        const uint32_t a = w[i - 15], b = w[i - 2];
        const uint32_t s0 = std::rotr(a, 7) ^ std::rotr(a, 18) ^ (a >> 3);
        const uint32_t s1 = std::rotr(b, 17) ^ std::rotr(b, 19) ^ (b >> 10);
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    std::array<uint32_t, 8> s = h;
    for (unsigned i = 0; i < 64; ++i) {
        const uint32_t s1 = std::rotr(s[4], 6) ^ std::rotr(s[4], 11) ^ std::rotr(s[4], 25);
        const uint32_t choose = (s[4] & s[5]) ^ (~s[4] & s[6]);
        const uint32_t t1 = s[7] + s1 + choose + k[i] + w[i];
        const uint32_t s0 = std::rotr(s[0], 2) ^ std::rotr(s[0], 13) ^ std::rotr(s[0], 22);
        const uint32_t majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
        for (unsigned j = 7; j > 0; --j) s[j] = s[j - 1];
        s[4] += t1;
        s[0] = t1 + s0 + majority;
    }
    for (unsigned i = 0; i < 8; ++i) h[i] += s[i];
}

}  // namespace

std::string sha256_hex(std::span<const std::byte> bytes) {
    static const Constants constants;
    std::array<uint32_t, 8> h = constants.h;
    const size_t whole = bytes.size() / 64 * 64;
    for (size_t at = 0; at < whole; at += 64) compress(h, bytes.data() + at, constants.k);
    std::byte tail[128] = {};
    const size_t rest = bytes.size() - whole;
    if (rest != 0) std::memcpy(tail, bytes.data() + whole, rest);
    tail[rest] = std::byte{0x80};
    const size_t tail_bytes = rest < 56 ? 64 : 128;
    const uint64_t bits = uint64_t{bytes.size()} * 8;
    for (unsigned i = 0; i < 8; ++i)
        tail[tail_bytes - 1 - i] = static_cast<std::byte>(bits >> (8 * i) & 0xFF);
    for (size_t at = 0; at < tail_bytes; at += 64) compress(h, tail + at, constants.k);
    std::byte digest[32];
    for (unsigned i = 0; i < 32; ++i)
        digest[i] = static_cast<std::byte>(h[i / 4] >> (24 - 8 * (i % 4)) & 0xFF);
    return to_hex(digest);
}

}  // namespace ttt::spec
