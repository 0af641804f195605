// Changed floating-point input: the same seed always gives the same bytes, whatever the chunking.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ttt::sandbox {

// Perturbs `bytes`, the elements [first_element, …) of a region of floats `width` (2, 4 or 8) bytes
// wide. Odd seeds keep every value finite (scaled by a power of two within ±2, mantissa and sign
// changed); even ones also plant NaNs with payloads, infinities, signed zeros and denormals. A
// trailing part of an element is left alone.
void perturb(std::span<std::byte> bytes, unsigned width, uint64_t seed, uint64_t first_element);

}  // namespace ttt::sandbox
