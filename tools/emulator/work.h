// One unit of work: what a stream executes now, or a graph node keeps for later. Plain data;
// work.cpp executes it.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <variant>
#include <vector>

#include "base/dim3.h"

namespace ttt::emulator {

struct Function;
struct Event;
struct Graph;

struct KernelWork {
    Function* function = nullptr;
    CUfunction handle = nullptr;  // as the program gave it: a CUkernel cast, maybe
    Dim3 grid, block;
    uint32_t dynamic_shared = 0;
    std::vector<std::byte> params;      // packed
    std::vector<void*> param_pointers;  // for cuGraphKernelNodeGetParams: into `params`
    std::vector<CUlaunchAttribute> attributes;
};
struct CopyWork {  // rows × slices of `width` bytes
    uint64_t to = 0, from = 0;
    uint64_t width = 0, height = 1, depth = 1;
    uint64_t to_pitch = 0, from_pitch = 0, to_slice = 0, from_slice = 0;
    CUDA_MEMCPY3D params{};  // as given, for the graph getters
};
struct FillWork {
    uint64_t to = 0;
    uint32_t value = 0;
    unsigned value_bytes = 1;
    uint64_t width = 0, height = 1, pitch = 0;  // width in elements, pitch in bytes
};
struct HostWork {
    CUhostFn call = nullptr;
    void* data = nullptr;
};
struct EmptyWork {};
struct EventRecordWork {
    Event* event = nullptr;
};
struct EventWaitWork {
    Event* event = nullptr;
};
struct ChildWork {
    std::shared_ptr<Graph> graph;
};

using Work = std::variant<EmptyWork, KernelWork, CopyWork, FillWork, HostWork, EventRecordWork,
                          EventWaitWork, ChildWork>;

// Executes the work and gives its simulated duration. `in_graph`: launches inside a graph cost
// less. A kernel fault leaves the sticky error in the current context and still is CUDA_SUCCESS
// here: the launch was accepted.
CUresult execute(const Work& work, bool in_graph, uint64_t* nanoseconds);

// Bytes may be copied or set as asked; checked before anything is queued.
CUresult check(const Work& work);

}  // namespace ttt::emulator
