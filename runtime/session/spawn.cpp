#include "session/spawn.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

namespace ttt::session {
namespace {

constexpr size_t kStackBytes = 64 << 10;

struct Job {
    const char* path;
    char* const* argv;
    char* const* envp;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int nice;
    pid_t child = -1;
    int error = 0;
};

// Runs in an intermediate process that shares our memory while our thread is suspended (as after
// vfork). It has no exit signal, so the program hears nothing of it; its own child is orphaned when
// it leaves.
int intermediate(void* argument) {
    auto* job = static_cast<Job*>(argument);
    job->error =
        posix_spawn(&job->child, job->path, &job->actions, &job->attributes, job->argv, job->envp);
    if (job->error == 0) setpriority(PRIO_PROCESS, static_cast<id_t>(job->child), job->nice);
    return 0;
}

void describe(Job& job, int channel) {
    posix_spawn_file_actions_init(&job.actions);
    for (int fd : {0, 1, 2})
        posix_spawn_file_actions_addopen(&job.actions, fd, "/dev/null", O_RDWR, 0);
    posix_spawn_file_actions_adddup2(&job.actions, channel, 3);
    posix_spawn_file_actions_addclosefrom_np(&job.actions, 4);
    posix_spawnattr_init(&job.attributes);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&job.attributes,
                               &none);  // our thread blocks every signal: the child must not
    posix_spawnattr_setsigdefault(&job.attributes, &all);
    posix_spawnattr_setflags(
        &job.attributes,
        static_cast<short>(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID));
}

std::vector<char*> pointers(const std::vector<std::string>& strings) {
    std::vector<char*> p;
    for (const std::string& s : strings) p.push_back(const_cast<char*>(s.c_str()));
    p.push_back(nullptr);
    return p;
}

}  // namespace

std::vector<std::string> child_environment(const std::vector<std::string>& program) {
    static constexpr std::array<std::string_view, 6> kDropped = {"LD_PRELOAD=",
                                                                 "LD_AUDIT=",
                                                                 "CUDA_INJECTION64_PATH=",
                                                                 "CUDA_INJECTION32_PATH=",
                                                                 "NVTX_INJECTION64_PATH=",
                                                                 "NVTX_INJECTION32_PATH="};
    std::vector<std::string> out;
    for (const std::string& v : program) {
        bool keep = true;
        for (std::string_view d : kDropped) keep = keep && !std::string_view(v).starts_with(d);
        if (keep) out.push_back(v);
    }
    return out;
}

Result<pid_t> spawn_invisible(const Spawn& spawn) {
    std::vector<std::string> arguments{spawn.path};
    arguments.insert(arguments.end(), spawn.arguments.begin(), spawn.arguments.end());
    const std::vector<char*> argv = pointers(arguments), envp = pointers(spawn.environment);
    Job job{};
    job.path = spawn.path.c_str();
    job.argv = argv.data();
    job.envp = envp.data();
    job.nice = spawn.nice;
    job.child = -1;
    void* stack = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED) return make_error(Code::kIo, "no memory for the tuner's start");
    describe(job, spawn.channel);
    const pid_t helper =
        clone(intermediate, static_cast<char*>(stack) + kStackBytes, CLONE_VM | CLONE_VFORK, &job);
    const int clone_error = errno;
    if (helper > 0) waitpid(helper, nullptr, static_cast<int>(__WCLONE));
    posix_spawn_file_actions_destroy(&job.actions);
    posix_spawnattr_destroy(&job.attributes);
    munmap(stack, kStackBytes);
    if (helper < 0)
        return make_error(Code::kIo, std::string("clone: ") + std::strerror(clone_error));
    if (job.error != 0) return make_error(Code::kIo, spawn.path + ": " + std::strerror(job.error));
    return job.child;
}

}  // namespace ttt::session
