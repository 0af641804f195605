// Our thread's side of a handshake: while a section is open the program's unload or destroy hook of
// the same object waits (bounded). Sections are short; a section that is not ok() must not touch
// the object.
#pragma once

#include <chrono>
#include <thread>

#include "session/shared.h"

namespace ttt::session {

// Stands for every module: registration asks the driver about handles whose module is not known
// yet.
inline const void* const kAnyModule = reinterpret_cast<const void*>(1);

class DriverSection {
  public:
    // Makes `context` current on our thread.
    DriverSection(Shared& s, CUcontext context, const void* module) : shared_(s) {
        s.in_use_context.store(context, std::memory_order_seq_cst);
        s.in_use_module.store(module, std::memory_order_seq_cst);
        ok_ = s.leaving.load(std::memory_order_seq_cst) == 0 && alive(context) &&
              (context == nullptr || s.driver.cuCtxSetCurrent(context) == CUDA_SUCCESS);
    }
    ~DriverSection() {
        shared_.in_use_module.store(nullptr, std::memory_order_seq_cst);
        shared_.in_use_context.store(nullptr, std::memory_order_seq_cst);
    }
    DriverSection(const DriverSection&) = delete;
    DriverSection& operator=(const DriverSection&) = delete;
    bool ok() const { return ok_; }

  private:
    bool alive(CUcontext context) const {
        for (ContextPool* p = shared_.pools.load(std::memory_order_acquire); p != nullptr;
             p = p->next)
            if (p->context == context) return !p->gone.load(std::memory_order_seq_cst);
        return true;  // no pool yet: the caller checked otherwise
    }
    Shared& shared_;
    bool ok_ = false;
};

// The program's side. Gives up after a second: an unload that hangs would be worse than what it
// protects from.
template <typename Busy>
void wait_until_unused(Busy busy, std::chrono::milliseconds most = std::chrono::seconds(1)) {
    const auto deadline = std::chrono::steady_clock::now() + most;
    while (busy() && std::chrono::steady_clock::now() < deadline)
        std::this_thread::sleep_for(std::chrono::microseconds(50));
}

}  // namespace ttt::session
