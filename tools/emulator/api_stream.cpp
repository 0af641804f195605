// Streams, events, stream capture.
#include <algorithm>

#include "emulator/api.h"
#include "emulator/thread_mode.h"

namespace ttt::emulator::api {
namespace {

CUresult create(CUstream* out, unsigned flags, int priority) {
    Context* context = nullptr;
    TTT_EMU_TRY(need_context(&context));
    if (out == nullptr || (flags & ~unsigned{CU_STREAM_NON_BLOCKING}) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    auto made = std::make_unique<Stream>();
    made->id = Gpu::get().next_id();
    made->context = context;
    made->flags = flags;
    made->priority = std::clamp(priority, -5, 0);
    return give(out, Gpu::get().streams.add(std::move(made)));
}

CUresult find_event(CUevent handle, Event** event) {
    *event = Gpu::get().events.find(handle);
    return *event != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult record(CUevent event_handle, CUstream stream_handle, bool external) {
    Event* event = nullptr;
    Stream* stream = nullptr;
    TTT_EMU_TRY(find_event(event_handle, &event));
    TTT_EMU_TRY(need_stream(stream_handle, &stream));
    if (event->context != stream->context) return CUDA_ERROR_INVALID_HANDLE;
    if (stream->capture != nullptr) {
        if (external) return submit(*stream, EventRecordWork{event});
        event->capture = stream->capture;
        event->nodes = stream->leaves;
        return CUDA_SUCCESS;
    }
    advance(*stream, 0);
    event->capture = nullptr;
    event->recorded = true;
    event->time = stream->clock;
    return CUDA_SUCCESS;
}

CUresult elapsed(float* out, CUevent first_handle, CUevent second_handle) {
    Event *first = nullptr, *second = nullptr;
    TTT_EMU_TRY(find_event(first_handle, &first));
    TTT_EMU_TRY(find_event(second_handle, &second));
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const bool timed = ((first->flags | second->flags) & CU_EVENT_DISABLE_TIMING) == 0;
    if (!timed || !first->recorded || !second->recorded) return CUDA_ERROR_INVALID_HANDLE;
    const double ns = static_cast<double>(second->time) - static_cast<double>(first->time);
    return give(out, ns / 1e6);
}

CUresult begin(CUstream handle, std::shared_ptr<Graph> graph, std::vector<GraphNode*> leaves,
               CUstreamCaptureMode mode) {
    Stream* stream = nullptr;
    TTT_EMU_TRY(need_stream(handle, &stream));
    if (stream->legacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (stream->capture != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
    if (mode < CU_STREAM_CAPTURE_MODE_GLOBAL || mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    auto capture = std::make_shared<Capture>();
    capture->id = Gpu::get().next_id();
    capture->graph = std::move(graph);
    capture->mode = mode;
    capture->thread = this_thread();
    capture->origin = stream;
    Gpu::get().captures.push_back(capture);
    stream->capture = std::move(capture);
    stream->leaves = std::move(leaves);
    return CUDA_SUCCESS;
}

CUresult capture_info(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id,
                      CUgraph* graph, const CUgraphNode** nodes, size_t* count) {
    Stream* stream = nullptr;
    TTT_EMU_TRY(need_stream(handle, &stream));
    if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const Capture* capture = stream->capture.get();
    if (capture == nullptr) return give(status, CU_STREAM_CAPTURE_STATUS_NONE);
    *status =
        capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    if (capture->invalid) return CUDA_SUCCESS;
    give_if(id, capture->id);
    if (graph != nullptr) *graph = publish(capture->graph);
    static_assert(sizeof(GraphNode*) ==
                  sizeof(CUgraphNode));  // handles are addresses: the list serves as it is
    if (nodes != nullptr) *nodes = reinterpret_cast<const CUgraphNode*>(stream->leaves.data());
    give_if(count, stream->leaves.size());
    return CUDA_SUCCESS;
}

struct CallbackCall {
    CUstreamCallback call;
    CUstream stream;
    void* data;
};
void run_callback(void* data) {
    const std::unique_ptr<CallbackCall> call(static_cast<CallbackCall*>(data));
    call->call(call->stream, CUDA_SUCCESS, call->data);
}

}  // namespace

CUresult cuStreamCreate(CUstream* out, unsigned int flags) { return create(out, flags, 0); }
CUresult cuStreamCreateWithPriority(CUstream* out, unsigned int flags, int priority) {
    return create(out, flags, priority);
}
CUresult cuStreamDestroy_v2(CUstream handle) {
    Stream* stream = Gpu::get().streams.find(handle);
    if (stream == nullptr || stream->legacy || stream->per_thread) return CUDA_ERROR_INVALID_HANDLE;
    Context& context =
        *stream->context;  // its work still has to end before a context synchronisation does
    context.blocking_clock = std::max(context.blocking_clock, stream->clock);
    if (stream->capture != nullptr) stream->capture->invalid = true;
    Gpu::get().streams.remove(handle);
    return CUDA_SUCCESS;
}
CUresult cuStreamGetPriority(CUstream handle, int* priority) {
    Stream* stream = nullptr;
    TTT_EMU_TRY(need_stream(handle, &stream));
    return give(priority, stream->priority);
}
CUresult cuStreamGetFlags(CUstream handle, unsigned int* flags) {
    Stream* stream = nullptr;
    TTT_EMU_TRY(need_stream(handle, &stream));
    return give(flags, stream->flags);
}
CUresult cuStreamGetId(CUstream handle, unsigned long long* id) {
    Stream* stream = nullptr;
    TTT_EMU_TRY(need_stream(handle, &stream));
    return give(id, stream->id);
}
CUresult cuStreamGetDevice(CUstream handle, CUdevice* device) {
    Stream* stream = nullptr;
    TTT_EMU_TRY(need_stream(handle, &stream));
    return give(device, kOnlyDevice);
}
CUresult cuStreamGetCtx(CUstream handle, CUcontext* context) {
    Stream* stream = nullptr;
    TTT_EMU_TRY(need_stream(handle, &stream));
    return give(context, Gpu::get().handle(stream->context));
}
CUresult cuStreamGetCtx_v2(CUstream handle, CUcontext* context, CUgreenCtx* green) {
    give_if(green, nullptr);
    return api::cuStreamGetCtx(handle, context);
}
CUresult cuStreamQuery(CUstream handle) {
    Stream* stream = nullptr;
    TTT_EMU_TRY(need_stream(handle, &stream));
    if (stream->capture != nullptr) {
        invalidate(*stream->capture);
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    return CUDA_SUCCESS;
}
CUresult cuStreamSynchronize(CUstream handle) {
    Stream* stream = nullptr;
    TTT_EMU_TRY(need_stream(handle, &stream));
    if (stream->capture != nullptr) {
        invalidate(*stream->capture);
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (stream->legacy) TTT_EMU_TRY(refuse_legacy_in_capture());
    wait_for(*stream);
    return stream->context->sticky;
}
CUresult cuStreamWaitEvent(CUstream stream_handle, CUevent event_handle, unsigned int) {
    Event* event = nullptr;
    Stream* stream = nullptr;
    TTT_EMU_TRY(find_event(event_handle, &event));
    TTT_EMU_TRY(need_stream(stream_handle, &stream));
    if (event->capture != nullptr) {  // the stream joins that capture
        if (event->capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        if (stream->capture != nullptr && stream->capture != event->capture)
            return CUDA_ERROR_STREAM_CAPTURE_MERGE;
        if (stream->capture == nullptr) stream->leaves.clear();
        stream->capture = event->capture;
        for (GraphNode* node : event->nodes) {
            const auto& leaves = stream->leaves;
            if (std::find(leaves.begin(), leaves.end(), node) == leaves.end())
                stream->leaves.push_back(node);
        }
        return CUDA_SUCCESS;
    }
    if (stream->capture != nullptr) return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    if (event->recorded) stream->clock = std::max(stream->clock, event->time);
    return CUDA_SUCCESS;
}
CUresult cuStreamAddCallback(CUstream handle, CUstreamCallback call, void* data,
                             unsigned int flags) {
    Stream* stream = nullptr;
    TTT_EMU_TRY(need_stream(handle, &stream));
    if (call == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (stream->capture != nullptr) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    return submit(*stream, HostWork{run_callback, new CallbackCall{call, handle, data}});
}
CUresult cuStreamAttachMemAsync(CUstream handle, CUdeviceptr, size_t, unsigned int) {
    Stream* stream = nullptr;
    return need_stream(handle, &stream);
}

CUresult cuEventCreate(CUevent* out, unsigned int flags) {
    Context* context = nullptr;
    TTT_EMU_TRY(need_context(&context));
    auto made = std::make_unique<Event>();
    made->flags = flags;
    made->context = context;
    return give(out, Gpu::get().events.add(std::move(made)));
}
CUresult cuEventDestroy_v2(CUevent handle) {
    return Gpu::get().events.remove(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
CUresult cuEventRecord(CUevent event, CUstream stream) { return record(event, stream, false); }
CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags) {
    return record(event, stream, (flags & CU_EVENT_RECORD_EXTERNAL) != 0);
}
CUresult cuEventQuery(CUevent handle) {
    Event* event = nullptr;
    TTT_EMU_TRY(find_event(handle, &event));
    if (event->capture == nullptr) return CUDA_SUCCESS;
    invalidate(*event->capture);
    return CUDA_ERROR_CAPTURED_EVENT;
}
CUresult cuEventSynchronize(CUevent handle) {
    Event* event = nullptr;
    TTT_EMU_TRY(find_event(handle, &event));
    if (event->capture != nullptr) {
        invalidate(*event->capture);
        return CUDA_ERROR_CAPTURED_EVENT;
    }
    if (event->recorded) host_clock() = std::max(host_clock(), event->time);
    return event->context->sticky;
}
CUresult cuEventElapsedTime(float* out, CUevent first, CUevent second) {
    return elapsed(out, first, second);
}
CUresult cuEventElapsedTime_v2(float* out, CUevent first, CUevent second) {
    return elapsed(out, first, second);
}

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
    return begin(stream, std::make_shared<Graph>(), {}, mode);
}
CUresult cuStreamBeginCapture(CUstream stream) {
    return begin(stream, std::make_shared<Graph>(), {}, CU_STREAM_CAPTURE_MODE_GLOBAL);
}
CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph_handle,
                                     const CUgraphNode* dependencies, const CUgraphEdgeData*,
                                     size_t count, CUstreamCaptureMode mode) {
    auto graph = find_graph(graph_handle);
    if (graph == nullptr || (count > 0 && dependencies == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    std::vector<GraphNode*> leaves;
    for (size_t i = 0; i < count; ++i) {
        GraphNode* node = find_node(dependencies[i]);
        if (node == nullptr || node->graph != graph.get()) return CUDA_ERROR_INVALID_VALUE;
        leaves.push_back(node);
    }
    return begin(stream, std::move(graph), std::move(leaves), mode);
}
CUresult cuStreamEndCapture(CUstream handle, CUgraph* out) {
    Stream* stream = nullptr;
    TTT_EMU_TRY(need_stream(handle, &stream));
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto capture = stream->capture;
    if (capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
    if (capture->origin != stream) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != this_thread()) {
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    }
    // Whatever the joined streams captured last must lead to this stream.
    const std::vector<GraphNode*> ends = stream->leaves;
    const auto reaches = [&](const GraphNode* node) {
        std::vector<const GraphNode*> todo(ends.begin(), ends.end());
        for (size_t i = 0; i < todo.size(); ++i) {
            if (todo[i] == node) return true;
            for (const GraphNode* d : todo[i]->dependencies) {
                if (std::find(todo.begin(), todo.end(), d) == todo.end()) todo.push_back(d);
            }
        }
        return false;
    };
    bool joined = true;
    Gpu::get().streams.each([&](Stream& other) {
        if (other.capture != capture) return;
        for (const GraphNode* leaf : other.leaves) joined = joined && reaches(leaf);
        other.capture = nullptr;
        other.leaves.clear();
    });
    Gpu::get().events.each([&](Event& event) {
        if (event.capture != capture) return;
        event.capture = nullptr;
        event.nodes.clear();
    });
    *out = nullptr;
    std::erase_if(Gpu::get().captures, [&](const auto& weak) { return weak.lock() == capture; });
    if (capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (!joined) return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    *out = publish(capture->graph);
    return CUDA_SUCCESS;
}
CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
    return capture_info(handle, status, nullptr, nullptr, nullptr, nullptr);
}
CUresult cuStreamGetCaptureInfo(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id) {
    return capture_info(handle, status, id, nullptr, nullptr, nullptr);
}
CUresult cuStreamGetCaptureInfo_v2(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id,
                                   CUgraph* graph, const CUgraphNode** nodes, size_t* count) {
    return capture_info(handle, status, id, graph, nodes, count);
}
CUresult cuStreamGetCaptureInfo_v3(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id,
                                   CUgraph* graph, const CUgraphNode** nodes,
                                   const CUgraphEdgeData** edges, size_t* count) {
    give_if(edges, nullptr);
    return capture_info(handle, status, id, graph, nodes, count);
}
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
    if (mode == nullptr || *mode < CU_STREAM_CAPTURE_MODE_GLOBAL ||
        *mode > CU_STREAM_CAPTURE_MODE_RELAXED) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    std::swap(*mode, thread_capture_mode());
    return CUDA_SUCCESS;
}

}  // namespace ttt::emulator::api
