// Launch sites seen through samples: time, share, scalars that stay constant. Our thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <vector>

#include "session/registry.h"
#include "session/sample.h"

namespace ttt::session {

enum class SiteState : uint8_t { kCold, kReported, kDone };

struct Site {
    uint64_t id = 0;
    Kernel* kernel = nullptr;
    Function* function = nullptr;  // last handle it was launched through
    CUcontext context = nullptr;
    Dim3 grid, block;
    uint32_t shared = 0;
    SiteState state = SiteState::kCold;
    uint64_t observations = 0;  // launches whose parameters were looked at
    uint64_t samples = 0;       // launches that were timed
    double mean_ns = 0;
    std::vector<std::byte> params;           // of the last observed launch
    std::vector<std::byte> reported_params;  // of the launch that SiteHot described
    std::vector<uint8_t> stable;             // per parameter: equal in every observed launch
    std::vector<Target> targets;             // of the last observed launch

    bool all_device_memory() const;
};

class Sites {
  public:
    Site& at(Kernel* kernel, const Dim3& grid, const Dim3& block, uint32_t shared);
    Site* find(uint64_t id) const;
    void observe(Site& site, std::span<const std::byte> params, std::span<const Target> targets);
    void timed(Site& site, double ns);
    // Share of all sampled time, each sample weighted by the launches it stands for; 0..1.
    double share(const Site& site) const;
    uint64_t launches(const Site& site) const;  // estimated from the samples of the kernel
    const std::vector<std::unique_ptr<Site>>& all() const { return all_; }
    void refresh_total(const Registry& registry);

  private:
    using Key =
        std::tuple<Kernel*, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t>;
    std::map<Key, Site*> by_key_;
    std::vector<std::unique_ptr<Site>> all_;
    double total_ns_ = 0;
};

}  // namespace ttt::session
