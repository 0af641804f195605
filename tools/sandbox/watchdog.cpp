#include "sandbox/watchdog.h"

#include <utility>

namespace ttt::sandbox {

Watchdog::Watchdog(std::function<void()> on_hang)
    : on_hang_(std::move(on_hang)), thread_([this] { loop(); }) {}

Watchdog::~Watchdog() {
    {
        std::lock_guard lock(mutex_);
        stop_ = true;
    }
    changed_.notify_one();
    thread_.join();
}

void Watchdog::arm(std::chrono::milliseconds limit) {
    {
        std::lock_guard lock(mutex_);
        deadline_ = std::chrono::steady_clock::now() + limit;
        armed_ = true;
    }
    changed_.notify_one();
}

void Watchdog::disarm() {
    std::lock_guard lock(mutex_);
    armed_ = false;
}

void Watchdog::loop() {
    std::unique_lock lock(mutex_);
    while (!stop_) {
        if (!armed_) {
            changed_.wait(lock);
        } else if (std::chrono::steady_clock::now() < deadline_) {
            changed_.wait_until(lock, deadline_);
        } else {
            on_hang_();  // with the lock held: disarm() must not return any more
            return;
        }
    }
}

}  // namespace ttt::sandbox
