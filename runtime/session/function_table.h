// Handles the program launches → what we know about them. Read on every launch without locks;
// written by our thread only. Entries live as long as the table, also replaced ones: a launch may
// still hold one.
//
// A handle may be reused after its module is unloaded, so an entry counts only while its epoch is
// the current one. The unloading thread moves the epoch on *before* the driver unloads; our thread
// renews the entries that survive. In between every launch is simply the program's own.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "session/cuda_api.h"
#include "session/params.h"

namespace ttt::session {

struct DispatchSet;
struct SnapshotJob;

enum Attention : uint32_t {
    kHasDispatch = 1,    // a variant may serve launches
    kWantsSnapshot = 2,  // the next suitable launch is recorded
    kForeground = 4,     // not decided yet, and launches may be held for tuning
};

// A launch count in one cache line per few threads: threads that launch the same kernel side by
// side would otherwise take the line with the fields below from each other at every launch
// (measured: 80 ns more per launch with two threads).
class LaunchCount {
  public:
    static constexpr uint32_t kStripes = 8;
    // Not a read-modify-write: a lost count when over kStripes threads launch at once is cheaper
    // than a locked instruction on every launch. `stripe` < kStripes.
    void add(uint32_t stripe) {
        std::atomic<uint64_t>& n = stripe_[stripe].n;
        n.store(n.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
    uint64_t total() const {
        uint64_t sum = 0;
        for (const Stripe& s : stripe_) sum += s.n.load(std::memory_order_relaxed);
        return sum;
    }

  private:
    struct alignas(64) Stripe {
        std::atomic<uint64_t> n{0};
    };
    std::array<Stripe, kStripes> stripe_;
};

struct alignas(64) Function {
    // Read by every launch, seldom written.
    std::atomic<uint64_t> valid_epoch{0};  // 0: dead
    std::atomic<uint32_t> attention{0};
    CUfunction handle = nullptr;
    std::atomic<const DispatchSet*> dispatch{nullptr};
    std::atomic<SnapshotJob*> snapshot{nullptr};
    // Immutable once published.
    uint64_t kernel_id = 0;  // 0: could not be identified; only counted
    ParamLayout layout;
    CUcontext context = nullptr;  // the context it was first launched in
    bool is_kernel = false;       // a CUkernel: belongs to no context
    LaunchCount launches;         // written by every launch, hence in lines of its own

    // Foreground mode: shapes launched so far. A full table means that further shapes are not tuned
    // while blocking.
    struct Shape {
        std::atomic<uint64_t> key{0};  // hash of grid, block, shared; 0 = free
        std::atomic<uint32_t> seen{0};
        std::atomic<uint32_t> decided{0};
    };
    std::array<Shape, 8> shapes;
};

class FunctionTable {
  public:
    // Any thread. Null if unknown, dead or not renewed since the last unload.
    Function* find(CUfunction handle) const {
        Function* f = lookup(handle);
        return f != nullptr && f->valid_epoch.load(std::memory_order_acquire) == epoch() ? f
                                                                                         : nullptr;
    }
    // Any thread; the entry whatever its epoch.
    Function* lookup(CUfunction handle) const;
    uint64_t epoch() const { return epoch_.load(std::memory_order_acquire); }
    // Any thread, before the driver may free handles. Returns the new epoch.
    uint64_t advance_epoch() { return epoch_.fetch_add(1, std::memory_order_seq_cst) + 1; }

    // Our thread only, from here on.
    Function* insert(
        std::unique_ptr<Function> function);  // replaces a dead entry of the same handle
    // Makes every living entry valid up to `epoch`.
    void renew(uint64_t epoch);
    static void kill(Function* f) { f->valid_epoch.store(0, std::memory_order_release); }
    const std::vector<Function*>& all() const { return all_; }

  private:
    struct Slot {
        std::atomic<CUfunction> key{nullptr};
        std::atomic<Function*> entry{nullptr};
    };
    struct Slots {
        explicit Slots(size_t n) : mask(n - 1), slot(n) {}
        size_t mask;
        std::vector<Slot> slot;
    };
    static size_t hash(CUfunction f) {
        return static_cast<size_t>((reinterpret_cast<uintptr_t>(f) * 0x9E3779B97F4A7C15ull) >> 32);
    }
    static void place(Slots& slots, Function* f);

    std::atomic<uint64_t> epoch_{1};
    std::atomic<Slots*> slots_{nullptr};
    size_t used_ = 0;
    std::vector<Function*> all_;
    std::vector<std::unique_ptr<Function>> entries_;
    std::vector<std::unique_ptr<Slots>> generations_;  // readers may be in an old one
};

}  // namespace ttt::session
