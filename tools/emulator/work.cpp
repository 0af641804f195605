#include "emulator/work.h"

#include <algorithm>
#include <cmath>

#include "driver_table/fault_plan.h"
#include "emulator/emu_log.h"
#include "emulator/entry.h"
#include "emulator/gpu.h"

namespace ttt::emulator {
namespace {

// Simulated copies: a fixed cost, as measured for small ones on an H200, and a bandwidth.
constexpr double kCopyNs = 1400;
constexpr double kHostLinkGbps = 55;  // PCIe 5 x16, pinned

bool is_bytes_on_device(uint64_t address) { return Gpu::get().memory->is_device(address); }

double copy_ns(const CopyWork& copy) {
    const model::Device& device = *Gpu::get().device;
    const double bytes = static_cast<double>(copy.width * copy.height * copy.depth);
    const bool inside = is_bytes_on_device(copy.to) && is_bytes_on_device(copy.from);
    // Within the device each byte is read and written by the same memory; so it is on an integrated
    // GPU.
    const double gbps = inside || device.integrated ? device.dram_gbps / 2 : kHostLinkGbps;
    return (kCopyNs + bytes / gbps) * driver_table::process_fault_plan().copy_slowdown();
}

template <typename F>
bool each_row(const CopyWork& copy, F&& row) {
    for (uint64_t z = 0; z < copy.depth; ++z) {
        for (uint64_t y = 0; y < copy.height; ++y) {
            if (!row(copy.to + z * copy.to_slice + y * copy.to_pitch,
                     copy.from + z * copy.from_slice + y * copy.from_pitch)) {
                return false;
            }
        }
    }
    return true;
}

struct Executor {
    bool in_graph;
    uint64_t* nanoseconds;

    CUresult operator()(const EmptyWork&) const { return CUDA_SUCCESS; }
    CUresult operator()(const KernelWork& work) const {
        if (!Gpu::get().alive(work.function)) return CUDA_ERROR_INVALID_HANDLE;
        return run_kernel(work, in_graph, nanoseconds);
    }
    CUresult operator()(const CopyWork& copy) const {
        DeviceMemory& memory = *Gpu::get().memory;
        *nanoseconds = static_cast<uint64_t>(std::llround(copy_ns(copy)));
        const bool done = each_row(
            copy, [&](uint64_t to, uint64_t from) { return memory.copy(to, from, copy.width); });
        return done ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
    CUresult operator()(const FillWork& fill) const {
        Gpu& gpu = Gpu::get();
        const double bytes = static_cast<double>(fill.width * fill.height * fill.value_bytes);
        *nanoseconds = static_cast<uint64_t>(std::llround(kCopyNs + bytes / gpu.device->dram_gbps));
        for (uint64_t y = 0; y < fill.height; ++y) {
            if (!gpu.memory->fill(fill.to + y * fill.pitch, fill.value, fill.value_bytes,
                                  fill.width)) {
                return CUDA_ERROR_INVALID_VALUE;
            }
        }
        return CUDA_SUCCESS;
    }
    CUresult operator()(const HostWork& work) const {
        const Unlocked unlocked;
        work.call(work.data);
        return CUDA_SUCCESS;
    }
    CUresult operator()(const EventRecordWork& work) const {
        if (!Gpu::get().alive(work.event)) return CUDA_ERROR_INVALID_HANDLE;
        work.event->recorded = true;  // its time is the node's end: set by whoever schedules
        return CUDA_SUCCESS;
    }
    CUresult operator()(const EventWaitWork&) const { return CUDA_SUCCESS; }
    CUresult operator()(const ChildWork& work) const {
        GraphExec exec;
        if (!instantiate(*work.graph, &exec)) return CUDA_ERROR_INVALID_VALUE;
        return launch(exec, nanoseconds);
    }
};

bool fits(const CopyWork& copy) {
    DeviceMemory& memory = *Gpu::get().memory;
    // First and last byte of a row decide cheaply; the copy itself checks everything again.
    const auto whole = [&](uint64_t address) {
        if (!memory.is_device(address)) return true;
        return memory.is_device(address + copy.width - 1);
    };
    return copy.width == 0 || each_row(copy, [&](uint64_t to, uint64_t from) {
               return to != 0 && from != 0 && whole(to) && whole(from);
           });
}

}  // namespace

CUresult check(const Work& work) {
    if (const auto* copy = std::get_if<CopyWork>(&work)) {
        return fits(*copy) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
    if (const auto* fill = std::get_if<FillWork>(&work)) {
        const bool empty = fill->width == 0 || fill->height == 0;
        if (!empty && !is_bytes_on_device(fill->to)) return CUDA_ERROR_INVALID_VALUE;
        if (fill->to % fill->value_bytes != 0) return CUDA_ERROR_INVALID_VALUE;
    }
    if (const auto* kernel = std::get_if<KernelWork>(&work)) {
        return check_launch(*kernel->function, *kernel);
    }
    return CUDA_SUCCESS;
}

CUresult execute(const Work& work, bool in_graph, uint64_t* nanoseconds) {
    *nanoseconds = 0;
    return std::visit(Executor{in_graph, nanoseconds}, work);
}

void advance(Stream& stream, uint64_t nanoseconds) {
    Context& context = *stream.context;
    uint64_t start = std::max(stream.clock, host_clock());
    if (stream.legacy) {
        start = std::max(start, context.blocking_clock);
    } else if (stream.blocking()) {
        start = std::max(start, context.legacy_clock);
    }
    stream.clock = start + nanoseconds;
    if (stream.blocking()) context.blocking_clock = std::max(context.blocking_clock, stream.clock);
    if (stream.legacy) context.legacy_clock = stream.clock;
}

CUresult submit(Stream& stream, Work work) {
    if (const CUresult bad = check(work); bad != CUDA_SUCCESS) return bad;
    if (stream.capture != nullptr) {
        if (stream.capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        GraphNode* node = add_node(*stream.capture->graph, std::move(work), stream.leaves);
        stream.leaves = {node};
        return CUDA_SUCCESS;
    }
    if (stream.legacy) {
        if (const CUresult refused = refuse_legacy_in_capture(); refused != CUDA_SUCCESS)
            return refused;
    }
    uint64_t nanoseconds = 0;
    const CUresult result = execute(work, false, &nanoseconds);
    // Host functions run unlocked: another thread may have destroyed the stream meanwhile.
    if (Gpu::get().alive(&stream)) advance(stream, nanoseconds);
    return result;
}

CUresult run_blocking(Work work) {
    Context* context = nullptr;
    if (const CUresult bad = need_context(&context); bad != CUDA_SUCCESS) return bad;
    if (const CUresult refused = refuse_legacy_in_capture(); refused != CUDA_SUCCESS)
        return refused;
    Stream* stream = Gpu::get().stream(nullptr);
    const CUresult result = submit(*stream, std::move(work));
    wait_for(*stream);
    return result;
}

}  // namespace ttt::emulator
