#include "session/driver.h"

namespace ttt::session {
namespace {
constexpr bool kMust = true;
constexpr bool kMay = false;

template <typename Fn>
bool take(Fn& field, const char* symbol, bool need, Driver::Resolve resolve, void* state) {
    field = reinterpret_cast<Fn>(resolve(state, symbol));
    return field != nullptr || !need;
}
}  // namespace

Result<Driver> Driver::load(Resolve resolve, void* state) {
    Driver d;
#define TTT_USES(need, symbol)                          \
    if (!take(d.symbol, #symbol, need, resolve, state)) \
        return make_error(Code::kNotFound, "the driver has no " #symbol);
#include "session/driver_uses.def"
#undef TTT_USES
    d.emulated = resolve(state, "ttt_emulator_profile") != nullptr;
    return d;
}

StreamApi stream_api(const Driver& d, bool per_thread) {
    if (per_thread && d.cuEventRecord_ptsz && d.cuStreamIsCapturing_ptsz &&
        d.cuMemcpyDtoDAsync_v2_ptsz && d.cuStreamSynchronize_ptsz)
        return {d.cuEventRecord_ptsz, d.cuStreamIsCapturing_ptsz, d.cuMemcpyDtoDAsync_v2_ptsz,
                d.cuStreamSynchronize_ptsz};
    return {d.cuEventRecord, d.cuStreamIsCapturing, d.cuMemcpyDtoDAsync_v2, d.cuStreamSynchronize};
}

}  // namespace ttt::session
