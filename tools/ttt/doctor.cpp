// `ttt doctor`: is everything in place, and if not, what to do about it. Reads only; starts nothing
// on the GPU.
#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/config.h"
#include "commands.h"
#include "compile/compiler.h"
#include "installation.h"
#include "report.h"

namespace ttt::cli {
namespace {

enum class Grade { kGood, kWarning, kBad };

struct Check {
    std::string name;
    Grade grade = Grade::kGood;
    std::string found, advice;
};

const char* word(Grade g) {
    return g == Grade::kGood ? "ok" : g == Grade::kWarning ? "warning" : "missing";
}

struct DriverFacts {
    bool emulated = false;
    int version = 0;
};

Check check_driver(DriverFacts& facts) {
    Check c{"driver", Grade::kBad, "", ""};
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        c.found = "no libcuda.so.1";
        c.advice = "install the NVIDIA driver, or use `ttt run --emulate h200`";
        return c;
    }
    const auto init = reinterpret_cast<int (*)(unsigned)>(dlsym(library, "cuInit"));
    const auto version = reinterpret_cast<int (*)(int*)>(dlsym(library, "cuDriverGetVersion"));
    const auto count = reinterpret_cast<int (*)(int*)>(dlsym(library, "cuDeviceGetCount"));
    const auto profile =
        reinterpret_cast<const char* (*)()>(dlsym(library, "ttt_emulator_profile"));
    facts.emulated = profile != nullptr;
    int devices = 0;
    const int rc = init != nullptr ? init(0) : -1;
    if (version != nullptr) version(&facts.version);
    if (rc != 0 || count == nullptr || count(&devices) != 0 || devices == 0) {
        c.found = fmt::format("libcuda.so.1 is there, but cuInit gives {}", rc);
        c.advice = rc == 100 ? "no GPU visible: check nvidia-smi and CUDA_VISIBLE_DEVICES"
                             : "check nvidia-smi and the permissions of /dev/nvidia*";
        return c;
    }
    c.grade = Grade::kGood;
    c.found = fmt::format("CUDA {}.{}, {} device{}{}", facts.version / 1000,
                          facts.version % 1000 / 10, devices, devices == 1 ? "" : "s",
                          facts.emulated ? fmt::format(", emulated ({})", profile()) : "");
    if (facts.version >= 12040) return c;
    c.grade = Grade::kWarning;
    c.advice = "libttt is tested with drivers for CUDA 12.4 and newer: update the driver";
    return c;
}

Check check_compiler(const DriverFacts& driver) {
    const std::string home = Config::from_environment().cuda_home;
    auto compiler =
        compile::make_compiler(driver.emulated, driver.version != 0 ? driver.version : 13000, home);
    if (!compiler.ok())
        return {"compiler", Grade::kBad, compiler.error().str(),
                "install a CUDA toolkit not newer than the driver (nvJitLink, ptxas), or set "
                "TTT_CUDA_HOME"};
    return {"compiler", Grade::kGood,
            fmt::format("{}, PTX up to {}.{}", (*compiler)->identity(),
                        (*compiler)->max_ptx_version() / 10, (*compiler)->max_ptx_version() % 10),
            ""};
}

Check check_file(const char* name, const std::string& path, const char* advice) {
    if (path.empty()) return {name, Grade::kBad, "not found", advice};
    const bool runnable = ::access(path.c_str(), R_OK) == 0;
    return {name, runnable ? Grade::kGood : Grade::kBad, path,
            runnable ? "" : "not readable: check its permissions"};
}

// MPS: kernels of several processes share one context, so trials would disturb the neighbours
// (observe only).
Check check_mps() {
    std::string pipe = environment("CUDA_MPS_PIPE_DIRECTORY");
    if (pipe.empty()) pipe = "/tmp/nvidia-mps";
    std::error_code ignored;
    if (!std::filesystem::exists(pipe + "/control", ignored))
        return {"mps", Grade::kGood, "not running", ""};
    return {"mps", Grade::kWarning, "control pipe at " + pipe,
            "under MPS libttt only observes: stop it with `echo quit | nvidia-cuda-mps-control` to "
            "tune"};
}

Check check_device_files(const DriverFacts& driver) {
    std::error_code ignored;
    if (driver.emulated || !std::filesystem::exists("/dev/nvidiactl", ignored))
        return {"device files", Grade::kGood, "none needed", ""};
    if (::access("/dev/nvidiactl", R_OK | W_OK) == 0)
        return {"device files", Grade::kGood, "/dev/nvidiactl readable and writable", ""};
    return {
        "device files", Grade::kBad, "/dev/nvidiactl not accessible",
        "add your user to the group that owns /dev/nvidia*, or start the container with the GPU"};
}

Check check_store() {
    std::string folder = Config::from_environment().store;
    if (folder.empty()) {
        const std::string cache = environment("XDG_CACHE_HOME"), home = environment("HOME");
        folder = !cache.empty() ? cache + "/ttt" : home.empty() ? "" : home + "/.cache/ttt";
    }
    if (folder.empty())
        return {"store", Grade::kWarning, "no HOME",
                "set TTT_STORE to a folder, or winners are not remembered"};
    std::error_code ignored;
    std::filesystem::path p = folder;
    while (!std::filesystem::exists(p, ignored) && p.has_parent_path() && p != p.parent_path())
        p = p.parent_path();
    if (::access(p.c_str(), W_OK) == 0) return {"store", Grade::kGood, folder, ""};
    return {"store", Grade::kWarning, folder + " not writable",
            "set TTT_STORE to a writable folder, or winners are not remembered"};
}

Check check_environment() {
    std::string problems;
    Config::from_environment(&problems);
    if (problems.empty()) return {"settings", Grade::kGood, "TTT_* variables parse", ""};
    return {"settings", Grade::kWarning, problems,
            "these keep their defaults: correct or unset them"};
}

}  // namespace

int doctor(bool json) {
    const Installation here = find_installation();
    DriverFacts driver;
    std::vector<Check> checks;
    checks.push_back(check_driver(driver));
    checks.push_back(check_device_files(driver));
    checks.push_back(check_mps());
    checks.push_back(check_compiler(driver));
    const std::string problem = preload_problem(here);
    checks.push_back(problem.empty() ? Check{"library", Grade::kGood, here.library, ""}
                                     : Check{"library", Grade::kBad, here.library, problem});
    checks.push_back(
        check_file("tuner", here.tuner, "ttt-tuner belongs beside ttt; or set TTT_TUNER"));
    checks.push_back(check_file("sandbox", here.sandbox,
                                "ttt-sandbox belongs beside ttt-tuner; or set TTT_SANDBOX"));
    checks.push_back(check_store());
    checks.push_back(check_environment());
    bool healthy = true;
    Json list = Json::array();
    for (const auto& c : checks) {
        healthy = healthy && c.grade != Grade::kBad;
        list.push_back({{"name", c.name},
                        {"result", word(c.grade)},
                        {"found", c.found},
                        {"advice", c.advice}});
        if (!json)
            fmt::print("{:<13} {:<8} {}{}\n", c.name, word(c.grade), c.found,
                       c.advice.empty() ? "" : "\n                       -> " + c.advice);
    }
    if (json)
        fmt::print("{}\n",
                   dump({{"version", TTT_VERSION}, {"healthy", healthy}, {"checks", list}}));
    return healthy ? kOk : kFailed;
}

}  // namespace ttt::cli
