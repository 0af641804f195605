#include "compile/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "compile/backend.h"
#include "compile/frame.h"
#include "compile/toolkit.h"

namespace ttt::compile {
namespace {

Limits seconds(double s) {
    Limits limits;
    limits.seconds = s;
    return limits;
}

TEST(Process, OutputAndExitCode) {
    auto out = run({"/bin/sh", "-c", "echo one; echo two >&2; exit 3"}, {}, seconds(20));
    ASSERT_TRUE(out.ok()) << out.error().str();
    EXPECT_TRUE(out->exited);
    EXPECT_EQ(out->code, 3);
    EXPECT_EQ(out->output, "one\ntwo\n");
}

TEST(Process, DeathBySignalIsReported) {
    auto out = run({"/bin/sh", "-c", "kill -11 $$"}, {}, seconds(20));
    ASSERT_TRUE(out.ok());
    EXPECT_FALSE(out->exited);
    EXPECT_EQ(out->signal, 11);
}

TEST(Process, HangingChildrenAreKilledWithTheirChildren) {
    const auto start = std::chrono::steady_clock::now();
    auto out = run({"/bin/sh", "-c", "sleep 300 & sleep 300"}, {}, seconds(0.3));
    ASSERT_FALSE(out.ok());
    EXPECT_EQ(out.error().code, Code::kTimeout);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

TEST(Process, ChildSeesOnlyItsDescriptors) {
    const int leaked = ::open("/dev/null", O_RDONLY);  // on purpose not close-on-exec
    const int given = ::open("/etc/hostname", O_RDONLY | O_CLOEXEC);
    const int extra[] = {given};
    auto out = run({"/bin/sh", "-c",
                    "for f in 0 1 2 3 4 5 6 7 8 9; do [ -e /proc/$$/fd/$f ] && echo -n $f; done"},
                   extra, seconds(20));
    ::close(leaked);
    ::close(given);
    ASSERT_TRUE(out.ok());
    EXPECT_EQ(out->output, "0123");
}

TEST(Process, MissingProgramIsAnError) {
    EXPECT_EQ(run({"/nonexistent/program"}, {}, seconds(5)).error().code, Code::kIo);
}

TEST(Process, PreloadsDoNotReachChildren) {
    ::setenv("CUDA_INJECTION64_PATH", "/tmp/x", 1);
    auto out = run({"/bin/sh", "-c", "echo \"[$CUDA_INJECTION64_PATH]\""}, {}, seconds(20));
    ::unsetenv("CUDA_INJECTION64_PATH");
    ASSERT_TRUE(out.ok());
    EXPECT_EQ(out->output, "[]\n");
}

struct Pair {
    Pair() { EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0); }
    ~Pair() {
        ::close(ends[0]);
        ::close(ends[1]);
    }
    int ends[2];
};

Deadline soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(20); }

TEST(Frame, RoundTripOfLargeAndEmptyParts) {
    const Pair p;
    const Frame sent{"", std::string(3 << 20, 'x'), std::string("a\0b", 3)};
    std::thread writer([&] { EXPECT_TRUE(write_frame(p.ends[0], sent, soon()).ok()); });
    auto got = read_frame(p.ends[1], soon());
    writer.join();
    ASSERT_TRUE(got.ok());
    EXPECT_EQ(*got, sent);
}

TEST(Frame, GarbageLyingSizesAndSilence) {
    {
        const Pair p;
        ASSERT_EQ(::write(p.ends[0], "garbage!", 8), 8);
        EXPECT_EQ(read_frame(p.ends[1], soon()).error().code, Code::kProtocol);
    }
    {
        const Pair p;
        const uint32_t head[2] = {0x4D525446, 1};
        const uint64_t size = ~uint64_t{0};
        ASSERT_EQ(::write(p.ends[0], head, sizeof head), 8);
        ASSERT_EQ(::write(p.ends[0], &size, sizeof size), 8);
        EXPECT_EQ(read_frame(p.ends[1], soon()).error().code, Code::kProtocol);
    }
    {
        const Pair p;
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
        EXPECT_EQ(read_frame(p.ends[1], deadline).error().code, Code::kTimeout);
        ::shutdown(p.ends[0], SHUT_RDWR);
        EXPECT_EQ(read_frame(p.ends[1], soon()).error().code, Code::kIo);
    }
}

TEST(Worker, ProgramsThatAreNoWorkerAreErrors) {
    EXPECT_FALSE(open_nvjitlink_worker("/bin/true", "/nonexistent").ok());
    EXPECT_FALSE(open_nvjitlink_worker("/bin/cat", "/nonexistent").ok());
    EXPECT_FALSE(open_nvjitlink_worker("/nonexistent/worker", "/nonexistent").ok());
}

TEST(Worker, MissingLibraryIsNamed) {
    const std::string worker = find_worker();
    ASSERT_FALSE(worker.empty()) << "ttt-compile is built beside this test";
    auto out = open_nvjitlink_worker(worker, "/nonexistent/libnvJitLink.so");
    ASSERT_FALSE(out.ok());
    EXPECT_NE(out.error().str().find("/nonexistent/libnvJitLink.so"), std::string::npos)
        << out.error().str();
}

// A worker program of one shell line.
class ShellWorker {
  public:
    explicit ShellWorker(const std::string& script) {
        std::string name = (std::filesystem::temp_directory_path() / "ttt-worker-XXXXXX").string();
        x_folder = ::mkdtemp(name.data());
        std::ofstream(path()) << "#!/bin/sh\n" << script << "\n";
        ::chmod(path().c_str(), 0755);
    }
    ~ShellWorker() { std::filesystem::remove_all(x_folder); }
    ShellWorker(const ShellWorker&) = delete;
    ShellWorker& operator=(const ShellWorker&) = delete;
    std::string path() const { return x_folder + "/worker"; }

  private:
    std::string x_folder;
};

TEST(Worker, HangingWorkerIsKilledInTime) {
    const ShellWorker hanging("sleep 300");
    const auto start = std::chrono::steady_clock::now();
    auto out = open_nvjitlink_worker(hanging.path(), "/nonexistent", 0.2);
    ASSERT_FALSE(out.ok());
    EXPECT_EQ(out.error().code, Code::kTimeout);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

TEST(Worker, BabblingWorkerIsAnError) {
    const ShellWorker babbling("head -c 100000 /dev/zero >&3; sleep 300");
    auto out = open_nvjitlink_worker(babbling.path(), "/nonexistent", 10);
    ASSERT_FALSE(out.ok());
    EXPECT_FALSE(out.error().message.empty());
}

TEST(Worker, KilledWorkerIsReplaced) {
    const auto libraries = find_nvjitlink({});
    const ShellWorker recorded("echo $$ >> \"$(dirname \"$0\")/pids\"; exec '" + find_worker() +
                               "' \"$@\"");
    std::unique_ptr<Backend> backend;
    for (const auto& library : libraries)
        if (auto opened = open_nvjitlink_worker(recorded.path(), library); opened.ok()) {
            backend = std::move(opened).value();
            break;
        }
    if (backend == nullptr) GTEST_SKIP() << "no nvJitLink on this machine";
    const Job job{".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k() { ret; }\n",
                  "sm_90",
                  {}};
    for (int round = 0; round < 3; ++round) {
        std::ifstream pids(std::filesystem::path(recorded.path()).parent_path() / "pids");
        for (pid_t pid = 0; pids >> pid;)
            if (::kill(pid, 0) == 0) ::kill(pid, SIGKILL);
        auto out = backend->assemble(job);
        EXPECT_TRUE(out.ok()) << out.error().str();
    }
}

}  // namespace
}  // namespace ttt::compile
