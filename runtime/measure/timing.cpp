#include "measure/timing.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace ttt::measure {
namespace {

double median_of_sorted(const std::vector<double>& v) {
    const size_t n = v.size();
    return n % 2 == 1 ? v[n / 2] : 0.5 * (v[n / 2 - 1] + v[n / 2]);
}

// Largest k with P(Binomial(n, 1/2) < k) <= tail: the k-th smallest value (1-based) is then a
// lower bound of the median with confidence 1 - tail whatever the distribution. 0 = too few values.
size_t binomial_rank(size_t n, double tail) {
    const double log_half_n = static_cast<double>(n) * std::log(0.5);
    const double log_n_factorial = std::lgamma(static_cast<double>(n) + 1);
    double below = 0;
    for (size_t k = 0; k < n; ++k) {
        const double x = static_cast<double>(k);
        below += std::exp(log_n_factorial - std::lgamma(x + 1) -
                          std::lgamma(static_cast<double>(n) - x + 1) + log_half_n);
        if (below > tail) return k;
    }
    return 0;
}

bool usable(double ns) { return std::isfinite(ns) && ns > 0; }

}  // namespace

Speedup speedup(std::span<const Pair> pairs, double tail) {
    std::vector<double> ratios, originals, variants;
    for (const Pair& pair : pairs) {
        if (!usable(pair.original_ns) || !usable(pair.variant_ns)) continue;
        ratios.push_back(pair.original_ns / pair.variant_ns);
        originals.push_back(pair.original_ns);
        variants.push_back(pair.variant_ns);
    }
    Speedup s;
    s.pairs = static_cast<uint32_t>(ratios.size());
    if (ratios.empty()) {
        s.low = 0;
        s.high = HUGE_VAL;
        return s;
    }
    for (auto* v : {&ratios, &originals, &variants}) std::sort(v->begin(), v->end());
    s.median = median_of_sorted(ratios);
    s.original_median_ns = median_of_sorted(originals);
    s.variant_median_ns = median_of_sorted(variants);
    const size_t rank = binomial_rank(ratios.size(), tail);
    // Five pairs or fewer cannot bound a median at this confidence: say so by an unbounded
    // interval.
    s.low = rank == 0 ? 0 : ratios[rank - 1];
    s.high = rank == 0 ? HUGE_VAL : ratios[ratios.size() - rank];
    return s;
}

Decision decide(const Speedup& s, double threshold, uint32_t min_pairs, uint32_t max_pairs) {
    const double bar = 1 + threshold;
    if (s.pairs >= min_pairs) {
        if (s.low >= bar) return Decision::kFaster;
        if (s.high < bar) return Decision::kNotFaster;
    }
    return s.pairs >= max_pairs ? Decision::kNotFaster : Decision::kMore;
}

}  // namespace ttt::measure
