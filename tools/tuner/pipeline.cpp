#include "tuner/pipeline.h"

#include <exception>

#include "base/log.h"

namespace ttt::tuner {

void Pipeline::add(std::function<void()> job) {
    {
        std::lock_guard lock(mutex_);
        jobs_.push_back(std::move(job));
    }
    changed_.notify_one();
}

void Pipeline::stop() {
    {
        std::lock_guard lock(mutex_);
        stop_ = true;
        jobs_.clear();
    }
    changed_.notify_one();
    if (thread_.joinable()) thread_.join();
}

void Pipeline::loop() {
    for (;;) {
        std::function<void()> job;
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [&] { return stop_ || !jobs_.empty(); });
            if (stop_) return;
            job = std::move(jobs_.front());
            jobs_.pop_front();
        }
        try {
            job();
        } catch (
            const std::exception& e) {  // out of memory, most likely: the next site may be smaller
            log::error("a site's trial ended early: {}", e.what());
        }
    }
}

}  // namespace ttt::tuner
