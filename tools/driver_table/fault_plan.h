// Injected failures of the emulated and the null driver, from the environment variable
// TTT_EMU_FAULT: rules separated by ';'.
//   NAME:N=CODE     the Nth call (from 1) of driver function NAME returns CUresult CODE and does
//   nothing.
//                   NAME is a base name ("cuMemAlloc": every version and stream form counts) or an
//                   exported symbol
//                   ("cuMemAlloc_v2"). "N+" = the Nth and every later call, "*" = every call.
//   launch:N=fault  the Nth kernel (over all launch forms, graph nodes included) hits an illegal
//   address: the sticky
//                   error 700. launch:N=CODE: that launch call returns CODE and the context stays
//                   healthy.
//   copy:slow=F     copies take F times as long on the simulated clock (emulated driver only). F >
//   0. launch:slow=F   likewise kernels.
// Example: TTT_EMU_FAULT="cuMemAlloc:3=2;launch:5=fault;copy:slow=10". A rule that does not parse
// is named in the problem text and ignored.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

namespace ttt::driver_table {

class FaultPlan {
  public:
    static constexpr int kFault = -1;  // the kernel itself faults

    FaultPlan() = default;
    explicit FaultPlan(std::string_view text);

    bool empty() const { return rules_.empty(); }
    // Counts one call; the code to fail with, or 0. Thread-safe.
    int on_call(std::string_view base, std::string_view symbol);
    // Counts one kernel; kFault, a CUresult code, or 0. Thread-safe.
    int on_launch();
    double copy_slowdown() const { return copy_slowdown_; }
    double launch_slowdown() const { return launch_slowdown_; }
    const std::string& problems() const { return problems_; }  // empty when every rule parsed

  private:
    struct Rule {
        std::string name;
        uint64_t first = 1, last = 1;
        int code = 0;
        std::atomic<uint64_t> calls{0};
    };
    bool add(std::string_view rule);
    bool add_slowdown(std::string_view name, std::string_view factor);
    static int count(Rule& rule);

    std::deque<Rule> rules_;
    double copy_slowdown_ = 1, launch_slowdown_ = 1;
    std::string problems_;
};

// The plan of this process: TTT_EMU_FAULT read once, at first use.
FaultPlan& process_fault_plan();

}  // namespace ttt::driver_table
