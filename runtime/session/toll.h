// The toll account: how many of the program's requests trials of ours may touch. A request is what
// the program launches after a pause; it counts as touched when it came while a trial was on the
// GPU, or after a pause that another process used (it pays the context switch, about 140 us on an
// H200, even if that trial has ended). One thread.
#pragma once

#include <cstdint>

namespace ttt::session {

class Toll {
  public:
    // `share` of all requests may be touched, 0..1; the first few are free, or nothing would start.
    explicit Toll(double share) : share_(share) {}
    void request(bool touched) {
        ++requests_;
        touched_ += touched ? 1 : 0;
    }
    bool open() const {
        return static_cast<double>(touched_) < kFree + share_ * static_cast<double>(requests_);
    }
    uint64_t requests() const { return requests_; }
    uint64_t touched() const { return touched_; }

  private:
    static constexpr double kFree = 16;
    double share_;
    uint64_t requests_ = 0, touched_ = 0;
};

}  // namespace ttt::session
