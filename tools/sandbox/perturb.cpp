#include "sandbox/perturb.h"

#include <algorithm>
#include <cstring>

#include "base/hash.h"

namespace ttt::sandbox {
namespace {

struct Format {
    unsigned mantissa;  // bits
    unsigned exponent;  // bits
    uint64_t mantissa_mask() const { return (uint64_t{1} << mantissa) - 1; }
    uint64_t exponent_mask() const { return (uint64_t{1} << exponent) - 1; }
    uint64_t make(uint64_t sign, uint64_t exp, uint64_t man) const {
        return (sign & 1) << (mantissa + exponent) | (exp & exponent_mask()) << mantissa |
               (man & mantissa_mask());
    }
};

uint64_t special(const Format& f, uint64_t h) {
    const uint64_t sign = h >> 8 & 1, man = h >> 9;
    switch (h % 5) {
        case 0:
            return f.make(sign, f.exponent_mask(), man | 1);  // NaN with a payload
        case 1:
            return f.make(sign, f.exponent_mask(), 0);  // infinity
        case 2:
            return f.make(sign, 0, man | 1);  // denormal
        case 3:
            return f.make(sign, f.exponent_mask() - 1, man);  // near overflow
        default:
            return f.make(sign, 0, 0);  // signed zero
    }
}

uint64_t changed(const Format& f, uint64_t value, uint64_t h, bool specials) {
    if (specials && (h >> 32) % 16 == 0) return special(f, h);
    const uint64_t exp = value >> f.mantissa & f.exponent_mask();
    if (exp == f.exponent_mask()) return value;  // NaN and infinity stay
    if (exp == 0) return (h & 3) == 0 ? f.make(h >> 2, f.exponent_mask() / 2, h >> 8) : value;
    const uint64_t top = f.exponent_mask() - 1;
    const uint64_t shifted = std::clamp<uint64_t>(exp + (h & 3), 2, top + 1) - 1;
    const uint64_t sign = (value >> (f.mantissa + f.exponent) & 1) ^ ((h >> 3 & 7) == 0 ? 1 : 0);
    return f.make(sign, shifted, value ^ (h >> 8));
}

}  // namespace

void perturb(std::span<std::byte> bytes, unsigned width, uint64_t seed, uint64_t first_element) {
    if (width != 2 && width != 4 && width != 8) return;
    const Format f = width == 2 ? Format{10, 5} : width == 4 ? Format{23, 8} : Format{52, 11};
    const bool specials = seed % 2 == 0;
    for (size_t i = 0; i + width <= bytes.size(); i += width) {
        uint64_t value = 0;
        std::memcpy(&value, bytes.data() + i, width);
        value = changed(
            f, value, splitmix64(seed * 0x9E3779B97F4A7C15u + first_element + i / width), specials);
        std::memcpy(bytes.data() + i, &value, width);
    }
}

}  // namespace ttt::sandbox
