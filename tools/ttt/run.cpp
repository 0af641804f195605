// `ttt run`: a program under libttt.so, then the tuner's report.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "child.h"
#include "commands.h"
#include "installation.h"
#include "report.h"

namespace ttt::cli {
namespace {

constexpr double kReportSeconds =
    15;  // the tuner may be in the middle of a compile when the program ends

void print_report(const Json& report, bool json) {
    if (json) {
        fmt::print("{}\n", dump(report));
        return;
    }
    // stdout belongs to the program that ran.
    fmt::print(stderr, "{}", table(report["sites"]));
    if (report["sites"].empty())
        fmt::print(stderr, "no kernel took a share of GPU time worth tuning\n");
}

}  // namespace

int run(const RunOptions& options) {
    const Installation here = find_installation();
    if (const std::string problem = preload_problem(here); !problem.empty())
        return complain(kFailed, problem);
    const TemporaryFolder scratch;
    if (!scratch.ok())
        return complain(kFailed, "no temporary folder: set TMPDIR to a writable one");
    std::error_code ignored;
    const std::string report_path =
        options.report.empty() ? scratch.file("report.json")
                               : std::filesystem::absolute(options.report, ignored).string();
    if (!options.report.empty()) {
        const auto kind = std::filesystem::status(report_path, ignored).type();
        if (kind != std::filesystem::file_type::not_found &&
            kind != std::filesystem::file_type::regular)
            return complain(kUsage, "--report: " + options.report + " is not a regular file");
        std::filesystem::remove(report_path, ignored);  // never show an old one as new
    }
    ChildOptions child;
    child.command = options.command;
    child.environment["LD_PRELOAD"] = prepend(here.library, environment("LD_PRELOAD"));
    child.environment["TTT_REPORT"] = report_path;
    if (!options.mode.empty()) child.environment["TTT_MODE"] = options.mode;
    if (options.foreground > 0)
        child.environment["TTT_FOREGROUND"] = fmt::format("{}", options.foreground);
    if (!options.emulate.empty()) {
        if (here.emulator.empty())
            return complain(kFailed,
                            "--emulate: the emulated driver is not beside ttt (../emulator)");
        child.environment["LD_LIBRARY_PATH"] =
            prepend(here.emulator, environment("LD_LIBRARY_PATH"));
        child.environment["TTT_EMU_PROFILE"] = options.emulate;
    }
    std::fflush(nullptr);
    const auto ended = run_child(child);
    if (!ended.ok())
        return complain(ended.error().code == Code::kNotFound ? 127 : 126, ended.error().str());
    const auto report = wait_for_report(report_path, ended->pid, kReportSeconds);
    if (report.ok()) {
        print_report(*report, options.json);
        return ended->exit_code;
    }
    complain(kOk, report.error().str());
    // Whoever asked for a file gets one: a program of a few milliseconds is over before the tuner
    // has heard of it.
    if (!options.report.empty())
        std::ofstream(report_path) << dump(Json{{"sites", Json::array()},
                                                {"reason", report.error().message}})
                                   << '\n';
    return ended->exit_code;
}

}  // namespace ttt::cli
