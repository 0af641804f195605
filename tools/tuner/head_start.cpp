#include "tuner/head_start.h"

#include <fmt/format.h>

#include "base/log.h"
#include "measure/canary.h"

namespace ttt::tuner {
namespace {

// Reads the clock until the nanoseconds are over, 1024 times at most (20 to 60 us): a clock that
// stands still must not hold the program's stream.
constexpr char kPtx[] = R"(.version 6.4
.target {}
.address_size 64
.visible .entry {}(.param .u32 nanoseconds)
{{
  .reg .pred %p<2>;
  .reg .b32 %r<2>;
  .reg .b64 %rd<5>;
  ld.param.u32 %rd0, [nanoseconds];
  mov.u64 %rd1, %globaltimer;
  mov.b32 %r0, 0;
again:
  mov.u64 %rd2, %globaltimer;
  sub.s64 %rd3, %rd2, %rd1;
  add.s32 %r0, %r0, 1;
  setp.lt.u64 %p0, %rd3, %rd0;
  setp.lt.and.u32 %p0, %r0, 1024, %p0;
  @%p0 bra again;
  ret;
}}
)";

}  // namespace

std::vector<std::byte> head_start_module(compile::Compiler& compiler, const Program& program) {
    if (program.emulated) return {};
    // The lowest target that the toolkit and every supported device have in common.
    const std::string ptx = fmt::format(kPtx, "sm_75", measure::kHeadStartEntry);
    auto c = compiler.compile(ptx, measure::kHeadStartEntry, fmt::format("sm_{}", program.arch), {});
    if (c.ok()) return std::move(c->image);
    log::info("no head start for canaries: {}", c.error().str());
    return {};
}

}  // namespace ttt::tuner
