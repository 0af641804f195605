// Integer division and remainder by a literal as multiplication and shifts. The assembler leaves
// them as the long sequence for an unknown divisor: a compiler's front end does this, and
// a divisor that became a literal only now has missed it.
//
// Applies to div and rem of u32, s32, u64 and s64 whose divisor is a literal but 0, and whose
// numerator is a register. Left alone: 16-bit forms; a divisor of 0; a remainder by 1 or -1, whose
// result is the constant 0 (the assembler's business, which specialise has looked ahead to).
// The machine's wrap-round is kept: the least value over -1 is itself.
//
// Unsigned (Granlund and Montgomery, "Division by invariant integers using multiplication", 1994,
// theorem 4.2; Hacker's Delight, chapter 10): for 0 <= n < 2^w and 0 < d,
//   if  2^(N+s) <= m*d <= 2^(N+s) + 2^(N+s-w)  then  floor(n/d) = floor(m*n / 2^(N+s)).
// Signed (theorem 5.1): for -2^(N-1) <= n < 2^(N-1), 0 < d and s >= 0,
//   if  2^(N+s) < m*d <= 2^(N+s) + 2^(s+1)  then  n/d, rounded towards 0, = floor(m*n / 2^(N+s))
//   + (n < 0).
// A negative divisor negates the quotient; the remainder is n - q*d.
#pragma once

#include <cstdint>

#include "ptx/ir.h"
#include "xform/transforms/ranges.h"

namespace ttt::xform {

struct Multiplier {
    uint64_t factor = 0;  // low N bits of m
    uint32_t shift = 0;   // s
    bool extra = false;   // m has bit N as well (unsigned) or bit N-1 (signed: reads as m - 2^N)
};

// The least s, and its m, for N = `bits` <= 64 and w = `numerator_bits` <= N. Precondition:
// `divisor` is no power of two, and below 2^N (signed: below 2^(N-1)).
Multiplier unsigned_multiplier(uint32_t bits, uint64_t divisor, uint32_t numerator_bits);
Multiplier signed_multiplier(uint32_t bits, uint64_t divisor);

// Rewrites them in one function and returns how many. Where `ranges` (may be null) shows that a
// numerator is not negative, or fits in 32 bits, the shorter sequence for that is taken, and
// `*used_ranges` becomes true.
uint32_t divide_by_literals(ptx::Module& module, uint32_t function, Ranges* ranges,
                            bool* used_ranges);

}  // namespace ttt::xform
