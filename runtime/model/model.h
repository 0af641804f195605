// Cost model: occupancy, and a roofline with latencies from the interpreter's counts. Clock of the
// emulated GPU. Deterministic; model.cpp names the source of each figure, and how far predictions
// are from an H200 is in docs/results/cost_model.md.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/dim3.h"
#include "ptx/interpreter.h"

namespace ttt::model {

struct Device {
    std::string_view name;       // profile name: "h200", "orin", "thor"
    std::string_view marketing;  // "NVIDIA H200"
    uint32_t arch = 90;          // 90, 87, 110
    uint32_t sm_count = 132;
    uint32_t clock_mhz = 1980;
    uint32_t registers_per_sm = 65536, max_threads_per_sm = 2048, max_blocks_per_sm = 32,
             max_warps_per_sm = 64;
    uint32_t shared_per_sm = 233472, shared_per_block = 49152, shared_per_block_optin = 232448;
    uint64_t memory_bytes = 0;
    double dram_gbps = 4300;   // GB/s
    double l2_gbps = 5500;     // read; writes have half of it
    double double_per_sm = 2;  // warp instructions per clock
    double launch_ns = 2500;   // from the end of the work before to the first block
    bool integrated = false;
    uint32_t l2_bytes = 0;
};
const Device* find_profile(std::string_view name);  // nullptr when unknown

struct Resources {
    uint32_t registers = 32, shared_bytes = 0, local_bytes = 0;
};

struct Occupancy {
    uint32_t blocks_per_sm = 0;
    double fraction = 0;
    const char* limiter = "";
};
Occupancy occupancy(const Device& device, const Dim3& block, const Resources& resources);

// Predicted time of one launch, nanoseconds.
double predict_ns(const Device& device, const Dim3& grid, const Dim3& block,
                  const Resources& resources, const ptx::Counters& counters);

}  // namespace ttt::model
