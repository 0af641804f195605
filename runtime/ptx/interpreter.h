// Executes PTX on the CPU exactly as the ISA says. Used behind the emulated GPU, as the referee's
// oracle and as the source of instruction and sector counts. Un-rounded mul/add/sub are never fused
// here (rules.md 1): pin first.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/dim3.h"
#include "base/result.h"
#include "ptx/ir.h"

namespace ttt::ptx {

// Device memory as the interpreter sees it: disjoint allocations at device addresses, each backed
// by host bytes. add/remove must not run during a launch that uses the space (the owner serialises
// that).
class AddressSpace {
  public:
    struct Allocation {
        uint64_t base = 0, size = 0;
        std::byte* host = nullptr;
        bool readable = true, writable = true;
    };
    Status add(Allocation allocation);  // error when it overlaps another
    bool remove(uint64_t base);
    // The allocation holding [address, address+bytes), or nullptr.
    const Allocation* find(uint64_t address, uint64_t bytes = 1) const;
    std::span<const Allocation> all() const { return sorted_; }

  private:
    std::vector<Allocation> sorted_;  // by base
};

// Windows of generic address space that the hardware reserves; device allocations must stay out of
// them.
inline constexpr uint64_t kSharedWindow = 0x7F0000000000ull;
inline constexpr uint64_t kLocalWindow = 0x7E0000000000ull;
inline constexpr uint64_t kParamWindow = 0x7D0000000000ull;
inline constexpr uint64_t kWindowBytes = 0x010000000000ull;

// One module with its variables placed in an address space. Owns the storage of .global and .const
// variables.
class LoadedModule {
  public:
    // `base` = first free device address for variables; both the module and the space must outlive
    // the result.
    static Result<std::unique_ptr<LoadedModule>> load(const Module& module, AddressSpace& space,
                                                      uint64_t base);
    virtual ~LoadedModule() = default;
    struct Global {
        std::string_view name;
        uint64_t address;
        uint64_t bytes;
        bool constant;
    };
    virtual std::span<const Global> globals() const = 0;
    virtual const Module& module() const = 0;
};

// Sets the first bytes of a module's variable, as the host does through its address. kNotFound when
// the module has no such variable, kInvalidArgument when it is shorter.
Status set_variable(const LoadedModule& module, const AddressSpace& space, std::string_view name,
                    std::span<const std::byte> bytes);

// Where a multiprocessor executes an instruction.
enum class Unit : uint8_t {
    kNone,     // nothing is left of it in the machine code
    kFloat,    // single and half precision, and integer multiplication
    kInteger,  // integer addition, logic, shifts, comparisons
    kDouble,
    kSpecial,  // reciprocals, transcendentals, most conversions
    kMemory,   // loads, stores, atomics, shuffles
    kControl,  // branches, calls, barriers
};
inline constexpr size_t kUnits = 7;

// Summed over the blocks that ran. Per warp unless said otherwise; "sector" = 32 bytes.
struct Counters {
    uint64_t thread_instructions = 0;  // executed by active threads, guard false not counted
    uint64_t warp_instructions = 0;    // of PTX
    std::array<uint64_t, kUnits> machine = {};  // machine instructions they become, by Unit
    // Along the dependence chains of the basic blocks run: loads from global memory, and clocks of
    // everything else.
    uint64_t chain_loads = 0, chain_clocks = 0;
    uint64_t global_requests = 0;  // accesses of a warp to global memory
    uint64_t global_lines = 0;     // 128-byte lines that they touch, each counted per access
    uint64_t global_sectors_read = 0;
    uint64_t global_sectors_written = 0;
    uint64_t cold_sectors_read = 0;  // of those read, the ones that the block's first-level cache
                                     // does not hold
    uint64_t distinct_sectors = 0;   // different ones in the whole launch, read or written
    uint64_t shared_accesses = 0;
    uint64_t barriers = 0;
    friend bool operator==(const Counters&, const Counters&) = default;
};

struct Fault {
    enum class Kind : uint8_t {
        kIllegalAddress,
        kMisaligned,
        kTrap,
        kIllegalInstruction,
        kBarrier,
        kBudget,
        kDivergence
    };
    Kind kind = Kind::kIllegalAddress;
    Dim3 block, thread;
    uint32_t stmt_id = 0;
    uint64_t address = 0;
    std::string message;  // "illegal address 0x… (4-byte store) by thread (1,0,0) of block (2,0,0)
                          // at line 12: st.global…"
};

// Which bytes a launch touched, as sorted disjoint half-open ranges of device addresses (global
// space only).
struct Footprint {
    struct Range {
        uint64_t begin, end;
        friend bool operator==(const Range&, const Range&) = default;
    };
    std::vector<Range> read, written;
    // True when every byte of `inner` is in `outer`.
    static bool covers(std::span<const Range> outer, std::span<const Range> inner);
};

// A GPU as the special registers show it. The emulator fills it from its profile.
struct DeviceShape {
    uint32_t sm_count = 132;
    uint32_t warps_per_sm = 64;
    uint32_t clock_mhz = 1980;
    uint32_t arch = 90;
};

struct LaunchRequest {
    Dim3 grid, block;
    uint32_t dynamic_shared = 0;
    std::span<const std::byte> params;  // laid out as param_layout says
    unsigned host_threads =
        1;  // blocks run in parallel on this many threads; results are deterministic
            // for programs whose result does not depend on block order
    uint64_t max_thread_instructions = ~0ull;  // Fault::kBudget beyond it
    std::span<const uint64_t> only_blocks;     // linear block ids; empty = all
    bool want_footprint = false;
    DeviceShape device;
};

struct LaunchResult {
    Counters counters;
    Footprint footprint;
    std::optional<Fault> fault;
    std::string printf_output;
};

// One entry decoded once, run many times. Error (kUnsupported) names the first instruction it
// cannot execute.
class Program {
  public:
    static Result<std::unique_ptr<Program>> decode(const LoadedModule& module,
                                                   std::string_view entry);
    virtual ~Program() = default;
    virtual LaunchResult run(AddressSpace& space, const LaunchRequest& request) const = 0;
    virtual uint32_t static_shared_bytes() const = 0;
    virtual uint32_t local_bytes_per_thread() const = 0;
};

}  // namespace ttt::ptx
