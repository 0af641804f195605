#include "session/contexts.h"

#include "base/log.h"
#include "session/driver_section.h"

namespace ttt::session {

ContextInfo* Contexts::find(CUcontext context) {
    for (auto& c : all_)
        if (c->context == context && !c->gone) return c.get();
    return nullptr;
}

ContextInfo* Contexts::add(CUcontext context, CUdevice device) {
    if (ContextInfo* known = find(context)) return known;
    const Driver& d = shared_.driver;
    const DriverSection section(shared_, nullptr, nullptr);
    shared_.in_use_context.store(context, std::memory_order_seq_cst);
    if (!section.ok() || d.cuCtxSetCurrent(context) != CUDA_SUCCESS) return nullptr;
    CUstreamCaptureMode relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
    d.cuThreadExchangeStreamCaptureMode(
        &relaxed);  // our thread keeps it: nothing here may disturb a capture
    auto info = std::make_unique<ContextInfo>();
    info->context = context;
    info->device = device;
    info->facts = read_device(d, device);
    auto* pool = new ContextPool;  // lives for ever: launching threads walk the list
    pool->context = context;
    bool ok = d.cuStreamCreate(&info->stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS &&
              d.cuEventCreate(&info->begin, CU_EVENT_DEFAULT) == CUDA_SUCCESS &&
              d.cuEventCreate(&info->end, CU_EVENT_DEFAULT) == CUDA_SUCCESS;
    for (Sample& s : pool->samples)
        ok = ok && d.cuEventCreate(&s.begin, CU_EVENT_DEFAULT) == CUDA_SUCCESS &&
             d.cuEventCreate(&s.end, CU_EVENT_DEFAULT) == CUDA_SUCCESS;
    if (!ok) {
        log::warn("no events or stream in context {}: its launches are not timed",
                  static_cast<void*>(context));
        pool->gone.store(true);
        return nullptr;
    }
    info->pool = pool;
    pool->next = shared_.pools.load(std::memory_order_relaxed);
    shared_.pools.store(pool, std::memory_order_release);
    all_.push_back(std::move(info));
    return all_.back().get();
}

void Contexts::gone(CUcontext context) {
    for (auto& c : all_)
        if (c->context == context) c->gone = true;
}

}  // namespace ttt::session
