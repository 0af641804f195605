#include "model/model.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace ttt::model {
namespace {

// Allocation rules of the CUDA occupancy calculator for compute capability 8.x and later.
constexpr uint32_t kWarp = 32;
constexpr uint32_t kRegistersPerThreadUnit = 8;
constexpr uint32_t kRegistersPerWarpUnit = 256;
constexpr uint32_t kSharedUnit = 128;
constexpr uint32_t kSharedReserved = 1024;  // per block, taken by the system from 8.0 on
constexpr uint32_t kPartitions = 4;  // warp schedulers, each with its quarter of the registers

// Latencies in clocks, in the range that public microbenchmarks of Ampere and Hopper report.
constexpr double kArithmeticLatency = 4.5;
constexpr double kMemoryLatency = 600;
constexpr double kLoadsInFlight = 4;  // independent loads of one warp that overlap
constexpr double kSectorBytes = 32;
constexpr double kSectorsPerAccess = 4;  // a coalesced 4-byte access of one warp
constexpr double kBarrierClocks = 20;

constexpr uint64_t kGiB = uint64_t{1} << 30;

const std::array<Device, 3> kProfiles = {{
    {.name = "h200",
     .marketing = "NVIDIA H200",
     .arch = 90,
     .sm_count = 132,
     .clock_mhz = 1980,
     .memory_bytes = 141 * kGiB,
     .dram_gbps = 4300,
     .launch_ns = 2500,
     .l2_bytes = 50u << 20},
    {.name = "orin",
     .marketing = "Orin",
     .arch = 87,
     .sm_count = 16,
     .clock_mhz = 1300,
     .max_threads_per_sm = 1536,
     .max_blocks_per_sm = 16,
     .max_warps_per_sm = 48,
     .shared_per_sm = 167936,
     .shared_per_block_optin = 166912,
     .memory_bytes = 64 * kGiB,
     .dram_gbps = 205,
     .launch_ns = 6000,
     .integrated = true,
     .l2_bytes = 4u << 20},
    {.name = "thor",
     .marketing = "NVIDIA Thor",
     .arch = 110,
     .sm_count = 20,
     .clock_mhz = 1575,
     .max_threads_per_sm = 1536,
     .max_blocks_per_sm = 24,
     .max_warps_per_sm = 48,
     .memory_bytes = 128 * kGiB,
     .dram_gbps = 273,
     .launch_ns = 5000,
     .integrated = true,
     .l2_bytes = 32u << 20},
}};

uint32_t round_up(uint32_t value, uint32_t unit) { return (value + unit - 1) / unit * unit; }

uint64_t warps_of(const Dim3& block) { return (block.count() + kWarp - 1) / kWarp; }

uint64_t blocks_by_registers(const Device& device, uint64_t warps, uint32_t registers) {
    const uint32_t per_thread = round_up(std::max(registers, 1u), kRegistersPerThreadUnit);
    const uint32_t per_warp = round_up(per_thread * kWarp, kRegistersPerWarpUnit);
    const uint64_t resident =
        uint64_t{device.registers_per_sm / kPartitions / per_warp} * kPartitions;
    return resident / warps;
}

uint64_t blocks_by_shared(const Device& device, uint32_t bytes) {
    const uint64_t per_block = round_up(std::max(bytes, 0u) + kSharedReserved, kSharedUnit);
    return device.shared_per_sm / per_block;
}

}  // namespace

const Device* find_profile(std::string_view name) {
    for (const Device& device : kProfiles) {
        if (device.name == name) return &device;
    }
    return nullptr;
}

Occupancy occupancy(const Device& device, const Dim3& block, const Resources& resources) {
    Occupancy out;
    const uint64_t threads = block.count();
    if (threads == 0 || threads > 1024 || resources.registers > 255) {
        out.limiter = "block";
        return out;
    }
    const uint64_t warps = warps_of(block);
    const std::array<std::pair<uint64_t, const char*>, 4> limits = {{
        {device.max_blocks_per_sm, "blocks"},
        {std::min<uint64_t>(device.max_warps_per_sm, device.max_threads_per_sm / kWarp) / warps,
         "warps"},
        {blocks_by_registers(device, warps, resources.registers), "registers"},
        {blocks_by_shared(device, resources.shared_bytes), "shared"},
    }};
    const auto least = std::min_element(limits.begin(), limits.end(),
                                        [](auto& a, auto& b) { return a.first < b.first; });
    out.blocks_per_sm = static_cast<uint32_t>(least->first);
    out.limiter = least->second;
    out.fraction = static_cast<double>(least->first * warps) / device.max_warps_per_sm;
    return out;
}

// Roofline (Williams et al. 2009) over issue slots and DRAM bytes, each derated by Little's law for
// the warps that are resident, on the multiprocessor that gets the most blocks (wave quantisation).
double predict_ns(const Device& device, const Dim3& grid, const Dim3& block,
                  const Resources& resources, const ptx::Counters& counters) {
    const double blocks = static_cast<double>(grid.count());
    const Occupancy occ = occupancy(device, block, resources);
    if (blocks == 0 || occ.blocks_per_sm == 0) return device.launch_ns;

    const double busiest = std::ceil(blocks / device.sm_count);
    const double resident_blocks = std::min<double>(busiest, occ.blocks_per_sm);
    const double resident_warps = resident_blocks * static_cast<double>(warps_of(block));

    const double instructions =
        std::max<double>(1, static_cast<double>(counters.warp_instructions));
    // Spilled values travel through the first-level cache: extra issue slots, no DRAM bytes.
    const double spills =
        blocks * static_cast<double>(warps_of(block)) * resources.local_bytes / 4.0 * 2.0;
    const double slots =
        (instructions + spills + kBarrierClocks * static_cast<double>(counters.barriers)) / blocks *
        busiest;
    const double sectors =
        static_cast<double>(counters.global_sectors_read + counters.global_sectors_written);
    const double accesses = std::min(instructions, sectors / kSectorsPerAccess);
    const double clocks_per_instruction =
        kArithmeticLatency + accesses / instructions * kMemoryLatency / kLoadsInFlight;
    const double per_clock = std::min(device.issue_per_sm, resident_warps / clocks_per_instruction);
    const double compute_ns = slots / per_clock / device.clock_mhz * 1e3;

    const double active_sms = std::min<double>(blocks, device.sm_count);
    const double in_flight =
        active_sms * resident_warps * kLoadsInFlight * kSectorsPerAccess * kSectorBytes;
    const double reachable = in_flight / (kMemoryLatency / device.clock_mhz * 1e3);  // bytes per ns
    const double memory_ns = sectors * kSectorBytes / std::min(device.dram_gbps, reachable);

    // The shorter of the two is not hidden entirely: a tenth of it shows.
    return device.launch_ns + std::max(compute_ns, memory_ns) +
           0.1 * std::min(compute_ns, memory_ns);
}

}  // namespace ttt::model
