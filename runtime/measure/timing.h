// Statistics of interleaved original/variant timings.
#pragma once

#include <cstdint>
#include <span>

namespace ttt::measure {

struct Pair {
    double original_ns, variant_ns;
};

struct Speedup {
    double median = 1;  // of original/variant
    double low = 1,
           high = 1;  // confidence interval of the median (order statistics of the binomial)
    double original_median_ns = 0, variant_median_ns = 0;
    uint32_t pairs = 0;
};
// `tail`: chance that the median lies beyond each side of the interval; 0.025 gives 95 %.
Speedup speedup(std::span<const Pair> pairs, double tail = 0.025);

enum class Decision : uint8_t { kMore, kFaster, kNotFaster };
// Sequential: faster once low ≥ 1 + threshold, not faster once high < 1 + threshold; more while
// undecided and fewer than max_pairs.
Decision decide(const Speedup& s, double threshold, uint32_t min_pairs, uint32_t max_pairs);

}  // namespace ttt::measure
