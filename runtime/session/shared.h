// State that the program's threads and ours share. One per process, made at the first module load
// or launch, never freed. What each member may be used for, and by whom, is said beside it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/config.h"
#include "ipc/lease_page.h"
#include "session/allocations.h"
#include "session/driver.h"
#include "session/event.h"
#include "session/event_queue.h"
#include "session/function_table.h"
#include "session/memory_request.h"
#include "session/sample.h"

namespace ttt::session {

class Foreground;

// Values of LeaseWords::busy, cleared by our thread when it looks.
enum Arrival : uint32_t { kQuiet = 0, kLaunched = 1, kSynchronised = 2 };

struct Shared {
    // ---- launch path: written by launching threads only when the value changes ----
    // Its word `busy` is what launches stamp; the rest is for the other processes.
    ipc::LeaseWords* lease = &own_lease;
    alignas(64) std::atomic<uint32_t> sample_armed{
        0};  // n: the n-th launch from now takes it; our thread sets it at most once per ms
    alignas(64) std::atomic<uint32_t> variants_on{1};  // 0: every launch is the program's own
    std::atomic<uint32_t> hold_launches{
        0};                             // foreground mode: unknown functions wait to be registered
    std::atomic<uint32_t> contexts{0};  // contexts created or retained so far
    std::atomic<uint32_t> captures{0};  // stream captures begun and not ended
    // Streams that programmatic dependent launches were seen on: nothing of ours goes between two
    // launches there.
    std::array<std::atomic<const void*>, 8> dependent_streams{};
    std::atomic<uint32_t> dependent_overflow{
        0};  // more of them than there is room for: no stream is timed
    FunctionTable functions;
    alignas(64) std::atomic<int32_t> synchronising{0};  // threads inside a synchronising call
    std::atomic<uint64_t> variant_failures{0};

    Allocations allocations;   // program threads only
    EventQueue<Event> events;  // program threads push, ours drains
    // Handles already reported as unknown, so that a launch loop reports each once; our thread
    // empties it.
    std::array<std::atomic<const void*>, 256> missed{};
    std::atomic<ContextPool*> pools{nullptr};  // our thread adds, any thread reads
    Foreground* foreground = nullptr;          // set before the session is visible; null when off

    // ---- handshake: the program must not free what our thread is using this very moment ----
    std::atomic<const void*> in_use_context{nullptr};
    std::atomic<const void*> in_use_module{nullptr};
    MemoryRequest memory;
    std::atomic<uint32_t> leaving{
        0};  // exit handler or fork child: our thread makes no further driver call

    std::atomic<uint32_t> stopped{0};  // our thread has left

    // ---- what a status query reads ----
    std::atomic<uint64_t> kernels{0}, launches{0};  // as our thread last summed them
    std::atomic<uint64_t> variant_launches{0};
    uint64_t launches_total() const { return launches.load(std::memory_order_relaxed); }
    std::atomic<uint64_t> variants_live{0};
    std::atomic<int> tuner_connected{0};
    std::atomic<int> thread_started{0};

    ipc::LeaseWords own_lease;  // where there is no page to share

    // ---- immutable after start ----
    std::optional<ipc::LeasePage> lease_page;
    Driver driver;
    Config config;
    std::string own_path;                  // libttt.so, to find the tuner beside it
    std::vector<std::string> environment;  // of the program at start
};

// A launch as the program made it.
struct Launch {
    CUfunction function = nullptr;
    Dim3 grid, block;
    uint32_t shared = 0;
    CUstream stream = nullptr;
    void* const* params = nullptr;
    void* const* extra = nullptr;
    bool per_thread = false;
    // No attribute or form that would tie the launch to its neighbours or to hardware features: may
    // be timed, recorded and served by a variant.
    bool plain = true;
    // Calls the real driver with this launch's own form; only function and geometry may differ.
    CUresult (*call)(void* state, CUfunction function, const Dim3& grid, const Dim3& block,
                     uint32_t shared) = nullptr;
    void* state = nullptr;

    CUresult original() const { return call(state, function, grid, block, shared); }
};

}  // namespace ttt::session
