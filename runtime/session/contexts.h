// What we made inside each of the program's contexts: event slots, one non-blocking stream, two
// timing events. Our thread only.
#pragma once

#include <memory>
#include <vector>

#include "session/shared.h"
#include "session/tuner_link.h"

namespace ttt::session {

struct ContextInfo {
    CUcontext context = nullptr;
    CUdevice device = -1;
    DeviceFacts facts;
    ContextPool* pool = nullptr;
    CUstream stream = nullptr;
    CUevent begin = nullptr, end = nullptr;
    bool gone = false;
};

class Contexts {
  public:
    explicit Contexts(Shared& s) : shared_(s) {}
    // Null if the driver refuses; tried again at the next event of the context.
    ContextInfo* add(CUcontext context, CUdevice device);
    ContextInfo* find(CUcontext context);
    void gone(CUcontext context);
    bool empty() const { return all_.empty(); }

  private:
    Shared& shared_;
    std::vector<std::unique_ptr<ContextInfo>> all_;
};

}  // namespace ttt::session
