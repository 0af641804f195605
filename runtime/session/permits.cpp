#include "session/permits.h"

#include "base/hash.h"

namespace ttt::session {
namespace {
constexpr auto kEvery = std::chrono::milliseconds(1);
constexpr uint32_t kMostPassed = 20;  // then another one's turn comes: this kernel is rare
constexpr uint64_t kGeneral = 8;      // every eighth permit is anybody's
constexpr uint64_t kMostSkipped = 8;  // launches, less one, that a general permit lets pass
}  // namespace

bool Permits::out(bool arrived) {
    if (shared_.sample_armed.load(std::memory_order_relaxed) != 0) return true;
    if (given_ == nullptr) return false;
    if (given_->permit.load(std::memory_order_relaxed) == 0) {
        given_ = nullptr;
        return false;
    }
    passed_ += arrived ? 1 : 0;
    if (passed_ < kMostPassed &&
        given_->mode.load(std::memory_order_relaxed) == DispatchMode::kCanary)
        return true;
    given_->permit.store(0, std::memory_order_relaxed);
    given_ = nullptr;
    return false;
}

const Dispatch* Permits::next(std::span<const Dispatch* const> canaries) {
    ++turn_;
    if (canaries.empty() || turn_ % kGeneral == 0) return nullptr;
    const Dispatch* d = canaries[turn_ % canaries.size()];
    return d->mode.load(std::memory_order_relaxed) == DispatchMode::kCanary ? d : nullptr;
}

void Permits::step(Clock::time_point now, bool arrived, std::span<const Dispatch* const> canaries) {
    if (out(arrived) || now - last_ < kEvery) return;
    last_ = now;
    passed_ = 0;
    given_ = next(canaries);
    if (given_ != nullptr)
        given_->permit.store(1, std::memory_order_relaxed);
    else
        shared_.sample_armed.store(static_cast<uint32_t>(1 + splitmix64(turn_) % kMostSkipped),
                                   std::memory_order_relaxed);
}

void Permits::withdraw() {
    shared_.sample_armed.store(0);
    if (given_ != nullptr) given_->permit.store(0);
    given_ = nullptr;
}

}  // namespace ttt::session
