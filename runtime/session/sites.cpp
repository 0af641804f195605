#include "session/sites.h"

#include <algorithm>
#include <cstring>

namespace ttt::session {
namespace {
// New launches count for more: a site that changes its work (another batch) is followed within some
// hundred samples.
constexpr double kForget = 1.0 / 64;
}  // namespace

bool Site::all_device_memory() const {
    return std::all_of(targets.begin(), targets.end(),
                       [](const Target& t) { return t.allocation.device_memory(); });
}

Site& Sites::at(Kernel* kernel, const Dim3& g, const Dim3& b, uint32_t shared) {
    Site*& site = by_key_[{kernel, g.x, g.y, g.z, b.x, b.y, b.z, shared}];
    if (site == nullptr) {
        all_.push_back(std::make_unique<Site>());
        site = all_.back().get();
        site->id = all_.size();
        site->kernel = kernel;
        site->grid = g;
        site->block = b;
        site->shared = shared;
    }
    return *site;
}

Site* Sites::find(uint64_t id) const {
    return id == 0 || id > all_.size() ? nullptr : all_[id - 1].get();
}

void Sites::observe(Site& site, std::span<const std::byte> params,
                    std::span<const Target> targets) {
    const ParamLayout& layout = site.kernel->layout;
    if (site.observations == 0) site.stable.assign(layout.params.size(), 1);
    for (size_t i = 0; site.observations != 0 && i < layout.params.size(); ++i) {
        const ParamSpan& p = layout.params[i];
        if (std::memcmp(params.data() + p.offset, site.params.data() + p.offset, p.size) != 0)
            site.stable[i] = 0;
    }
    site.params.assign(params.begin(), params.end());
    site.targets.assign(targets.begin(), targets.end());
    ++site.observations;
}

void Sites::timed(Site& site, double ns) {
    ++site.samples;
    const double weight = std::max(1.0 / static_cast<double>(site.samples), kForget);
    site.mean_ns += weight * (ns - site.mean_ns);
    ++site.kernel->samples;
    site.kernel->sampled_ns += ns;
}

uint64_t Sites::launches(const Site& site) const {
    const uint64_t launches = site.kernel->launches();
    if (site.kernel->samples == 0) return std::min<uint64_t>(launches, site.observations);
    return static_cast<uint64_t>(static_cast<double>(launches) * static_cast<double>(site.samples) /
                                 static_cast<double>(site.kernel->samples));
}

void Sites::refresh_total(const Registry& registry) {
    total_ns_ = 0;
    for (const auto& k : registry.kernels())
        if (k->samples != 0)
            total_ns_ += k->sampled_ns / static_cast<double>(k->samples) *
                         static_cast<double>(k->launches());
}

double Sites::share(const Site& site) const {
    if (total_ns_ <= 0) return 0;
    return std::min(1.0, site.mean_ns * static_cast<double>(launches(site)) / total_ns_);
}

}  // namespace ttt::session
