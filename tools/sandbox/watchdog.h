// Ends the process when a launch does not. No call stops one kernel, and on some drivers the launch
// itself blocks, so a second thread watches.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace ttt::sandbox {

class Watchdog {
  public:
    // `on_hang` runs on the watchdog's thread while the armed thread is stuck; it must end the
    // process.
    explicit Watchdog(std::function<void()> on_hang);
    ~Watchdog();
    void arm(std::chrono::milliseconds limit);
    // After it returns, on_hang does not run for this arming.
    void disarm();

  private:
    void loop();
    std::function<void()> on_hang_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool armed_ = false, stop_ = false;
    std::chrono::steady_clock::time_point deadline_;
    std::thread thread_;
};

}  // namespace ttt::sandbox
