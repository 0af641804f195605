// exec_driver: the instruction tests on the CUDA driver that is there, real or emulated.
//   exec_driver [--json FILE] [--timeout S] FILE.ptx|FOLDER…
// Prints each failure (file, form, expected, got), each skip with its reason, and totals. Exit
// code: 0 = nothing failed, 1 = something did, 2 = wrong arguments or no GPU. Tests run in a child
// process, because a fault ends its CUDA context for good and a hang cannot be ended any other way;
// the next child goes on with the next test.
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "instruction_test.h"
#include "kernel_loop/device.h"
#include "ptx/parser.h"

namespace ttt::test {
namespace {

using Json = nlohmann::json;
using kernel_loop::Device;
using kernel_loop::Kernel;

struct Options {
    std::vector<std::string> files;
    std::string json;
    double timeout_seconds = 60;  // per test
};

[[noreturn]] void usage_error(const std::string& what) {
    fmt::print(stderr, "exec_driver: {}\n", what);
    std::exit(2);
}

void add_files(const std::string& path, std::vector<std::string>& files) {
    std::error_code error;
    if (!std::filesystem::is_directory(path, error)) return files.push_back(path);
    for (const auto& e : std::filesystem::directory_iterator(path))
        if (e.path().extension() == ".ptx") files.push_back(e.path().string());
}

Options parse_arguments(int argc, char** argv) {
    Options o;
    for (int i = 1; i < argc; ++i) {
        const std::string a = argv[i];
        if (a == "--json" && i + 1 < argc)
            o.json = argv[++i];
        else if (a == "--timeout" && i + 1 < argc)
            o.timeout_seconds = std::atof(argv[++i]);
        else if (a.starts_with("--"))
            usage_error("option '" + a + "' is unknown or lacks its value");
        else
            add_files(a, o.files);
    }
    if (o.files.empty() || o.timeout_seconds <= 0)
        usage_error("usage: exec_driver [--json FILE] [--timeout S] FILE.ptx|FOLDER…");
    std::sort(o.files.begin(), o.files.end());
    return o;
}

// In the child ------------------------------------------------------------------------------------

// "sm_90a" → 90.
uint32_t arch_of(const ptx::Module& module) {
    const std::string target(module.target);
    return target.starts_with("sm_") ? static_cast<uint32_t>(std::atoi(target.c_str() + 3)) : 0;
}

Result<std::vector<Difference>> run_on_gpu(const InstructionTest& test, const Device& device,
                                           std::unique_ptr<Kernel>& kernel) {
    TTT_TRY(const ptx::Module module, ptx::parse(test.ptx));
    if (arch_of(module) > device.arch)
        return make_error(Code::kUnsupported, fmt::format("needs sm_{}, the GPU is sm_{}",
                                                          arch_of(module), device.arch));
    // The one before goes only now: the context lives as long as any kernel does.
    TTT_TRY(kernel, Kernel::create(test.ptx, test.launch));
    TTT_CHECK_OK(kernel->refill());
    TTT_CHECK_OK(kernel->launch());
    TTT_TRY(auto contents, kernel->outputs());
    std::vector<std::vector<std::byte>> buffers;
    size_t next = 0;
    for (const auto& a : test.launch.args)
        buffers.push_back(a.kind == spec::Argument::Kind::kBuffer ? std::move(contents[next++])
                                                                  : std::vector<std::byte>());
    return differences(test, buffers);
}

Json verdict_of(const std::string& file, const Device& device, std::unique_ptr<Kernel>& kernel) {
    Json out{{"file", std::filesystem::path(file).filename().string()}, {"forms", 0}};
    const auto fail = [&](const std::string& why) {
        out["verdict"] = "fail";
        out["reason"] = why;
        return out;
    };
    const auto test = read_instruction_test(file);
    if (!test.ok()) return fail(test.error().str());
    out["forms"] = test->forms;
    const auto wrong = run_on_gpu(*test, device, kernel);
    if (!wrong.ok() && wrong.error().code == Code::kUnsupported) {
        out["verdict"] = "skip";
        out["reason"] = wrong.error().str();
        return out;
    }
    if (!wrong.ok()) return fail(wrong.error().str());
    out["verdict"] = wrong->empty() ? "pass" : "fail";
    for (const Difference& d : *wrong)
        out["differences"].push_back({{"arg", d.arg},
                                      {"offset", d.offset},
                                      {"form", d.form},
                                      {"wrong", d.wrong},
                                      {"expected", d.expected},
                                      {"got", d.got},
                                      {"text", describe(d)}});
    return out;
}

void send(int fd, const Json& message) {
    const std::string line = message.dump() + "\n";
    for (size_t done = 0; done < line.size();) {
        const ssize_t n = ::write(fd, line.data() + done, line.size() - done);
        if (n <= 0) ::_exit(3);
        done += static_cast<size_t>(n);
    }
}

[[noreturn]] void child(const Options& o, size_t first, int fd) {
    const auto device = Kernel::device();
    if (!device.ok()) {
        send(fd, {{"no_gpu", device.error().str()}});
        ::_exit(0);
    }
    send(fd,
         {{"device", device->name}, {"arch", device->arch}, {"driver", device->driver_version}});
    std::unique_ptr<Kernel> kernel;
    for (size_t i = first; i < o.files.size(); ++i) {
        const Json verdict = verdict_of(o.files[i], *device, kernel);
        send(fd, verdict);
        // After an error of the driver its context may be gone.
        if (verdict["verdict"] == "fail" && verdict.contains("reason")) ::_exit(0);
    }
    ::_exit(0);
}

// In the parent -----------------------------------------------------------------------------------

// Lines of a child, each within the time limit of one test.
class Lines {
  public:
    Lines(int fd, double timeout_seconds)
        : fd_(fd), timeout_ms_(static_cast<int>(timeout_seconds * 1e3)) {}
    enum class Got : uint8_t { kLine, kEnd, kTimeout };
    Got next(std::string& line) {
        for (;;) {
            if (const size_t end = text_.find('\n'); end != std::string::npos) {
                line = text_.substr(0, end);
                text_.erase(0, end + 1);
                return Got::kLine;
            }
            pollfd p{fd_, POLLIN, 0};
            if (::poll(&p, 1, timeout_ms_) == 0) return Got::kTimeout;
            char bytes[4096];
            const ssize_t n = ::read(fd_, bytes, sizeof bytes);
            if (n <= 0) return Got::kEnd;
            text_.append(bytes, static_cast<size_t>(n));
        }
    }

  private:
    int fd_;
    int timeout_ms_;
    std::string text_;
};

std::string how_it_ended(int status) {
    if (WIFSIGNALED(status))
        return fmt::format("the test's process died of signal {}", WTERMSIG(status));
    return fmt::format("the test's process left with exit code {}", WEXITSTATUS(status));
}

// Runs tests from `first` on in a new child; adds verdicts, at least one.
void run_child(const Options& o, size_t first, Json& results, Json& device) {
    int ends[2];
    if (::pipe(ends) != 0) usage_error("no pipe: too many open files");
    const pid_t pid = ::fork();
    if (pid == 0) {
        ::close(ends[0]);
        child(o, first, ends[1]);
    }
    ::close(ends[1]);
    Lines lines(ends[0], o.timeout_seconds);
    Lines::Got got = Lines::Got::kEnd;
    bool answered = false;
    for (std::string line; (got = lines.next(line)) == Lines::Got::kLine;) {
        const Json message = Json::parse(line, nullptr, false);
        if (message.contains("no_gpu")) usage_error(message["no_gpu"].get<std::string>());
        if (message.contains("device")) {
            device = message;
            continue;
        }
        results.push_back(message);
        answered = message["verdict"] == "fail" && message.contains("reason");
    }
    if (got == Lines::Got::kTimeout) ::kill(pid, SIGKILL);
    int status = 0;
    ::waitpid(pid, &status, 0);
    ::close(ends[0]);
    if (results.size() == o.files.size() || answered) return;
    const std::string why = got == Lines::Got::kTimeout
                                ? fmt::format("no result within {} s", o.timeout_seconds)
                                : how_it_ended(status);
    results.push_back({{"file", std::filesystem::path(o.files[results.size()]).filename().string()},
                       {"forms", 0},
                       {"verdict", "fail"},
                       {"reason", why}});
}

int report(const Options& o, const Json& device, const Json& results) {
    size_t forms[3] = {}, files[3] = {}, wrong_forms = 0;
    const char* kinds[] = {"pass", "fail", "skip"};
    for (const Json& r : results) {
        const std::string verdict = r["verdict"], file = r["file"];
        const size_t kind = static_cast<size_t>(
            std::find(std::begin(kinds), std::end(kinds), verdict) - std::begin(kinds));
        ++files[kind];
        forms[kind] += r["forms"].get<size_t>();
        if (r.contains("reason"))
            fmt::print("{} {}: {}\n", verdict, file, r["reason"].get<std::string>());
        for (const Json& d : r.value("differences", Json::array())) {
            fmt::print("fail {}: {}\n", file, d["text"].get<std::string>());
            ++wrong_forms;
        }
    }
    fmt::print(
        "{} (sm_{}, driver {}): {} files with {} forms as expected; {} files of {} forms failed "
        "({} forms with wrong results); {} files of {} forms skipped\n",
        device["device"].get<std::string>(), device["arch"].get<int>(), device["driver"].get<int>(),
        files[0], forms[0], files[1], forms[1], wrong_forms, files[2], forms[2]);
    if (!o.json.empty())
        std::ofstream(o.json) << Json{{"device", device}, {"tests", results}}.dump(1) << "\n";
    return files[1] == 0 ? 0 : 1;
}

}  // namespace
}  // namespace ttt::test

int main(int argc, char** argv) {
    using namespace ttt::test;
    const Options options = parse_arguments(argc, argv);
    Json results = Json::array(), device;
    while (results.size() < options.files.size())
        run_child(options, results.size(), results, device);
    return report(options, device, results);
}
