// ttt-tuner --channel-fd N: started by libttt.so, never by a person.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "base/config.h"
#include "base/log.h"
#include "base/sanitizer.h"
#include "tuner/event_loop.h"

namespace {

constexpr rlim_t kMemoryLimit = rlim_t{16} << 30;  // address space

int channel_fd(int argc, char** argv) {
    if (argc != 3 || std::strcmp(argv[1], "--channel-fd") != 0) return -1;
    char* end = nullptr;
    const long fd = std::strtol(argv[2], &end, 10);
    return *argv[2] != 0 && *end == 0 && fd >= 3 && fd < 4096 ? static_cast<int>(fd) : -1;
}

// Copies of the program's data pass through here: no core dumps.
void confine() {
    if constexpr (!ttt::kSanitized) ::prctl(PR_SET_DUMPABLE, 0);  // the leak check is a debugger
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_CORE, &none);
    // The soft limit only: the sandbox raises its own again, since a CUDA context reserves far
    // more.
    rlimit memory{};
    if (!ttt::kSanitized && ::getrlimit(RLIMIT_AS, &memory) == 0) {
        memory.rlim_cur = std::min(kMemoryLimit, memory.rlim_max);
        ::setrlimit(RLIMIT_AS, &memory);
    }
    ::signal(SIGPIPE, SIG_IGN);
}

std::string sandbox_path(const ttt::Config& config) {
    if (!config.sandbox.empty()) return config.sandbox;
    std::array<char, 4096> buffer{};
    const ssize_t n = ::readlink("/proc/self/exe", buffer.data(), buffer.size() - 1);
    const std::string self(buffer.data(), n > 0 ? static_cast<size_t>(n) : 0);
    return self.substr(0, self.rfind('/') + 1) + "ttt-sandbox";
}

ttt::log::Level level(const std::string& name) {
    if (name == "debug") return ttt::log::Level::kDebug;
    if (name == "warn") return ttt::log::Level::kWarn;
    if (name == "error") return ttt::log::Level::kError;
    return ttt::log::Level::kInfo;
}

}  // namespace

int main(int argc, char** argv) {
    const int fd = channel_fd(argc, argv);
    if (fd < 0) {
        constexpr char kUsage[] =
            "ttt-tuner is started by libttt.so: ttt-tuner --channel-fd N (N >= 3)\n";
        return ::write(2, kUsage, sizeof kUsage - 1) > 0 ? 2 : 2;
    }
    ::fcntl(fd, F_SETFD, FD_CLOEXEC);
    const ttt::Config config = ttt::Config::from_environment();
    ttt::log::init("ttt-tuner", config.log, false, level(config.log_level));
    const std::string sandbox = sandbox_path(config);
    confine();
    try {
        return ttt::tuner::EventLoop(ttt::ipc::Channel(ttt::Fd(fd)), config, sandbox).run();
    } catch (const std::exception& e) {
        ttt::log::error("{}", e.what());
        return 1;
    }
}
