// One variant behind its guard, in the form a launch checks. Immutable once published but for its
// mode and counters; never freed. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/dim3.h"
#include "base/result.h"
#include "messages_generated.h"
#include "session/allocations.h"
#include "session/cuda_api.h"
#include "session/params.h"

namespace ttt::session {

enum class DispatchMode : uint32_t {
    kCanary,   // timed launches alternate; all others are the original's
    kWaiting,  // canary over, the tuner decides; the original serves
    kLive,
    kRetired,
};

struct Dispatch {
    struct Scalar {
        ParamField field;
        std::vector<std::byte> bytes;
    };
    struct Aligned {
        ParamField field;
        uint64_t mask;
    };
    struct Overlap {
        ParamField read, write;
    };

    uint64_t site_id = 0, variant_id = 0;
    CUfunction function = nullptr;  // the variant's, in `context`
    CUcontext context = nullptr;
    Dim3 grid, block;
    uint32_t shared = 0;
    std::optional<Dim3> need_grid, need_block;
    std::optional<uint32_t> need_shared;
    std::vector<Scalar> scalars;
    std::vector<Aligned> aligned;
    std::vector<Overlap> overlaps;

    bool head_start = false;  // timed launches begin with a short wait (head_start.h)

    mutable std::atomic<DispatchMode> mode{DispatchMode::kRetired};
    mutable std::atomic<uint32_t> permit{0};  // canary: the next launch may be timed (permits.h)
    mutable std::atomic<uint64_t> turns{0};   // canary: launches timed; each two are a pair
    mutable std::atomic<uint64_t> served{0};  // launches by the variant
    mutable std::atomic<uint32_t> failed{0};  // launches of the variant that the driver refused

    // Goes on to `next` unless retired: a launching thread may retire it at any moment, for good.
    bool enter(DispatchMode next) const;

    // Translates a guard (null: no condition) for a kernel's parameters; kInvalidArgument if a
    // condition names bytes outside one parameter. Geometry the guard leaves open stays as `out`
    // has it.
    static Status compile_guard(const ipc::GuardDef* guard, const ParamLayout& layout,
                                Dispatch* out);
    // Precondition: view.ok(). No allocation; locks the allocation table only on the first launch
    // with new pointers.
    bool holds(const Dim3& g, const Dim3& b, uint32_t shared_bytes, const ParamView& view,
               const Allocations& allocations) const;

  private:
    bool distinct(const ParamView& view, const Allocations& allocations) const;
};

// Variants of one function, most specific first. Replaced as a whole.
struct DispatchSet {
    std::vector<const Dispatch*> variants;
};

}  // namespace ttt::session
