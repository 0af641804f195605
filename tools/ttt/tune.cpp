// `ttt tune`: the whole loop on one kernel. The program that is tuned is ttt-kernel-loop; nothing
// is special about it.
#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "child.h"
#include "commands.h"
#include "installation.h"
#include "kernel_file.h"
#include "report.h"
#include "tuner_socket.h"

namespace ttt::cli {
namespace {

constexpr double kReportSeconds = 20;

bool named(const Json& site, const std::string& entry) {
    return site.is_object() && site.contains("name") && site["name"].is_string() &&
           site["name"].get<std::string>() == entry;
}

// True once the tuner says that nothing more will happen to the kernel.
bool finished(pid_t pid, const std::string& entry) {
    if (!has_tuner(pid)) return false;
    const auto answer = ask_tuner(pid, "status", 1000);
    if (!answer.ok()) return false;
    const Json status = Json::parse(*answer, nullptr, false);
    if (!status.is_object() || !status.contains("sites") || !status["sites"].is_array())
        return false;
    bool seen = false;
    for (const auto& site : status["sites"]) {
        if (!named(site, entry)) continue;
        if (!is_final(site)) return false;
        seen = true;
    }
    return seen;
}

// What stops the user before anything runs: 2 for the arguments, 1 for the kernel.
int check_inputs(const KernelOptions& o, std::string& entry) {
    const auto launch = spec::read_file(o.spec);
    if (!launch.ok()) return complain(kUsage, launch.error().str());
    const auto text = read_text_file(o.file);
    if (!text.ok()) return complain(kUsage, text.error().str());
    const auto module = read_module(o.file);
    if (!module.ok())
        return complain(kFailed, fmt::format("{} (line {}, column {})", module.error().str(),
                                             module.error().line, module.error().column));
    const auto function = find_entry(*module, launch->entry);
    if (!function.ok()) return complain(kUsage, function.error().str());
    const auto params = spec::pack_params(*module, **function, *launch, place_buffers(*launch));
    if (!params.ok()) return complain(kUsage, params.error().str());
    entry = launch->entry;
    return kOk;
}

ChildOptions loop_under_ttt(const KernelOptions& o, const Installation& here,
                            const TemporaryFolder& scratch, const std::string& entry) {
    ChildOptions child;
    // Room past the budget for the canary and commit, which need launches.
    child.command = {
        here.kernel_loop, o.file,  o.spec, "--seconds", fmt::format("{}", o.budget + 10),
        "--check",        "--json"};
    child.stdout_file = scratch.file("loop.json");
    child.environment = {{"LD_PRELOAD", prepend(here.library, environment("LD_PRELOAD"))},
                         {"TTT_FOREGROUND", fmt::format("{}", o.budget)},
                         {"TTT_BUDGET", fmt::format("{}", o.budget)},
                         {"TTT_MODE", "apply"},
                         {"TTT_REPORT", scratch.file("report.json")}};
    if (!o.emulate.empty()) {
        child.environment["LD_LIBRARY_PATH"] =
            prepend(here.emulator, environment("LD_LIBRARY_PATH"));
        child.environment["TTT_EMU_PROFILE"] = o.emulate;
    }
    // The loop ends by itself; a launch that outlasts it all cannot be ended otherwise.
    const auto last =
        std::chrono::steady_clock::now() + std::chrono::duration<double>(o.budget + 20);
    // Told once: a second SIGTERM would cut off what it still has to do.
    child.tick = [entry, last, told = false](pid_t pid) mutable {
        if (std::chrono::steady_clock::now() > last) return SIGKILL;
        if (told || !finished(pid, entry)) return 0;
        told = true;
        return SIGTERM;
    };
    return child;
}

Json read_loop_result(const std::string& path) {
    std::ifstream in(path);
    Json j = in ? Json::parse(in, nullptr, false) : Json();
    return j.is_object() ? j : Json::object();
}

int print_site(const Json& site, bool json) {
    if (json)
        fmt::print("{}\n", dump(site));
    else
        fmt::print("{}", table(Json::array({site})));
    return kOk;
}

}  // namespace

int tune(const KernelOptions& o) {
    std::string entry;
    if (const int rc = check_inputs(o, entry); rc != kOk) return rc;
    const Installation here = find_installation();
    if (const std::string problem = preload_problem(here); !problem.empty())
        return complain(kFailed, problem);
    if (here.kernel_loop.empty()) return complain(kFailed, "ttt-kernel-loop is not beside ttt");
    if (!o.emulate.empty() && here.emulator.empty())
        return complain(kFailed, "--emulate: the emulated driver is not beside ttt (../emulator)");
    const TemporaryFolder scratch;
    if (!scratch.ok())
        return complain(kFailed, "no temporary folder: set TMPDIR to a writable one");
    const auto ended = run_child(loop_under_ttt(o, here, scratch, entry));
    if (!ended.ok()) return complain(kFailed, ended.error().str());
    const Json loop = read_loop_result(scratch.file("loop.json"));
    if (ended->exit_code != 0 && !loop.contains("identical"))
        return kFailed;  // the loop said why on stderr
    const auto report = wait_for_report(scratch.file("report.json"), ended->pid, kReportSeconds);
    if (!report.ok()) return complain(kFailed, report.error().str());
    for (const auto& raw : (*report)["sites"]) {
        if (!named(raw, entry)) continue;
        Json site = complete_site(raw);
        // The program's own view: outputs of the last launch against the first, original one. A
        // kernel that was left alone may still differ: it keeps a count of its own, or races.
        const bool identical = loop.value("identical", false);
        const bool touched = site["state"] != "ineligible" && site["state"] != "failed";
        if (!identical && touched) site["bit_exact"] = false;
        print_site(site, o.json);
        return identical || !touched
                   ? kOk
                   : complain(kFailed, "the outputs after tuning differ from those before");
    }
    return complain(kFailed, "the report does not mention " + entry);
}

}  // namespace ttt::cli
