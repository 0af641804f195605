#include "session/gap_model.h"

#include <algorithm>
#include <cmath>

namespace ttt::session {
namespace {

constexpr double kFirstEdge = 131072;  // ns
constexpr double kPerDoubling = 4;
constexpr double kLeast = 8;      // pauses before they say anything
constexpr double kMemory = 1024;  // pauses after which all so far count half

double ns(GapModel::Duration d) { return static_cast<double>(d.count()); }
GapModel::Duration duration(double ns) { return GapModel::Duration(static_cast<int64_t>(ns)); }

}  // namespace

size_t GapModel::bin(double ns) {
    if (ns < kFirstEdge) return 0;
    const double at = 1 + kPerDoubling * std::log2(ns / kFirstEdge);
    return std::min(static_cast<size_t>(at), kBins - 1);
}

double GapModel::edge(size_t bin) {
    return bin == 0 ? 0 : kFirstEdge * std::exp2(static_cast<double>(bin - 1) / kPerDoubling);
}

void GapModel::add(Duration gap) {
    counts_[bin(ns(gap))] += 1;
    total_ += 1;
    if (total_ < kMemory) return;
    for (double& c : counts_) c /= 2;
    total_ /= 2;
}

double GapModel::lasted(double t) const {
    const size_t at = bin(t);
    double n = counts_[at] * std::clamp((edge(at + 1) - t) / (edge(at + 1) - edge(at)), 0.0, 1.0);
    for (size_t i = at + 1; i < kBins; ++i) n += counts_[i];
    return n;
}

std::optional<double> GapModel::chance(Duration quiet, Duration work) const {
    const double now = lasted(ns(quiet));
    if (now < kLeast) return std::nullopt;
    return 1 - lasted(ns(quiet) + ns(work)) / now;
}

std::optional<GapModel::Duration> GapModel::room(Duration quiet, double limit) const {
    const double now = lasted(ns(quiet));
    if (now < kLeast) return std::nullopt;
    double left = limit * now;  // pauses that may end within the work
    double from = ns(quiet);
    for (size_t i = bin(from); i < kBins; ++i) {
        const double end = edge(i + 1);
        const double here = counts_[i] * (end - from) / (end - edge(i));
        if (here > left) return duration(from + (end - from) * left / here - ns(quiet));
        left -= here;
        from = end;
    }
    return duration(from - ns(quiet));
}

std::optional<GapModel::Duration> GapModel::long_gap() const {
    if (total_ < kLeast) return std::nullopt;
    double idle = 0, above = 0;
    for (size_t i = 0; i < kBins; ++i) idle += counts_[i] * edge(i);
    for (size_t i = kBins; i-- > 0;) {
        above += counts_[i] * edge(i);
        if (above * 2 >= idle) return duration(edge(i));
    }
    return Duration{0};
}

}  // namespace ttt::session
