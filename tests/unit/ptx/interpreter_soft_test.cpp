// The exact arithmetic against the machine's own, in every rounding the machine has.
#include <gtest/gtest.h>

#include <cfenv>
#include <cmath>
#include <random>

#include "ptx/float_soft.h"

namespace ttt::ptx::soft {
namespace {

constexpr int kModes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};

class Operands {
  public:
    // Random bits, with subnormals, huge values, zeros, powers of two and neighbours of one well
    // represented.
    uint64_t next() {
        const uint64_t x = bits_();
        switch (bits_() % 8) {
            case 0:
                return x & 0x800FFFFFFFFFFFFFull;
            case 1:
                return (x & 0x800FFFFFFFFFFFFFull) | 0x7FE0000000000000ull;
            case 2:
                return x & 0x8000000000000000ull;
            case 3:
                return (x & 0x800FFFFFFFFFFFFFull) | (1020 + bits_() % 8) << 52;
            case 4:
                return x & 0xFFF0000000000000ull;
            default:
                return x;
        }
    }

  private:
    std::mt19937_64 bits_{7};
};

void same(Format f, uint64_t got, uint64_t want, const char* what, uint64_t a, uint64_t b) {
    if (f.is_nan(got) && f.is_nan(want)) return;
    ASSERT_EQ(got, want) << what << " of " << std::hex << a << " and " << b;
}

template <typename T>
void compare(Format f, uint64_t bits_a, uint64_t bits_b, uint64_t bits_c, int m) {
    using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
    const auto a_bits = static_cast<Bits>(bits_a), b_bits = static_cast<Bits>(bits_b),
               c_bits = static_cast<Bits>(bits_c);
    volatile T a = std::bit_cast<T>(a_bits), b = std::bit_cast<T>(b_bits),
               c = std::bit_cast<T>(c_bits);
    std::fesetround(kModes[m]);
    volatile T sum = a + b, product = a * b, quotient = a / b, whole = std::nearbyint(T{a});
    volatile T fused = std::fma(T{a}, T{b}, T{c}), root = std::sqrt(T{a});
    std::fesetround(FE_TONEAREST);
    const auto mode = static_cast<Round>(m);
    same(f, add(f, a_bits, b_bits, mode), bits_of(T{sum}), "sum", a_bits, b_bits);
    same(f, mul(f, a_bits, b_bits, mode), bits_of(T{product}), "product", a_bits, b_bits);
    same(f, div(f, a_bits, b_bits, mode), bits_of(T{quotient}), "quotient", a_bits, b_bits);
    same(f, fma(f, a_bits, b_bits, c_bits, mode), bits_of(T{fused}), "fma", a_bits, b_bits);
    same(f, sqrt(f, a_bits, mode), bits_of(T{root}), "root", a_bits, 0);
    same(f, round_to_integral(f, a_bits, mode), bits_of(T{whole}), "whole", a_bits, 0);
}

TEST(SoftFloat, AgreesWithTheMachine) {
    Operands operands;
    for (int i = 0; i < 200000; ++i) {
        const uint64_t a = operands.next(), b = operands.next(), c = operands.next();
        compare<double>(kF64, a, b, c, i % 4);
        compare<float>(kF32, a, b, c, i % 4);
        volatile double wide = f64_of(a);
        std::fesetround(kModes[i % 4]);
        volatile auto narrow = static_cast<float>(wide);
        std::fesetround(FE_TONEAREST);
        same(kF32, convert(kF64, kF32, a, static_cast<Round>(i % 4)), bits_of(float{narrow}),
             "narrow", a, 0);
        if (HasFatalFailure()) return;
    }
}

TEST(SoftFloat, EveryHalfGoesToFloatAndBack) {
    for (uint32_t h = 0; h < 0x10000; ++h) {
        const float wide = half_to_float(h);
        if (kF16.is_nan(h))
            EXPECT_EQ(bits_of(wide), 0x7FFFFFFFu);
        else
            EXPECT_EQ(float_to_half(wide), h);
    }
}

TEST(SoftFloat, CanonicalNans) {
    EXPECT_EQ(add(kF32, 0x7F800000, 0xFF800000, Round::kNearest), 0x7FFFFFFFu);
    EXPECT_EQ(mul(kF16, 0x7C00, 0, Round::kNearest), 0x7FFFu);
    EXPECT_EQ(sqrt(kF64, 0xBFF0000000000000, Round::kNearest), 0xFFF8000000000000u);
}

}  // namespace
}  // namespace ttt::ptx::soft
