// The lease as the other processes see it: one page of shared memory, written by the program's
// session, read by tuner and sandbox before each launch of a proof run, with no round trip.
//
//   busy    set by every launch of the program (its one relaxed store), cleared by the session's
//           thread when it looks: not quiet means revoked at once, whatever else the page says.
//   until   the session's thread: a proof run that ends before this moment may start now; 0 = none.
//   beat    the session's thread, at every look: a page that has not moved for kStale belongs to a
//           session that is dead or stopped, and grants nothing.
//   proofs  the sandbox: odd while a proof run is on the GPU. The session reads it for its toll
//           account.
//
// Times are CLOCK_MONOTONIC nanoseconds, one clock for all processes of the machine. What a
// misbehaving peer writes here can only change when trials run, never what the program computes.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "base/fd.h"
#include "base/result.h"

namespace ttt::ipc {

struct LeaseWords {
    alignas(64) std::atomic<uint32_t> busy{0};
    alignas(64) std::atomic<uint64_t> beat_ns{0};
    std::atomic<uint64_t> until_ns{0};
    alignas(64) std::atomic<uint64_t> proofs{0};
};
static_assert(std::atomic<uint64_t>::is_always_lock_free, "shared between processes");

inline uint64_t lease_clock_ns() {
    return static_cast<uint64_t>(
        std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
}

class LeasePage {
  public:
    static constexpr std::chrono::milliseconds kStale{200};

    // A new page. Its descriptor has at least the number `lowest` and lives until forget_fd().
    static Result<LeasePage> create(int lowest);
    // A page made by another process. kProtocol when the descriptor is no memfd of its size.
    static Result<LeasePage> map(Fd fd);
    LeasePage(LeasePage&& other) noexcept { *this = std::move(other); }
    LeasePage& operator=(LeasePage&& other) noexcept;
    ~LeasePage();

    LeaseWords& words() const { return *words_; }
    int fd() const { return fd_.ours() ? fd_.get() : -1; }
    void forget_fd() { fd_.reset(); }  // the mapping stays

    // May `work` of GPU time start now? Any process; wrong only within the moment it takes to look.
    bool granted(std::chrono::nanoseconds work) const;

    // The sandbox, around each proof run.
    void begin_proof() const;
    void end_proof() const;  // also after a sandbox that was killed in the middle of one

  private:
    LeasePage() = default;
    Status attach();
    Fd fd_;
    LeaseWords* words_ = nullptr;
};

}  // namespace ttt::ipc
