// Run-time state of the interpreter: worker thread, block, warp, frame. Internal to the
// interpreter.
#pragma once

#include <atomic>
#include <bit>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ptx/exec_footprint.h"
#include "ptx/exec_line_cache.h"
#include "ptx/exec_op.h"
#include "ptx/interpreter.h"

namespace ttt::ptx::exec {

struct ProgramCode;

// Registers and local memory of one call. Several splits of a warp may be inside the same call.
struct Frame {
    const FunctionCode* code = nullptr;
    std::unique_ptr<std::byte[]> registers;
    uint32_t local_base = 0;  // bytes into each thread's local memory
    uint32_t depth = 0;
    Frame* caller = nullptr;
    uint32_t call_pc = 0;  // of the call in the caller
};

// Lanes that left a split and are to continue together at `pc` once all expected lanes have
// arrived.
struct Join {
    uint32_t pc = kNowhere;
    uint32_t expected = 0, arrived = 0;
    uint32_t parent = kNowhere;
    Frame* frame = nullptr;   // to continue in
    Frame* callee = nullptr;  // set for the join that a call makes
    bool live = false;
};

enum class Wait : uint8_t { kReady, kBarrier, kCollective };

// A group of lanes of one warp that share a program counter.
struct Split {
    uint32_t pc = 0;
    uint32_t mask = 0;
    uint32_t join = kNowhere;
    Frame* frame = nullptr;
    Wait wait = Wait::kReady;
    uint32_t barrier = 0;
    uint32_t slices = 0;  // used up since lanes last parted from those that wait for it
};

struct Barrier {
    uint32_t arrived[32] = {};    // lanes per warp
    uint32_t predicate[32] = {};  // of reductions
    uint32_t threads = 0;         // 0: all
    bool used = false;
};

struct Warp {
    uint32_t index = 0;
    uint32_t exists = 0;        // lanes that are threads
    uint32_t live = 0;          // lanes that have not exited
    std::vector<Split> splits;  // all but the one being executed; the last ready one runs next
    std::vector<Join> joins;
    std::byte* local = nullptr;  // kLanes × local_stride
    uint64_t clock = 0;          // instructions issued
};

struct AllocationCache {
    uint64_t base = 1, size = 0;  // empty
    std::byte* host = nullptr;
    bool readable = false, writable = false;
};

// One launch, shared by all workers.
struct Launch {
    const ProgramCode* program = nullptr;
    const AddressSpace* space = nullptr;
    const LaunchRequest* request = nullptr;
    uint32_t shared_bytes = 0;
    uint32_t local_stride = 0;
    std::atomic<uint64_t> next_block{0};
    std::atomic<uint64_t> instructions{0};
    std::atomic<bool> stop{false};
};

// One host thread's state: everything handlers may write besides device memory.
struct Worker {
    Launch* launch = nullptr;
    Counters counters;
    std::vector<std::vector<uint64_t>> hits;  // executions of each operation, per code
    std::vector<AllocationCache> caches;
    TouchedBytes read, written;
    TouchedBytes sectors;  // of global memory, in units of 32 bytes
    std::vector<std::unique_ptr<LineCache>> free_line_caches;
    std::optional<Fault> fault;
    uint64_t fault_block = 0;
    std::string printf_output;
    std::vector<std::vector<std::unique_ptr<Frame>>> free_frames;  // per code
};

struct Block {
    Worker* worker = nullptr;
    uint64_t linear = 0;
    Dim3 index;
    std::vector<Warp> warps;
    std::vector<std::byte> shared_storage, local_storage;
    std::byte* shared = nullptr;
    uint32_t shared_bytes = 0;
    Barrier barriers[16];
    std::unique_ptr<LineCache> lines;            // first-level cache, empty at the block's start
    std::vector<std::unique_ptr<Frame>> frames;  // in use
};

// What a handler sees: the split's registers and everything around it.
struct Context {
    std::byte* bank[2] = {nullptr, nullptr};
    const FunctionCode* code = nullptr;
    Frame* frame = nullptr;
    Warp* warp = nullptr;
    Block* block = nullptr;
    Worker* worker = nullptr;
    uint32_t active = 0;  // lanes of the split, guard not applied

    template <typename T>
    const T* read(const Source& s) const {
        return reinterpret_cast<const T*>(bank[s.bank] + s.offset);
    }
    template <typename T>
    T* write(const Dest& d) const {
        return reinterpret_cast<T*>(bank[0] + d.offset);
    }
    uint32_t predicate(uint32_t offset) const {
        uint32_t bits;
        std::memcpy(&bits, bank[0] + offset, sizeof bits);
        return bits;
    }
    uint32_t predicate(const Source& s) const {
        const uint32_t bits = *read<uint32_t>(s);
        return s.negated ? ~bits : bits;
    }
    void set_predicate(uint32_t offset, uint32_t bits, uint32_t mask) const {
        auto* p = reinterpret_cast<uint32_t*>(bank[0] + offset);
        *p = (*p & ~mask) | (bits & mask);
    }
    // Zero-extended bits of one lane; 128-bit slots give the lower half.
    uint64_t lane(const Source& s, uint32_t i) const {
        switch (s.width) {
            case Width::kPred:
                return predicate(s) >> i & 1;
            case Width::kHalf:
                return read<uint16_t>(s)[i];
            case Width::kWord:
                return read<uint32_t>(s)[i];
            case Width::kLong:
                return read<uint64_t>(s)[i];
            case Width::kQuad:
                return read<uint64_t>(s)[2 * i];
        }
        return 0;
    }
    void set_lane(const Dest& d, uint32_t i, uint64_t bits) const {
        if (d.offset == kNowhere) return;
        switch (d.width) {
            case Width::kPred:
                set_predicate(d.offset, static_cast<uint32_t>(bits & 1) << i, 1u << i);
                break;
            case Width::kHalf:
                write<uint16_t>(d)[i] = static_cast<uint16_t>(bits);
                break;
            case Width::kWord:
                write<uint32_t>(d)[i] = static_cast<uint32_t>(bits);
                break;
            case Width::kLong:
                write<uint64_t>(d)[i] = bits;
                break;
            case Width::kQuad:
                write<uint64_t>(d)[2 * i] = bits;
                write<uint64_t>(d)[2 * i + 1] = 0;
                break;
        }
    }
    bool faulted() const { return worker->fault.has_value(); }
    // Records the launch's first fault of this worker.
    void fault(Fault::Kind kind, uint32_t lane, const Op& op, uint64_t address,
               std::string what) const;
};

template <typename F>
inline void for_lanes(uint32_t mask, F&& f) {
    for (; mask != 0; mask &= mask - 1) f(static_cast<uint32_t>(std::countr_zero(mask)));
}

// Everything decode produced.
struct ProgramCode {
    const LoadedModule* loaded = nullptr;
    std::vector<FunctionCode> codes;   // by position; codes[0] is the entry
    std::vector<uint32_t> code_of;     // function index -> position, kNowhere when not reachable
    std::vector<std::byte> constants;  // bank 1
    uint32_t static_shared = 0;
    uint32_t local_bytes = 0;  // worst case over the call graph; recursion to the depth limit
    uint32_t parameter_bytes = 0;
    uint32_t caches = 0;
};

inline constexpr uint64_t kFunctionAddresses =
    0x6F0000000000ull;                       // + 16·index: what taking a function's address gives
inline constexpr uint32_t kMostCalls = 256;  // depth of recursion

// The thread's index in its block.
Dim3 thread_of(const LaunchRequest& request, const Warp& warp, uint32_t lane);

}  // namespace ttt::ptx::exec
