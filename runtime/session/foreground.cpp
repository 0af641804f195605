#include "session/foreground.h"

#include <thread>

#include "base/hash.h"
#include "session/recording.h"

namespace ttt::session {
namespace {

constexpr uint32_t kSampledFirst = 2;  // launches that only show which scalars stay constant
constexpr auto kRegistrationWait = std::chrono::milliseconds(300);

uint64_t shape_key(const Launch& l) {
    const uint32_t words[] = {l.grid.x,  l.grid.y,  l.grid.z, l.block.x,
                              l.block.y, l.block.z, l.shared};
    uint64_t h = 1;
    for (uint32_t w : words) h = splitmix64(h ^ w);
    return h | 1;
}

Function::Shape* shape_of(Function* f, uint64_t key) {
    for (Function::Shape& s : f->shapes) {
        uint64_t seen = s.key.load(std::memory_order_relaxed);
        if (seen == 0 && s.key.compare_exchange_strong(seen, key, std::memory_order_relaxed))
            return &s;
        if (seen == key) return &s;
    }
    return nullptr;
}

bool all_decided(const Function* f) {
    for (const Function::Shape& s : f->shapes)
        if (s.key.load(std::memory_order_relaxed) == 0 ||
            s.decided.load(std::memory_order_relaxed) == 0)
            return false;
    return true;
}

}  // namespace

Foreground::Answer Foreground::consider(Shared& s, Function* f, const Launch& l, CUresult* result) {
    Function::Shape* shape = exhausted() ? nullptr : shape_of(f, shape_key(l));
    if (shape == nullptr) {
        if (exhausted() || all_decided(f))
            f->attention.fetch_and(~uint32_t{kForeground}, std::memory_order_relaxed);
        return Answer::kNothing;
    }
    if (shape->decided.load(std::memory_order_relaxed) != 0) return Answer::kNothing;
    if (shape->seen.fetch_add(1, std::memory_order_relaxed) < kSampledFirst) return Answer::kSample;
    if (capturing(s, l) || taken_.exchange(1, std::memory_order_acquire) != 0)
        return Answer::kNothing;
    const auto since = Clock::now();
    shape->decided.store(1, std::memory_order_relaxed);
    const Answer answer = hold(s, f, l, result);
    spend(since);
    taken_.store(0, std::memory_order_release);
    return answer;
}

Foreground::Answer Foreground::hold(Shared& s, Function* f, const Launch& l, CUresult* result) {
    const auto deadline = Clock::now() + std::chrono::nanoseconds(left_ns_.load());
    {
        // The sampled launches before this one are then complete, and the recording starts from
        // settled memory.
        const RelaxedCapture relaxed(s.driver);
        if (stream_api(s.driver, l.per_thread).synchronize(l.stream) != CUDA_SUCCESS)
            return Answer::kNothing;
    }
    if (!ask(s, f, l)) return Answer::kNothing;
    std::unique_lock lock(mutex_);
    bool launched = false;
    if (wait_while(lock, Phase::kAsked, deadline) && phase_ == Phase::kRecord) {
        SnapshotJob* job = job_;
        lock.unlock();
        launched = try_record(s, f, l, job, result);
        {
            const RelaxedCapture relaxed(s.driver);
            stream_api(s.driver, l.per_thread).synchronize(l.stream);
        }
        lock.lock();
        if (phase_ == Phase::kRecord) phase_ = Phase::kRecorded;
        // A launch that did not fit is not worth waiting for: the recording stays armed for a later
        // one.
        if (launched) wait_while(lock, Phase::kRecorded, deadline);
    }
    phase_ = Phase::kIdle;
    return launched ? Answer::kLaunched : Answer::kNothing;
}

bool Foreground::ask(Shared& s, Function* f, const Launch& l) {
    Request r;
    r.function = f;
    r.grid = l.grid;
    r.block = l.block;
    r.shared = l.shared;
    if (s.driver.cuCtxGetCurrent(&r.context) != CUDA_SUCCESS) return false;
    const ParamView view(f->layout, l.params, l.extra);
    r.params.resize(f->layout.bytes());
    if (!view.ok() || !view.pack(r.params)) return false;
    r.targets.resize(kMaxTargets);
    r.targets.resize(find_targets(s, f->layout, r.params.data(), r.targets.data(), kMaxTargets));
    const std::scoped_lock lock(mutex_);
    request_ = std::move(r);
    job_ = nullptr;
    phase_ = Phase::kAsked;
    return true;
}

bool Foreground::wait_registered(Shared& s, CUfunction handle) {
    if (exhausted() || s.hold_launches.load(std::memory_order_relaxed) == 0) return false;
    const auto since = Clock::now();
    bool found = false;
    while (!(found = s.functions.find(handle) != nullptr) &&
           Clock::now() - since < kRegistrationWait &&
           s.hold_launches.load(std::memory_order_relaxed) != 0)
        std::this_thread::sleep_for(std::chrono::microseconds(200));
    spend(since);
    return found;
}

void Foreground::spend(Clock::time_point since) {
    left_ns_.fetch_sub(
        std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - since).count());
}

bool Foreground::wait_while(std::unique_lock<std::mutex>& lock, Phase phase,
                            Clock::time_point deadline) {
    return changed_.wait_until(lock, deadline, [&] { return phase_ != phase; });
}

Foreground::Phase Foreground::phase() {
    const std::scoped_lock lock(mutex_);
    return phase_;
}

Foreground::Request Foreground::request() {
    const std::scoped_lock lock(mutex_);
    return request_;
}

void Foreground::record(SnapshotJob* job) {
    const std::scoped_lock lock(mutex_);
    if (phase_ != Phase::kAsked) return;
    job_ = job;
    phase_ = Phase::kRecord;
    changed_.notify_all();
}

void Foreground::release() {
    const std::scoped_lock lock(mutex_);
    if (phase_ == Phase::kIdle) return;
    phase_ = Phase::kDone;
    changed_.notify_all();
}

void Foreground::shut() {
    left_ns_.store(0);
    release();
}

}  // namespace ttt::session
