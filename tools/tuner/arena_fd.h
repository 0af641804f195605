// The descriptor of a snapshot's memory, which lives for as long as any descriptor of it is open.
// Used by the pipeline thread, closed by the event loop when the program needs the memory.
#pragma once

#include <mutex>
#include <utility>

#include "base/fd.h"

namespace ttt::tuner {

class ArenaFd {
  public:
    explicit ArenaFd(Fd fd) : fd_(std::move(fd)) {}
    void close() {
        const std::lock_guard lock(mutex_);
        fd_.reset();
    }
    // `use(int)` with the descriptor, -1 once closed; close() waits for it.
    template <typename Use>
    auto with(Use use) const {
        const std::lock_guard lock(mutex_);
        return use(fd_.get());
    }

  private:
    mutable std::mutex mutex_;
    Fd fd_;
};

}  // namespace ttt::tuner
