// When the session starts, and the C API.
#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cstring>

#include "hooks.h"
#include "ttt/ttt.h"

namespace ttt::shim {
namespace {

constexpr int kMaxDevices = 64;
struct Primary {
    std::atomic<CUcontext> context{nullptr};
    std::atomic<int> retained{0};
};
constinit std::array<Primary, kMaxDevices> g_primary{};
constinit std::atomic<bool> g_start_off{false};

void* resolve(void*, const char* name) { return real_symbol(name); }

}  // namespace

session::Shared* session_state() {
    if (session::Shared* s = session::running()) return s;
    if (session::g_state.load(std::memory_order_acquire) != session::State::kNotStarted)
        return nullptr;
    Dl_info info{};
    if (dladdr(reinterpret_cast<const void*>(&session_state), &info) == 0 ||
        info.dli_fname == nullptr)
        return nullptr;
    session::Shared* s = session::start(resolve, nullptr, info.dli_fname);
    if (s != nullptr && g_start_off.load()) s->variants_on.store(0);
    return s;
}

session::Shared* session_running() {
    session::Shared* s = session_state();
    if (s != nullptr) session::start_thread_once(*s);
    return s;
}

bool per_thread_stream(Slot slot) {
    const char* name = slot_name(slot);
    const size_t n = std::strlen(name);
    return n > 5 && std::strcmp(name + n - 5, "_ptsz") == 0;
}

void* substitute(void* found) {
    const Slot slot = find_by_real(found);
    return slot == Slot::kCount ? found : entry_address(slot);
}

void primary_retained(CUdevice device, CUcontext context) {
    session::Shared* s = session_state();
    if (s == nullptr || device < 0 || device >= kMaxDevices) return;
    Primary& p = g_primary[static_cast<size_t>(device)];
    if (p.retained.fetch_add(1) == 0) s->contexts.fetch_add(1, std::memory_order_relaxed);
    p.context.store(context);
}

void primary_leaving(session::Shared& s, CUdevice device, bool reset) {
    if (device < 0 || device >= kMaxDevices) return;
    Primary& p = g_primary[static_cast<size_t>(device)];
    if (!reset && p.retained.fetch_sub(1) != 1) return;
    const CUcontext context = p.context.load();
    if (context == nullptr) return;
    session::destroying_context(s, context);
    s.allocations.clear();
}

}  // namespace ttt::shim

extern "C" {

TTT_EXPORT int ttt_version(void) { return TTT_VERSION; }

TTT_EXPORT void ttt_enable(void) {
    ttt::shim::g_start_off.store(false);
    if (auto* s = ttt::session::running()) s->variants_on.store(1);
}

TTT_EXPORT void ttt_disable(void) {
    ttt::shim::g_start_off.store(true);
    if (auto* s = ttt::session::running()) s->variants_on.store(0);
}

TTT_EXPORT int ttt_status(ttt_status_info* info) {
    if (info == nullptr || info->size < sizeof(ttt_status_info)) return -1;
    using ttt::session::State;
    const State state = ttt::session::g_state.load();
    const ttt::session::Shared* s = ttt::session::running();
    ttt_status_info out{};
    out.size = info->size;
    out.state = state == State::kDisabled    ? 2
                : s == nullptr               ? 0
                : s->variants_on.load() == 0 ? 2
                                             : 1;
    if (s != nullptr) {
        out.tuner_connected = s->tuner_connected.load();
        out.kernels = s->kernels.load();
        out.launches = s->launches_total();
        out.variants_live = s->variants_live.load();
        out.variant_launches = s->variant_launches.load();
    }
    *info = out;
    return 0;
}
}
