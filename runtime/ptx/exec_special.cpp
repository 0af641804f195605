// Special registers.
#include <string_view>

#include "ptx/exec_decode.h"

namespace ttt::ptx::exec {
namespace {

enum : uint16_t {
    kTid,
    kNtid,
    kCtaid,
    kNctaid,
    kLaneid,
    kWarpid,
    kNwarpid,
    kSmid,
    kNsmid,
    kGridid,
    kMaskEq,
    kMaskLe,
    kMaskLt,
    kMaskGe,
    kMaskGt,
    kClock,
    kClockHi,
    kClock64,
    kTimer,
    kTimerLow,
    kTimerHigh,
    kDynamicShared,
    kTotalShared,
    kZero,
    kOne,
};

struct Name {
    std::string_view text;
    uint16_t id;
};
constexpr Name kNames[] = {
    {"tid", kTid},
    {"ntid", kNtid},
    {"ctaid", kCtaid},
    {"nctaid", kNctaid},
    {"laneid", kLaneid},
    {"warpid", kWarpid},
    {"nwarpid", kNwarpid},
    {"smid", kSmid},
    {"nsmid", kNsmid},
    {"gridid", kGridid},
    {"lanemask_eq", kMaskEq},
    {"lanemask_le", kMaskLe},
    {"lanemask_lt", kMaskLt},
    {"lanemask_ge", kMaskGe},
    {"lanemask_gt", kMaskGt},
    {"clock", kClock},
    {"clock_hi", kClockHi},
    {"clock64", kClock64},
    {"globaltimer", kTimer},
    {"globaltimer_lo", kTimerLow},
    {"globaltimer_hi", kTimerHigh},
    {"dynamic_smem_size", kDynamicShared},
    {"total_smem_size", kTotalShared},
    {"aggr_smem_size", kTotalShared},
    // Launches here have clusters of one block.
    {"is_explicit_cluster", kZero},
    {"clusterid", kCtaid},
    {"nclusterid", kNctaid},
    {"cluster_ctaid", kZero},
    {"cluster_nctaid", kOne},
    {"cluster_ctarank", kZero},
    {"cluster_nctarank", kOne},
    {"reserved_smem_offset_begin", kZero},
    {"reserved_smem_offset_end", kZero},
    {"reserved_smem_offset_cap", kZero},
};

uint32_t part(const Dim3& d, uint8_t component) {
    switch (component) {
        case 0:
            return d.x;
        case 1:
            return d.y;
        case 2:
            return d.z;
        default:
            return 0;
    }
}

uint64_t uniform_value(const Context& c, const Op& op) {
    const Launch& launch = *c.worker->launch;
    const LaunchRequest& r = *launch.request;
    const auto component = static_cast<uint8_t>(op.sub2);
    // One instruction issued counts as four clocks; the timer runs in nanoseconds.
    const uint64_t clock = c.warp->clock * 4 + c.worker->counters.warp_instructions;
    const uint64_t timer =
        1'000'000'000ull + clock * 1000 / (r.device.clock_mhz != 0 ? r.device.clock_mhz : 1000);
    switch (op.sub) {
        case kNtid:
            return component == 3 ? 1 : part(r.block, component);
        case kCtaid:
            return part(c.block->index, component);
        case kNctaid:
            return component == 3 ? 1 : part(r.grid, component);
        case kWarpid:
            return c.warp->index;
        case kNwarpid:
            return r.device.warps_per_sm;
        case kSmid:
            return c.block->linear % (r.device.sm_count != 0 ? r.device.sm_count : 1);
        case kNsmid:
            return r.device.sm_count;
        case kGridid:
            return 1;
        case kClock:
            return clock & 0xFFFFFFFF;
        case kClockHi:
            return clock >> 32;
        case kClock64:
            return clock;
        case kTimer:
            return timer;
        case kTimerLow:
            return timer & 0xFFFFFFFF;
        case kTimerHigh:
            return timer >> 32;
        case kDynamicShared:
            return r.dynamic_shared;
        case kTotalShared:
            return launch.shared_bytes;
        case kOne:
            return 1;
        default:
            return 0;
    }
}

void run_uniform(Context& c, const Op& op, uint32_t mask) {
    const uint64_t value = uniform_value(c, op);
    for_lanes(mask, [&](uint32_t i) { c.set_lane(op.dst[0], i, value); });
    // A thread that waits for the clock must see it move.
    if (op.sub >= kClock && op.sub <= kTimerHigh) ++c.warp->clock;
}

void run_tid(Context& c, const Op& op, uint32_t mask) {
    const LaunchRequest& r = *c.worker->launch->request;
    for_lanes(mask, [&](uint32_t i) {
        c.set_lane(op.dst[0], i, part(thread_of(r, *c.warp, i), static_cast<uint8_t>(op.sub2)));
    });
}

uint32_t lane_value(uint16_t id, uint32_t lane) {
    const uint32_t bit = 1u << lane;
    switch (id) {
        case kMaskEq:
            return bit;
        case kMaskLe:
            return bit | (bit - 1);
        case kMaskLt:
            return bit - 1;
        case kMaskGe:
            return ~(bit - 1);
        case kMaskGt:
            return ~(bit | (bit - 1));
        default:
            return lane;
    }
}

void run_lane(Context& c, const Op& op, uint32_t mask) {
    for_lanes(mask, [&](uint32_t i) { c.set_lane(op.dst[0], i, lane_value(op.sub, i)); });
}

}  // namespace

bool select_special(std::string_view name, uint8_t component, Op& op) {
    for (const Name& n : kNames) {
        if (n.text != name) continue;
        op.sub = n.id;
        op.sub2 = component;
        op.run = n.id == kTid                                              ? run_tid
                 : n.id == kLaneid || (n.id >= kMaskEq && n.id <= kMaskGt) ? run_lane
                                                                           : run_uniform;
        return true;
    }
    if (!name.starts_with("envreg")) return false;
    op.sub = kZero;
    op.run = run_uniform;
    return true;
}

}  // namespace ttt::ptx::exec
