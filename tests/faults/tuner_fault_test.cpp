// Whatever breaks on the sandbox's or the program's side, the tuner says so and goes on or leaves;
// it never crashes.
#include <dirent.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <random>
#include <thread>

#include "e2e/tuner_program.h"
#include "tuner/sandbox_link.h"

namespace ttt::testing_program {
namespace {

class WithSandbox {
  public:
    explicit WithSandbox(const std::string& path, const std::string& mode = "") {
        ::setenv("TTT_SANDBOX", path.c_str(), 1);
        ::setenv("FAKE_SANDBOX", mode.c_str(), 1);
    }
    ~WithSandbox() {
        ::unsetenv("TTT_SANDBOX");
        ::unsetenv("FAKE_SANDBOX");
    }
};

// Process numbers of the children of `parent`.
std::vector<pid_t> children(pid_t parent) {
    std::vector<pid_t> out;
    for (const auto& entry : fs::directory_iterator("/proc/" + std::to_string(parent) + "/task")) {
        std::ifstream in(entry.path() / "children");
        for (pid_t p = 0; in >> p;) out.push_back(p);
    }
    return out;
}

std::string comm(pid_t pid) {
    std::ifstream in("/proc/" + std::to_string(pid) + "/comm");
    std::string name;
    std::getline(in, name);
    return name;
}

TEST(TunerFaults, MissingSandboxFailsTheSiteOnly) {
    WithSandbox sandbox("/nonexistent/ttt-sandbox");
    Program p;
    p.announce();
    const std::string reason = p.play({}, 60);
    EXPECT_NE(reason.find("sandbox"), std::string::npos) << reason;
    p.end();
    EXPECT_EQ(p.wait_exit(), 0);
    EXPECT_EQ(p.site()["state"], "failed");
}

TEST(TunerFaults, SandboxThatExitsLiesOrSendsGarbageFailsTheSiteOnly) {
    for (const char* mode : {"exit", "garbage", "lie"}) {
        WithSandbox sandbox(TTT_BIN_DIR "/fake_sandbox", mode);
        Program p;
        p.announce();
        const std::string reason = p.play({}, 60);
        EXPECT_NE(reason.find("sandbox"), std::string::npos) << mode << ": " << reason;
        EXPECT_EQ(p.seen("VariantDef"), 0) << mode;
        p.end();
        EXPECT_EQ(p.wait_exit(), 0) << mode;
    }
}

TEST(TunerFaults, SandboxThatContradictsItselfProvesNothing) {
    WithSandbox sandbox(TTT_BIN_DIR "/fake_sandbox", "contradict");
    Program p;
    p.announce();
    p.play({}, 60);
    EXPECT_EQ(p.seen("VariantDef"), 0);
    EXPECT_EQ(p.seen("SwapRequest"), 0);
    p.end();
    EXPECT_EQ(p.wait_exit(), 0);
}

TEST(TunerFaults, HangingSandboxDoesNotOutliveTheProgram) {
    WithSandbox sandbox(TTT_BIN_DIR "/fake_sandbox", "hang");
    Program p;
    p.announce();
    EXPECT_NE(p.play({}, 3).find("no SiteDone"), std::string::npos);
    const auto sandboxes = children(p.pid());
    ASSERT_EQ(sandboxes.size(), 1u);
    p.end();
    EXPECT_EQ(p.wait_exit(10), 0);
    EXPECT_NE(::kill(sandboxes[0], 0), 0) << "the sandbox is still there";
    EXPECT_EQ(p.report()["final"], true);
}

TEST(TunerFaults, SandboxKilledAtRandomMomentsIsRestartedOrReported) {
    std::minstd_rand random(7);
    Program p;
    p.announce();
    std::atomic<bool> stop{false};
    std::thread killer([&] {
        for (int i = 0; i < 3 && !stop; ++i) {
            ::usleep(100000 + static_cast<unsigned>(random() % 200000));
            for (pid_t c : children(p.pid())) {
                if (comm(c) == "ttt-sandbox") ::kill(c, SIGKILL);
            }
        }
    });
    const std::string reason = p.play({}, 110);
    stop = true;
    killer.join();
    EXPECT_EQ(reason.find("no SiteDone"), std::string::npos) << reason;
    EXPECT_NE(reason.rfind("channel: ", 0), 0u) << "the tuner itself went down: " << reason;
    p.end();
    EXPECT_EQ(p.wait_exit(), 0);
    const Json site = p.site();
    ASSERT_TRUE(site.contains("verdicts"));
    for (const auto& v : site["verdicts"])
        EXPECT_TRUE(v["outcome"] != "accept" || v["speedup"].is_number()) << v.dump();
}

// One death from outside, at whatever stage it hits, must cost neither the site nor a gate.
TEST(TunerFaults, SandboxKilledOnceStillLeadsToADecisionWithTheOracle) {
    for (const unsigned after_ms : {20u, 60u, 150u, 400u}) {
        Program p;
        p.announce();
        std::thread killer([&] {
            std::vector<pid_t> found;
            for (int i = 0; i < 2000 && found.empty(); ++i) {
                ::usleep(1000);
                for (pid_t c : children(p.pid()))
                    if (comm(c) == "ttt-sandbox") found.push_back(c);
            }
            ::usleep(after_ms * 1000);
            for (pid_t c : found) ::kill(c, SIGKILL);
        });
        p.play({}, 110);
        killer.join();
        p.end();
        EXPECT_EQ(p.wait_exit(), 0);
        const Json site = p.site();
        ASSERT_TRUE(site.is_object());
        EXPECT_EQ(site["state"], "committed") << after_ms << " ms: " << site["reason"];
        EXPECT_NE(site["notes"].dump().find("oracle: accept"), std::string::npos)
            << site["notes"].dump();
    }
}

// The program ran out of device memory in the middle of a trial.
TEST(TunerFaults, MemoryTheProgramNeedsIsGivenBackForGood) {
    Program p;
    p.announce();
    std::vector<pid_t> sandboxes;
    std::optional<std::chrono::steady_clock::time_point> seen;
    bool asked = false;
    Program::Script script;
    script.meanwhile = [&] {
        for (pid_t c : children(p.pid()))
            if (!seen && comm(c) == "ttt-sandbox") {
                sandboxes.push_back(c);
                seen = std::chrono::steady_clock::now();
            }
        if (asked || !seen ||
            std::chrono::steady_clock::now() < *seen + std::chrono::milliseconds(50))
            return;
        asked = true;
        p.free_memory();
    };
    const std::string reason = p.play(script, 60);
    EXPECT_NE(reason.find("out of device memory"), std::string::npos) << reason;
    ASSERT_EQ(sandboxes.size(), 1u);
    EXPECT_TRUE(children(p.pid()).empty()) << "a sandbox was started again";
    p.site_hot();
    EXPECT_NE(p.play({}, 60).find("out of device memory"), std::string::npos);
    EXPECT_EQ(p.seen("MemoryFreed"), 1);
    EXPECT_EQ(p.seen("SnapshotRequest"), 1) << "nothing is tried any more";
    p.end();
    EXPECT_EQ(p.wait_exit(), 0);
    EXPECT_EQ(p.site()["state"], "failed");
}

TEST(TunerFaults, KilledTunerLeavesTheLastReportAndNoSandbox) {
    Program p;
    p.announce();
    p.play({}, 110);
    const auto sandboxes = children(p.pid());
    ::kill(p.pid(), SIGKILL);
    EXPECT_EQ(p.wait_exit(), -SIGKILL);
    const Json report = p.report();
    ASSERT_TRUE(report.is_object()) << "half a report";
    EXPECT_EQ(report["final"], false);
    EXPECT_EQ(report["sites"].size(), 1u);
    for (pid_t s : sandboxes) {
        for (int i = 0; i < 500 && ::kill(s, 0) == 0; ++i) ::usleep(10000);
        EXPECT_NE(::kill(s, 0), 0) << "the sandbox outlived its tuner";
    }
}

TEST(TunerFaults, GarbageFromTheProgramEndsTheTunerInOrder) {
    const std::string noises[] = {std::string(100, '\0'), std::string(5000, 'x'),
                                  "TTT1" + std::string(60, '\xff'), "TTT1"};
    for (const auto& noise : noises) {
        for (bool after_hello : {false, true}) {
            Program p;
            p.start();
            if (after_hello) p.hello();
            p.raw(noise);
            p.end();
            EXPECT_GE(p.wait_exit(), 0) << "killed by a signal or still there";
        }
    }
}

TEST(TunerFaults, MessagesOutOfPlaceDoNotCrash) {
    const std::function<void(Program&)> cases[] = {
        [](Program& p) { p.site_hot(); },  // before the greeting
        [](Program& p) {
            p.hello();
            p.snapshot_ready(k::arena_bytes());
        },  // never asked for
        [](Program& p) {
            p.hello();
            p.hello();
        },
        [](Program& p) {
            p.hello();
            p.timing(77, 2);
            p.swap_result(77, true);
            p.canary(77, 2);
        },
        [](Program& p) { p.hello("apply", 99); },  // another protocol
        [](Program& p) {
            p.hello();
            p.module(k::right());
            p.kernel();
            p.site_hot();
            p.site_hot();
            p.kernel();
        },
    };
    for (const auto& c : cases) {
        Program p;
        p.start();
        c(p);
        p.play({}, 1);
        p.end();
        EXPECT_GE(p.wait_exit(), 0) << "killed by a signal or still there";
    }
}

TEST(TunerFaults, WrongArgumentsAreOneLineAndStatusTwo) {
    for (const char* program : {"ttt-tuner", "ttt-sandbox"})
        for (const char* arguments :
             {"", "--channel-fd", "--channel-fd x", "--channel-fd 1", "--help"}) {
            const std::string command =
                std::string(TTT_BIN_DIR) + "/" + program + " " + arguments + " 2>&1 </dev/null";
            FILE* pipe = ::popen(command.c_str(), "r");
            char line[512] = {};
            size_t lines = 0;
            while (std::fgets(line, sizeof line, pipe) != nullptr) ++lines;
            const int status = ::pclose(pipe);
            EXPECT_EQ(WEXITSTATUS(status), 2) << command;
            EXPECT_EQ(lines, 1u) << command;
        }
}

}  // namespace
}  // namespace ttt::testing_program
