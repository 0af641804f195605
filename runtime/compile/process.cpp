#include "compile/process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <string_view>

#include "base/sanitizer.h"

extern char** environ;

namespace ttt::compile {
namespace {

constexpr size_t kMaxOutput = 1 << 20;
constexpr int kSafeFd = 64;  // copies live from here up while numbers 0, 1, 2, … are assigned

Error system_error(const char* what, int code) {
    return make_error(Code::kIo, std::string(what) + ": " + std::strerror(code));
}

std::vector<char*> clean_environment() {
    constexpr std::string_view kDropped[] = {"LD_PRELOAD=", "CUDA_INJECTION", "NVTX_INJECTION",
                                             "LD_AUDIT="};
    std::vector<char*> out;
    for (char** v = environ; v != nullptr && *v != nullptr; ++v) {
        const std::string_view text(*v);
        const bool drop =
            std::any_of(std::begin(kDropped), std::end(kDropped),
                        [&](std::string_view p) { return text.substr(0, p.size()) == p; });
        if (!drop) out.push_back(*v);
    }
    out.push_back(nullptr);
    return out;
}

void limit_child(pid_t pid, const Limits& limits) {
    const auto cpu = static_cast<rlim_t>(limits.seconds * 2) + 1;
    const rlimit cpu_limit{cpu, cpu};
    ::prlimit(pid, RLIMIT_CPU, &cpu_limit, nullptr);
    const rlimit none{0, 0};
    ::prlimit(pid, RLIMIT_CORE, &none, nullptr);
    if (limits.memory_bytes != 0 && !kSanitized) {  // a sanitizer runs in our own children too
        const rlimit memory{limits.memory_bytes, limits.memory_bytes};
        ::prlimit(pid, RLIMIT_AS, &memory, nullptr);
    }
}

struct SpawnActions {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    SpawnActions() {
        posix_spawn_file_actions_init(&actions);
        posix_spawnattr_init(&attributes);
    }
    ~SpawnActions() {
        posix_spawn_file_actions_destroy(&actions);
        posix_spawnattr_destroy(&attributes);
    }
    SpawnActions(const SpawnActions&) = delete;
    SpawnActions& operator=(const SpawnActions&) = delete;
};

void set_attributes(posix_spawnattr_t& attributes) {
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setflags(
        &attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
}

// Reads until the child closes its end; false at the deadline.
bool drain(int fd, std::chrono::steady_clock::time_point deadline, std::string& out) {
    char buffer[8192];
    for (;;) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
            deadline - std::chrono::steady_clock::now());
        if (left.count() <= 0) return false;
        pollfd p{fd, POLLIN, 0};
        const int ready =
            ::poll(&p, 1, static_cast<int>(std::min<int64_t>(left.count(), 1'000'000)));
        if (ready <= 0) continue;
        const ssize_t n = ::read(fd, buffer, sizeof buffer);
        if (n == 0 || (n < 0 && errno != EINTR)) return true;
        if (n > 0)
            out.append(buffer, std::min(static_cast<size_t>(n),
                                        kMaxOutput - std::min(kMaxOutput, out.size())));
    }
}

// A child may close its output and live on: it gets until the deadline, then it is killed.
bool wait_until(pid_t pid, std::chrono::steady_clock::time_point deadline, int& status) {
    for (auto pause = std::chrono::microseconds(50);;
         pause = std::min(pause * 2, std::chrono::microseconds(5000))) {
        const pid_t got = ::waitpid(pid, &status, WNOHANG);
        if (got == pid) return true;
        if (got < 0 && errno != EINTR) {
            status = -1;  // reaped by someone else (SIGCHLD ignored): the outcome shows in its
                          // output alone
            return true;
        }
        if (std::chrono::steady_clock::now() >= deadline) return false;
        ::usleep(static_cast<useconds_t>(pause.count()));
    }
}

}  // namespace

Result<pid_t> spawn(const std::vector<std::string>& argv, std::span<const int> descriptors,
                    const Limits& limits) {
    SpawnActions s;
    set_attributes(s.attributes);
    std::vector<Fd> safe;
    for (size_t i = 0; i < descriptors.size(); ++i) {
        const int number = static_cast<int>(i);
        if (descriptors[i] < 0) {
            posix_spawn_file_actions_addopen(&s.actions, number, "/dev/null", O_RDWR, 0);
            continue;
        }
        safe.emplace_back(::fcntl(descriptors[i], F_DUPFD_CLOEXEC, kSafeFd));
        if (!safe.back().valid()) return system_error("fcntl", errno);
        posix_spawn_file_actions_adddup2(&s.actions, safe.back().get(), number);
    }
    posix_spawn_file_actions_addclosefrom_np(&s.actions, static_cast<int>(descriptors.size()));
    std::vector<char*> arguments;
    for (const auto& a : argv) arguments.push_back(const_cast<char*>(a.c_str()));
    arguments.push_back(nullptr);
    const std::vector<char*> environment = clean_environment();
    pid_t pid = -1;
    const int error = ::posix_spawn(&pid, argv.front().c_str(), &s.actions, &s.attributes,
                                    arguments.data(), environment.data());
    if (error != 0) return system_error(("cannot start " + argv.front()).c_str(), error);
    limit_child(pid, limits);
    return pid;
}

Result<Finished> run(const std::vector<std::string>& argv, std::span<const int> extra,
                     const Limits& limits) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return system_error("pipe", errno);
    const Fd reader(ends[0]);
    Fd writer(ends[1]);
    std::vector<int> descriptors{-1, writer.get(), writer.get()};
    descriptors.insert(descriptors.end(), extra.begin(), extra.end());
    const auto deadline = std::chrono::steady_clock::now() +
                          std::chrono::microseconds(static_cast<int64_t>(limits.seconds * 1e6));
    TTT_TRY(const pid_t pid, spawn(argv, descriptors, limits));
    writer.reset();
    Finished out;
    int status = 0;
    if (!drain(reader.get(), deadline, out.output) || !wait_until(pid, deadline, status)) {
        kill_group(pid);
        reap(pid);
        return make_error(Code::kTimeout, argv.front() + " was stopped after " +
                                              std::to_string(limits.seconds) + " s");
    }
    out.exited = status == -1 || WIFEXITED(status);
    out.code = status == -1 ? 0 : WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    out.signal = status != -1 && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    return out;
}

void kill_group(pid_t pid) {
    if (pid <= 1) return;
    ::kill(-pid, SIGKILL);
    ::kill(pid, SIGKILL);
}

void reap(pid_t pid) {
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
}

}  // namespace ttt::compile
