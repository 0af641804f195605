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

constexpr double kSectorBytes = 32;

// Warp instructions per clock and multiprocessor: CUDA programming guide, "Throughput of Native
// Arithmetic Instructions" (results per clock / 32). Double precision differs by device.
constexpr double kIssue = 4, kFloat = 4, kInteger = 2, kSpecial = 0.5, kMemory = 1;
constexpr double kLinesPerClock = 1;  // of the first-level cache: one 128-byte line

// Clocks from a load to its value, by the level that has it: Luo et al. 2024 (arXiv 2402.13499),
// H100; Orin and Thor are taken to be alike in clocks.
constexpr double kL1Latency = 41, kL2Latency = 263, kDramLatency = 479;
constexpr double kL1Bytes = 128 << 10;  // as the interpreter's (exec_line_cache.h)
// From the end of a block to the first instruction of the next in its place. Fitted to relu_u8 and
// saxpy_h of the suite, whose blocks do nearly nothing.
constexpr double kBlockClocks = 700;
// Bounds that lie close add up to more than the largest: exponent of the norm that joins them.
constexpr double kNorm = 3;

constexpr uint64_t kGiB = uint64_t{1} << 30;

// Second-level bandwidth: H100 microbenchmarks (Luo et al.; chipsandcheese.com, 2023); on Orin and
// Thor 32 bytes per clock and multiprocessor are assumed.
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
     .l2_gbps = 665,
     .double_per_sm = 1.0 / 16,
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
     .l2_gbps = 1008,
     .double_per_sm = 1.0 / 16,
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

namespace {

using ptx::Unit;

// Part of `working_set` that a cache of `cache` bytes cannot hold.
double overflow(double working_set, double cache) {
    return working_set <= cache ? 0 : 1 - cache / working_set;
}

// What values kept in local memory cost. Counts come from PTX, which has registers without end; so:
// each instruction finds one operand spilled with the share of a thread's values that are.
struct Spills {
    double accesses = 0;  // of a warp, each of one 128-byte line
    double l2_sectors = 0, dram_bytes = 0;
};
Spills spills_of(const Device& device, const Resources& resources, double instructions,
                 double resident_threads, double active_sms) {
    const double local = resources.local_bytes;
    if (local == 0) return {};
    Spills out;
    out.accesses = instructions * local / (local + 4.0 * resources.registers);
    const double per_sm = local * resident_threads;
    out.l2_sectors = out.accesses * 4 * overflow(per_sm, kL1Bytes);
    out.dram_bytes = out.l2_sectors * kSectorBytes * overflow(per_sm * active_sms, device.l2_bytes);
    return out;
}

double norm(std::initializer_list<double> bounds) {
    double sum = 0;
    for (const double b : bounds) sum += std::pow(b, kNorm);
    return std::pow(sum, 1 / kNorm);
}

}  // namespace

// A roofline (Williams et al. 2009) over issue slots, execution units and the memory levels, joined
// with Little's law: the resident warps of the multiprocessor that gets the most blocks walk their
// dependence chains one after the other where they do not fit at once.
double predict_ns(const Device& device, const Dim3& grid, const Dim3& block,
                  const Resources& resources, const ptx::Counters& counters) {
    const double blocks = static_cast<double>(grid.count());
    const Occupancy occ = occupancy(device, block, resources);
    if (blocks == 0 || occ.blocks_per_sm == 0) return device.launch_ns;
    const double busiest = std::ceil(blocks / device.sm_count);
    const double resident = std::min<double>(busiest, occ.blocks_per_sm);
    const double warps = blocks * static_cast<double>(warps_of(block));
    const double active_sms = std::min<double>(blocks, device.sm_count);
    const auto of = [&](Unit u) {
        return static_cast<double>(counters.machine[static_cast<size_t>(u)]);
    };

    double instructions = 0;
    for (const uint64_t n : counters.machine) instructions += static_cast<double>(n);
    const Spills spills = spills_of(device, resources, instructions,
                                    resident * static_cast<double>(block.count()), active_sms);
    const double memory = of(Unit::kMemory) + spills.accesses;
    const double lines = static_cast<double>(counters.global_lines) + spills.accesses +
                         static_cast<double>(counters.shared_accesses);

    // Per multiprocessor, in clocks.
    const double issue = (instructions + spills.accesses) / kIssue;
    const double units =
        std::max({of(Unit::kFloat) / kFloat, of(Unit::kInteger) / kInteger,
                  of(Unit::kDouble) / device.double_per_sm, of(Unit::kSpecial) / kSpecial});
    const double l1 = std::max(memory / kMemory, lines / kLinesPerClock);
    const double share = busiest / blocks;

    // On the whole device, in bytes.
    const double cold = static_cast<double>(counters.cold_sectors_read);
    const double written = static_cast<double>(counters.global_sectors_written);
    const double distinct = static_cast<double>(counters.distinct_sectors) * kSectorBytes;
    const double from_dram = distinct * overflow(distinct, device.l2_bytes);
    const double l2_bytes = (cold + 2 * written + spills.l2_sectors) * kSectorBytes;
    const double dram_bytes = from_dram + spills.dram_bytes;

    // Of one warp, in clocks.
    const double read = std::max(1.0, static_cast<double>(counters.global_sectors_read));
    const double beyond_l1 = cold / read;
    const double beyond_l2 =
        std::min(1.0, from_dram / kSectorBytes / std::max(1.0, cold + written));
    const double load = kL1Latency + beyond_l1 * (kL2Latency - kL1Latency +
                                                  beyond_l2 * (kDramLatency - kL2Latency));
    const double chain = (static_cast<double>(counters.chain_loads) * load +
                          static_cast<double>(counters.chain_clocks)) /
                         warps;
    const double chains = busiest / resident * (chain + kBlockClocks);

    const double ns_per_clock = 1e3 / device.clock_mhz;
    return device.launch_ns + norm({issue * share * ns_per_clock, units * share * ns_per_clock,
                                    l1 * share * ns_per_clock, chains * ns_per_clock,
                                    l2_bytes / device.l2_gbps, dram_bytes / device.dram_gbps});
}

}  // namespace ttt::model
