// nvJitLink in a child: a compile that hangs, eats memory or crashes costs the child only. Children
// are kept between compiles (loading the library takes longer than most compiles) and several run
// at once when several threads ask.
#include "compile/worker.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <mutex>

#include "compile/backend.h"
#include "compile/frame.h"
#include "compile/process.h"

namespace ttt::compile {
namespace {

Deadline in_seconds(double seconds) {
    return std::chrono::steady_clock::now() +
           std::chrono::microseconds(static_cast<int64_t>(seconds * 1e6));
}

class Child {
  public:
    static Result<std::unique_ptr<Child>> start(const std::string& program,
                                                const std::string& library) {
        int ends[2];
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
            return make_error(Code::kIo, "no socket for the compile worker");
        auto child = std::unique_ptr<Child>(new Child);
        child->x_channel = Fd(ends[0]);
        const Fd theirs(ends[1]);
        const int descriptors[] = {-1, -1, -1, theirs.get()};
        Limits limits;
        limits.seconds = kWorkerLifetimeSeconds;
        TTT_TRY(child->x_pid, spawn({program, library}, descriptors, limits));
        return child;
    }

    ~Child() {
        x_channel.reset();
        if (x_pid <= 0) return;
        kill_group(x_pid);
        reap(x_pid);
    }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    Result<Frame> ask(const Frame& request, double seconds) {
        const Deadline deadline = in_seconds(seconds);
        TTT_CHECK_OK(write_frame(x_channel.get(), request, deadline));
        return read_frame(x_channel.get(), deadline);
    }

  private:
    Child() = default;
    Fd x_channel;
    pid_t x_pid = -1;
};

class JitLinkWorker final : public Backend {
  public:
    JitLinkWorker(std::string worker, std::string library, double seconds)
        : x_program(std::move(worker)), x_library(std::move(library)), x_seconds(seconds) {}

    Status identify() {
        TTT_TRY(const Frame answer, ask({std::string(kAskIdentity)}));
        if (answer.size() != 4)
            return make_error(Code::kProtocol, "the compile worker's answer has the wrong shape");
        x_identity = {answer[1],
                      static_cast<uint32_t>(std::strtoul(answer[2].c_str(), nullptr, 10)),
                      static_cast<uint32_t>(std::strtoul(answer[3].c_str(), nullptr, 10))};
        return ok_status();
    }

    Result<Output> assemble(const Job& job) override {
        Frame request{std::string(kAskAssemble), std::string(job.ptx), job.arch};
        request.insert(request.end(), job.options.begin(), job.options.end());
        TTT_TRY(Frame answer, ask(request));
        if (answer.size() != 3)
            return make_error(Code::kProtocol, "the compile worker's answer has the wrong shape");
        return Output{std::move(answer[1]), std::move(answer[2])};
    }

    const Identity& identity() const override { return x_identity; }

  private:
    // An idle child, or null.
    std::unique_ptr<Child> borrow() {
        const std::lock_guard lock(x_mutex);
        if (x_idle.empty()) return nullptr;
        auto child = std::move(x_idle.back());
        x_idle.pop_back();
        return child;
    }

    // A kept child may have died since (its CPU limit, the system's memory killer): only a fresh
    // one's death counts.
    Result<Frame> exchange(const Frame& request, std::unique_ptr<Child>& child) {
        child = borrow();
        if (child != nullptr) {
            auto answer = child->ask(request, x_seconds);
            if (answer.ok() || answer.error().code == Code::kTimeout) return answer;
        }
        TTT_TRY(child, Child::start(x_program, x_library));
        return child->ask(request, x_seconds);
    }

    // A child that did not answer properly is dropped, and killed by that.
    Result<Frame> ask(const Frame& request) {
        std::unique_ptr<Child> child;
        auto answer = exchange(request, child);
        if (!answer.ok()) {
            if (answer.error().code == Code::kTimeout) return std::move(answer).error();
            return make_error(
                Code::kCompile,
                "the compile worker died (out of memory, or a fault of the assembler)");
        }
        const bool good = !answer->empty() && answer->front() == kAnswerOk;
        const bool bad =
            answer->size() == 3 && answer->front() == kAnswerError && !(*answer)[1].empty();
        if (!good && !bad)
            return make_error(Code::kProtocol, "the compile worker's answer has the wrong shape");
        const std::lock_guard lock(x_mutex);
        x_idle.push_back(std::move(child));
        if (good) return answer;
        return make_error(static_cast<Code>((*answer)[1].front()), (*answer)[2]);
    }

    std::string x_program, x_library;
    double x_seconds = 0;
    Identity x_identity;
    std::mutex x_mutex;
    std::vector<std::unique_ptr<Child>> x_idle;
};

bool is_program(const std::filesystem::path& path) { return ::access(path.c_str(), X_OK) == 0; }

}  // namespace

Result<std::unique_ptr<Backend>> open_nvjitlink_worker(const std::string& worker,
                                                       const std::string& path, double seconds) {
    auto out = std::make_unique<JitLinkWorker>(worker, path, seconds);
    TTT_CHECK_OK(out->identify());
    return std::unique_ptr<Backend>(std::move(out));
}

std::string find_worker() {
    if (const char* given = std::getenv("TTT_COMPILE_WORKER"); given != nullptr && *given != '\0')
        return is_program(given) ? given : "";
    std::error_code error;
    const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
    if (error) return {};
    for (const auto& folder : {self.parent_path(), self.parent_path() / ".." / "bin"})
        if (is_program(folder / "ttt-compile"))
            return (folder / "ttt-compile").lexically_normal().string();
    return {};
}

}  // namespace ttt::compile
