// The state of the emulated GPU: one device, its contexts, streams, events, modules. One instance
// per process, never destroyed (programs call the driver from exit handlers). Everything here is
// guarded by the call lock.
#pragma once

#include <cuda.h>

#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "emulator/code.h"
#include "emulator/device_memory.h"
#include "emulator/graph.h"
#include "emulator/handles.h"
#include "model/model.h"

namespace ttt::emulator {

struct Context {
    uint64_t id = 0;
    unsigned flags = 0;
    bool primary = false;
    int references = 0;  // primary only
    CUresult sticky = CUDA_SUCCESS;
    uint64_t legacy_clock = 0;    // end of the last work on the legacy stream, ns
    uint64_t blocking_clock = 0;  // end of the last work on any blocking stream
    std::unordered_map<int, size_t> limits;
    CUfunc_cache cache = CU_FUNC_CACHE_PREFER_NONE;
    CUsharedconfig shared = CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE;
};

struct Capture {  // one stream capture, shared by the streams that joined it
    uint64_t id = 0;
    std::shared_ptr<Graph> graph;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    const void* thread = nullptr;  // the thread that began it
    struct Stream* origin = nullptr;
    bool invalid = false;
};

struct Stream {
    uint64_t id = 0;
    Context* context = nullptr;
    unsigned flags = 0;
    int priority = 0;
    bool legacy = false, per_thread = false;
    uint64_t clock = 0;  // end of its last work, simulated ns
    std::shared_ptr<Capture> capture;
    std::unordered_map<int, CUstreamAttrValue> attributes;
    std::vector<GraphNode*> leaves;  // what the next captured node depends on
    bool blocking() const { return legacy || (flags & CU_STREAM_NON_BLOCKING) == 0; }
};

struct Event {
    unsigned flags = 0;
    Context* context = nullptr;
    bool recorded = false;
    uint64_t time = 0;
    std::shared_ptr<Capture> capture;  // recorded in a capture: dependencies for whoever waits
    std::vector<GraphNode*> nodes;
};

struct Pool {
    std::unordered_map<int, uint64_t> attributes;
};

class Gpu {
  public:
    static Gpu& get();

    bool initialised = false;
    const model::Device* device = nullptr;
    std::string profile;
    std::unique_ptr<DeviceMemory> memory;
    unsigned host_threads = 1;

    Handles<Context, CUcontext> contexts;
    Handles<Stream, CUstream> streams;
    Handles<Event, CUevent> events;
    Handles<Module, CUmodule> modules;
    Handles<Function, CUfunction> functions;
    Handles<Library, CUlibrary> libraries;
    Handles<Kernel, CUkernel> kernels;
    Handles<GraphExec, CUgraphExec> execs;
    Handles<Pool, CUmemoryPool> pools;
    std::unordered_map<CUgraph, std::shared_ptr<Graph>> graphs;
    std::unordered_map<CUgraphNode, GraphNode*> nodes;
    CUmemoryPool default_pool = nullptr, current_pool = nullptr;

    CUresult initialise();
    Context* current() const;
    std::vector<Context*>& stack();  // of this thread
    CUcontext handle(Context* context) const {
        return Handles<Context, CUcontext>::handle_of(context);
    }
    Context* create_context(unsigned flags, bool primary);
    void destroy_context(Context* context);
    Context* primary = nullptr;
    unsigned primary_flags = 0;

    // Stream behind a handle; 0, CU_STREAM_LEGACY and CU_STREAM_PER_THREAD included. nullptr:
    // invalid.
    Stream* stream(CUstream handle);
    // Function behind a CUfunction, or a CUkernel cast to one (its function in the current
    // context).
    Function* function(CUfunction handle);
    // A graph node may outlive the module or event that it uses.
    bool alive(Function* function) const {
        return functions.find(Handles<Function, CUfunction>::handle_of(function)) != nullptr;
    }
    bool alive(Event* event) const {
        return events.find(Handles<Event, CUevent>::handle_of(event)) != nullptr;
    }
    bool alive(Stream* stream) const {
        return streams.find(Handles<Stream, CUstream>::handle_of(stream)) != nullptr;
    }
    uint64_t next_id() { return ++last_id_; }

    std::vector<std::weak_ptr<Capture>> captures;  // active

  private:
    Gpu() = default;
    Stream* default_stream(Context* context, bool per_thread);
    uint64_t last_id_ = 0;
    std::unordered_map<Context*, Stream*> legacy_streams_;
};

// CUDA_SUCCESS and the current context, or the error that a call without one gets.
CUresult need_context(Context** context);

// Simulated time at which this thread's host code is: it has waited for everything up to here.
uint64_t& host_clock();
void wait_for(const Stream& stream);
void wait_for_context(const Context& context);

// Executes work on a stream, or adds it to the graph the stream is capturing.
CUresult submit(Stream& stream, Work work);
// Advances the stream's clock by work that takes `nanoseconds`.
void advance(Stream& stream, uint64_t nanoseconds);
// A copy or set that blocks the host: on the legacy stream.
CUresult run_blocking(Work work);

// CUDA_SUCCESS, or the error of a call that may not run while a capture is going on, which it also
// invalidates.
CUresult refuse_in_capture();
// Likewise for a call that implicitly uses the legacy stream.
CUresult refuse_legacy_in_capture();
void invalidate(Capture& capture);

}  // namespace ttt::emulator
