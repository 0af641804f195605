// The tuner's side of a site's life, with the test as the program's session.
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "e2e/tuner_program.h"

namespace ttt::testing_program {
namespace {

std::string ask(const Program& p, const std::string& what) {
    const std::string path = (p.dir() / ("ttt-" + std::to_string(::getpid()) + ".sock")).string();
    struct stat st {};
    for (int i = 0; i < 500 && ::stat(path.c_str(), &st) != 0; ++i) ::usleep(10000);
    EXPECT_EQ(st.st_mode & 0777, 0600u);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
        return "cannot connect";
    ipc::Channel c(std::move(fd));
    flatbuffers::FlatBufferBuilder b;
    if (!c.send(b, ipc::CreateQueryDirect(b, what.c_str())).ok()) return "cannot send";
    auto r = c.receive(10000);
    if (!r.ok() || !r->has_value() || (*r)->message()->payload_as_Reply() == nullptr)
        return "no reply";
    return std::string(ipc::text((*r)->message()->payload_as_Reply()->json()));
}

TEST(TunerProtocol, FasterVariantIsCommitted) {
    Program p;
    p.announce();
    const std::string reason = p.play({});
    EXPECT_EQ(p.confirmed(), 1) << reason;
    p.end();
    EXPECT_EQ(p.wait_exit(), 0);
    const Json site = p.site();
    ASSERT_TRUE(site.is_object());
    EXPECT_EQ(site["state"], "committed") << site.dump(1);
    EXPECT_EQ(site["name"], "vecadd");
    EXPECT_EQ(site["bit_exact"], true);
    EXPECT_GT(site["tried"].get<int>(), 0);
    EXPECT_NEAR(site["speedup"].get<double>(), 2.0, 0.01);
    EXPECT_EQ(site["recipe"], p.swapped());
    EXPECT_EQ(p.report()["final"], true);
}

TEST(TunerProtocol, NothingFasterIsKeptAndSaid) {
    Program p;
    p.announce();
    Program::Script script;
    script.speedup = [](const std::string&) { return 0.95; };
    p.play(script);
    EXPECT_EQ(p.seen("SwapRequest"), 0);
    p.end();
    p.wait_exit();
    EXPECT_EQ(p.site()["state"], "kept") << p.site().dump(1);
    EXPECT_EQ(p.site()["speedup"], nullptr);
}

TEST(TunerProtocol, CanaryThatDoesNotConfirmIsRolledBack) {
    Program p;
    p.announce();
    Program::Script script;
    script.live = 0.9;
    p.play(script);
    EXPECT_EQ(p.confirmed(), 0);
    EXPECT_EQ(p.seen("Rollback"), 1);
    p.end();
    p.wait_exit();
    EXPECT_EQ(p.site()["state"], "rolled_back");
}

TEST(TunerProtocol, TheLeaderIsProvenOnALaterLaunchToo) {
    Program p;
    p.announce();
    p.play({});
    EXPECT_EQ(p.seen("SnapshotRequest"), 2);
    p.end();
    p.wait_exit();
    EXPECT_EQ(p.site()["state"], "committed");
    EXPECT_NE(p.site()["notes"].dump().find("on a later launch: accept"), std::string::npos)
        << p.site()["notes"].dump();
}

TEST(TunerProtocol, ALaterLaunchWithOtherBitsEndsTheSiteUnswapped) {
    Program p;
    p.announce();
    Program::Script script;
    (*script.later_arena)[3 * k::kBytes] ^= std::byte{1};  // the sum that the launch wrote
    const std::string reason = p.play(script);
    EXPECT_NE(reason.find("on a later launch"), std::string::npos) << reason;
    EXPECT_EQ(p.seen("SwapRequest"), 0);
    p.end();
    p.wait_exit();
    EXPECT_EQ(p.site()["state"], "ineligible");
}

TEST(TunerProtocol, AProgramThatLaunchesNoMoreIsSwappedWithANote) {
    Program p;
    p.announce();
    Program::Script script;
    script.later_arena.reset();
    p.play(script);
    p.end();
    p.wait_exit();
    EXPECT_EQ(p.site()["state"], "committed");
    EXPECT_NE(p.site()["notes"].dump().find("no later one came"), std::string::npos)
        << p.site()["notes"].dump();
}

TEST(TunerProtocol, ACanaryThatHardlyEverLaunchesEndsAtItsDeadline) {
    Program p;
    ::setenv("TTT_CANARY_S", "1", 1);
    p.announce();
    Program::Script script;
    script.live_pairs = 4;  // and never more
    const std::string reason = p.play(script);
    EXPECT_NE(reason.find("too few launches in time"), std::string::npos) << reason;
    EXPECT_EQ(p.confirmed(), 0);
    EXPECT_EQ(p.seen("Rollback"), 1);
    p.end();
    p.wait_exit();
    EXPECT_EQ(p.site()["state"], "rolled_back");
}

TEST(TunerProtocol, ProofsRunOnlyInPauses) {
    Program p;
    const auto start = std::chrono::steady_clock::now();
    const auto quiet_from = start + std::chrono::seconds(2);
    std::atomic<uint64_t> early{0};
    p.needs_lease([&] {  // no pause at first, then one of 30 ms every 50
        const auto now = std::chrono::steady_clock::now();
        if (now < quiet_from) early = p.proofs();
        return now >= quiet_from &&
               (now - start) % std::chrono::milliseconds(50) > std::chrono::milliseconds(20);
    });
    p.announce();
    const std::string reason = p.play({});
    EXPECT_EQ(early.load(), 0u) << "the program left no pause";
    EXPECT_GT(p.proofs(), 0u);
    EXPECT_EQ(p.confirmed(), 1) << reason;
}

TEST(TunerProtocol, AProgramThatNeverPausesIsLeftAlone) {
    Program p;
    ::setenv("TTT_BUDGET", "2", 1);
    p.needs_lease([] { return false; });
    p.announce();
    p.play({});
    EXPECT_EQ(p.proofs(), 0u);
    EXPECT_EQ(p.seen("TimeRequest"), 0);
    p.end();
    p.wait_exit();
    EXPECT_EQ(p.site()["state"], "failed") << p.site().dump(1);
    EXPECT_EQ(p.site()["reason"], "the program left no idle time");
}

TEST(TunerProtocol, SecondRunTakesTheStoredWinner) {
    Program p;
    p.announce();
    p.play({});
    p.end();
    ASSERT_EQ(p.wait_exit(), 0);
    const std::string first = p.swapped();
    const int tried = p.site()["tried"].get<int>();
    p.announce();
    p.play({});
    p.end();
    ASSERT_EQ(p.wait_exit(), 0);
    EXPECT_EQ(p.site()["state"], "committed") << p.site().dump(1);
    EXPECT_EQ(p.site()["from"], "store");
    EXPECT_EQ(p.site()["tried"], 1);
    EXPECT_GT(tried, 1);
    EXPECT_EQ(p.swapped(), first);
}

TEST(TunerProtocol, RecordingThatDoesNotReplayIsNotTuned) {
    Program p;
    p.announce();
    Program::Script script;
    script.arena.back() ^= std::byte{1};  // as if a hidden input had changed the result
    const std::string reason = p.play(script);
    EXPECT_NE(reason.find("hidden input"), std::string::npos) << reason;
    EXPECT_EQ(p.seen("VariantDef"), 0);
    p.end();
    p.wait_exit();
    EXPECT_EQ(p.site()["state"], "ineligible");
    EXPECT_EQ(p.site()["bit_exact"], false);
}

TEST(TunerProtocol, IneligibleSitesAreDoneAtOnceWithAReason) {
    struct Case {
        const char* expected;
        std::function<void(Program&)> announce;
    };
    const Case cases[] = {
        {"foreign PTX",
         [](Program& p) {
             p.module(k::right());
             p.kernel(false);
             p.site_hot();
         }},
        {"not ordinary device memory",
         [](Program& p) {
             p.module(k::right());
             p.kernel();
             p.site_hot(false);
         }},
        {"does not hold the kernel",
         [](Program& p) {
             std::string other = k::right();
             other.replace(other.find("vecadd"), 6, "others");
             p.module(other);
             p.kernel();
             p.site_hot();
         }},
        {"not seen being loaded",
         [](Program& p) {
             p.kernel();
             p.site_hot();
         }},
        {"no kernel", [](Program& p) { p.site_hot(); }},
        {"PTX",
         [](Program& p) {
             p.module(".version 8.0\n.target sm_90\n.entry vecadd( {");
             p.kernel();
             p.site_hot();
         }},
    };
    for (const Case& c : cases) {
        Program p;
        p.start();
        p.hello();
        c.announce(p);
        const std::string reason = p.play({}, 30);
        EXPECT_NE(reason.find(c.expected), std::string::npos) << reason;
        EXPECT_EQ(p.seen("SnapshotRequest"), 0);
    }
}

TEST(TunerProtocol, ModesObserveAndTuneNeverSwap) {
    for (const char* mode : {"observe", "tune"}) {
        Program p;
        p.start();
        p.hello(mode);
        p.module(k::right());
        p.kernel();
        p.site_hot();
        p.play({});
        EXPECT_EQ(p.seen("SwapRequest"), 0) << mode;
        p.end();
        p.wait_exit();
        EXPECT_EQ(p.site()["state"], std::string(mode) == "tune" ? "validated" : "observed")
            << p.site().dump(1);
    }
}

TEST(TunerProtocol, AnswersQueriesAndPassesOnAndOff) {
    Program p;
    p.start();
    p.hello();
    const Json status = Json::parse(ask(p, "status"), nullptr, false);
    ASSERT_TRUE(status.is_object());
    EXPECT_EQ(status["pid"], ::getpid());
    EXPECT_EQ(Json::parse(ask(p, "off"))["ok"], true);
    auto r = p.channel().receive(5000);
    ASSERT_TRUE(r.ok() && r->has_value());
    ASSERT_NE((*r)->message()->payload_as_Control(), nullptr);
    EXPECT_EQ(ipc::text((*r)->message()->payload_as_Control()->command()), "off");
    EXPECT_EQ(Json::parse(ask(p, "dance"))["ok"], false);
    p.end();
    EXPECT_EQ(p.wait_exit(), 0);
}

}  // namespace
}  // namespace ttt::testing_program
