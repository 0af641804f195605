// The one worker thread: site trials, one after the other.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace ttt::tuner {

class Pipeline {
  public:
    Pipeline() : thread_([this] { loop(); }) {}
    ~Pipeline() { stop(); }
    void add(std::function<void()> job);
    // Waits for the job under way, forgets the others.
    void stop();

  private:
    void loop();
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> jobs_;
    bool stop_ = false;
    std::thread thread_;
};

}  // namespace ttt::tuner
