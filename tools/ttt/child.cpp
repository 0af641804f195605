#include "child.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

extern char** environ;

namespace ttt::cli {
namespace {

constexpr int kForwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

std::vector<std::string> merged_environment(const std::map<std::string, std::string>& changes) {
    std::vector<std::string> out;
    for (char** e = environ; *e != nullptr; ++e) {
        const std::string entry = *e;
        if (changes.count(entry.substr(0, entry.find('='))) == 0) out.push_back(entry);
    }
    for (const auto& [name, value] : changes) out.push_back(name + "=" + value);
    return out;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
    std::vector<char*> out;
    for (auto& s : strings) out.push_back(s.data());
    out.push_back(nullptr);
    return out;
}

Result<pid_t> spawn(const ChildOptions& options, const sigset_t& mask) {
    auto words = options.command;
    auto variables = merged_environment(options.environment);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigmask(&attributes, &mask);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    if (!options.stdout_file.empty())
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, options.stdout_file.c_str(),
                                         O_WRONLY | O_CREAT | O_TRUNC, 0600);
    pid_t pid = 0;
    const int rc = posix_spawnp(&pid, words[0].c_str(), &actions, &attributes,
                                pointers(words).data(), pointers(variables).data());
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    if (rc != 0)
        return make_error(rc == ENOENT ? Code::kNotFound : Code::kIo,
                          options.command[0] + ": " + std::strerror(rc));
    return pid;
}

// Waits for one signal of `watched` and acts on it; true once the child has ended.
bool wait_step(pid_t pid, const sigset_t& watched, const ChildOptions& options, int& status) {
    siginfo_t info{};
    const timespec tick{options.tick_ms / 1000, (options.tick_ms % 1000) * 1'000'000L};
    const int signal =
        options.tick ? sigtimedwait(&watched, &info, &tick) : sigwaitinfo(&watched, &info);
    // SI_KERNEL: typed at the terminal, which signals its whole foreground group, the child
    // included.
    if (signal > 0 && signal != SIGCHLD && info.si_code != SI_KERNEL) kill(pid, signal);
    if (signal < 0 && errno == EAGAIN)
        if (const int wanted = options.tick(pid); wanted != 0) kill(pid, wanted);
    return waitpid(pid, &status, WNOHANG) == pid;
}

}  // namespace

Result<ChildResult> run_child(const ChildOptions& options) {
    sigset_t watched, before;
    sigemptyset(&watched);
    sigaddset(&watched, SIGCHLD);
    for (int s : kForwarded) sigaddset(&watched, s);
    sigprocmask(SIG_BLOCK, &watched, &before);
    auto pid = spawn(options, before);
    int status = 0;
    if (pid.ok())
        while (!wait_step(*pid, watched, options, status)) {
        }
    sigprocmask(SIG_SETMASK, &before, nullptr);
    if (!pid.ok()) return std::move(pid).error();
    return ChildResult{*pid, WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status)};
}

}  // namespace ttt::cli
