// `ttt bench launch`: runs the launch benchmark against the null driver.
#include <fmt/format.h>

#include <fstream>

#include "child.h"
#include "commands.h"
#include "installation.h"
#include "report.h"

namespace ttt::cli {

int bench_launch(bool json) {
    const Installation here = find_installation();
    if (here.bench_launch.empty()) return complain(kFailed, "ttt-bench-launch is not beside ttt");
    if (here.null_driver.empty())
        return complain(kFailed, "the null driver is not beside ttt (../null)");
    if (here.library.empty())
        return complain(kFailed, "libttt.so is not beside ttt (../lib); set TTT_LIBRARY");
    const TemporaryFolder scratch;
    if (!scratch.ok())
        return complain(kFailed, "no temporary folder: set TMPDIR to a writable one");
    ChildOptions child;
    child.command = {here.bench_launch, "--lib", here.library, "--driver", here.null_driver};
    child.stdout_file = scratch.file("launch.json");
    const auto ended = run_child(child);
    if (!ended.ok()) return complain(kFailed, ended.error().str());
    if (ended->exit_code != 0)
        return complain(kFailed, fmt::format("ttt-bench-launch ended with {}", ended->exit_code));
    std::ifstream in(child.stdout_file);
    const Json result = Json::parse(in, nullptr, false);
    if (result.is_discarded()) return complain(kFailed, "ttt-bench-launch printed no JSON");
    fmt::print("{}\n", json ? dump(result) : result.dump(2));
    return kOk;
}

}  // namespace ttt::cli
