// The sandbox on the emulated GPU: what it must accept, and each kind of wrong variant it must
// catch.
#include <gtest/gtest.h>

#include <cstdlib>

#include "e2e/tuner_kernels.h"
#include "sandbox/perturb.h"
#include "tuner/sandbox_link.h"

namespace ttt::tuner {
namespace {

namespace k = testing_kernels;

class Sandbox : public testing::Test {
  protected:
    void SetUp() override {
        ::setenv("LD_LIBRARY_PATH", TTT_EMULATOR_DIR, 1);
        recorded_.id = 1;
        recorded_.snapshot = k::snapshot();
        recorded_.host_arena = true;
        auto fd = ipc::make_memfd("arena", k::arena_bytes());
        ASSERT_TRUE(fd.ok());
        recorded_.arena = std::make_shared<ArenaFd>(std::move(*fd));
        link_.use(&recorded_);
        load(1, k::right());
    }
    void load(uint64_t id, const std::string& ptx) {
        auto r = link_.load(id, std::as_bytes(std::span(ptx)), "vecadd");
        ASSERT_TRUE(r.ok()) << r.error().str();
    }
    static ReplayRequest request(uint64_t module, uint64_t reference = 0) {
        ReplayRequest q;
        q.module = module;
        q.reference = reference;
        q.grid = {k::kGrid, 1, 1};
        q.block = {k::kBlock, 1, 1};
        q.timeout_ms = 20000;
        return q;
    }
    ReplayResult run(const ReplayRequest& q) {
        auto r = link_.replay(q);
        if (!r.ok()) {
            ADD_FAILURE() << r.error().str();
            return {};
        }
        return *r;
    }
    Recorded recorded_;
    SandboxLink link_{{TTT_BIN_DIR "/ttt-sandbox", "", true, 0, 90}};
};

TEST_F(Sandbox, OriginalReproducesTheRecording) {
    ReplayRequest q = request(1);
    q.repeats = 3;
    const ReplayResult r = run(q);
    EXPECT_TRUE(r.ok) << r.gate << ": " << r.evidence;
    EXPECT_GT(r.coarse_ns, 0);
    EXPECT_GT(r.wall_ms, 0);
}

TEST_F(Sandbox, WrongBitsAreNamed) {
    load(2, k::wrong());
    const ReplayResult r = run(request(2));
    EXPECT_FALSE(r.ok);
    EXPECT_EQ(r.gate, "bits");
    EXPECT_NE(r.evidence.find("region 2"), std::string::npos) << r.evidence;
}

TEST_F(Sandbox, WritingBesideABufferIsCaught) {
    load(2, k::beyond());
    const ReplayResult r = run(request(2));
    EXPECT_EQ(r.gate, "footprint") << r.evidence;
}

TEST_F(Sandbox, WritingAnInputIsCaught) {
    load(2, k::writes_input());
    const ReplayResult r = run(request(2));
    EXPECT_EQ(r.gate, "footprint") << r.evidence;
}

TEST_F(Sandbox, PoisonShowsAReadOfTheOutput) {
    load(2, k::reads_output());
    EXPECT_TRUE(run(request(2)).ok) << "the recorded output starts as zero";
    ReplayRequest q = request(2, 1);
    q.poison = 0x5A;
    const ReplayResult r = run(q);
    EXPECT_EQ(r.gate, "bits") << r.evidence;
    q.module = 1;
    EXPECT_TRUE(run(q).ok);
}

TEST_F(Sandbox, PerturbedInputShowsAValueDependentFault) {
    load(2, k::right_on_these_values());
    EXPECT_TRUE(run(request(2)).ok) << "right on the recorded values";
    ReplayRequest q = request(2, 1);
    q.seed = 2;
    q.float_bytes = {4, 4, 0};
    const ReplayResult r = run(q);
    EXPECT_FALSE(r.ok);
    EXPECT_EQ(r.gate, "bits") << r.evidence;
    q.module = 1;
    EXPECT_TRUE(run(q).ok) << "the same module agrees with itself, NaN payloads included";
}

TEST_F(Sandbox, FaultIsNamedAndTheNextReplayRuns) {
    load(2, k::faulting());
    const ReplayResult r = run(request(2));
    EXPECT_EQ(r.gate, "fault") << r.evidence;
    EXPECT_TRUE(run(request(1)).ok) << "a new sandbox must have the snapshot and the module";
    EXPECT_EQ(link_.restarts(), 2u);
}

TEST_F(Sandbox, HangEndsAtTheTimeout) {
    load(2, k::hanging());
    ReplayRequest q = request(2);
    q.timeout_ms = 300;
    const ReplayResult r = run(q);
    EXPECT_EQ(r.gate, "fault");
    EXPECT_NE(r.evidence.find("hang"), std::string::npos) << r.evidence;
    EXPECT_TRUE(run(request(1)).ok);
}

TEST_F(Sandbox, FailingReferenceIsNotTheVariantsFault) {
    load(2, k::faulting());
    ReplayRequest q = request(1, 2);
    q.poison = 0x5A;
    EXPECT_EQ(run(q).gate, "reference");
}

TEST_F(Sandbox, PoisonNeedsAReference) {
    ReplayRequest q = request(1);
    q.poison = 1;
    EXPECT_EQ(run(q).gate, "driver");
}

TEST_F(Sandbox, HostCopyHoldsPreAndPost) {
    auto copy = link_.fetch();
    ASSERT_TRUE(copy.ok()) << copy.error().str();
    ASSERT_EQ(copy->pre.size(), 3u);
    EXPECT_TRUE(copy->post[0].empty());
    ASSERT_EQ(copy->post[2].size(), k::kBytes);
    const auto arena = k::arena_bytes();
    EXPECT_EQ(std::memcmp(copy->pre[1].data(), arena.data() + k::kBytes, k::kBytes), 0);
    EXPECT_EQ(std::memcmp(copy->post[2].data(), arena.data() + 3 * k::kBytes, k::kBytes), 0);
}

TEST_F(Sandbox, ModuleThatIsNoneIsAnError) {
    const std::string garbage = "this is no module";
    EXPECT_FALSE(link_.load(3, std::as_bytes(std::span(garbage)), "vecadd").ok());
    const std::string ptx = k::right();
    EXPECT_FALSE(link_.load(3, std::as_bytes(std::span(ptx)), "another").ok());
    EXPECT_TRUE(run(request(1)).ok);
}

TEST_F(Sandbox, ArenaSmallerThanAnnouncedIsRefused) {
    Recorded bad;
    bad.id = 2;
    bad.snapshot = k::snapshot();
    bad.host_arena = true;
    auto fd = ipc::make_memfd("arena", std::vector<std::byte>(100));
    ASSERT_TRUE(fd.ok());
    bad.arena = std::make_shared<ArenaFd>(std::move(*fd));
    link_.use(&bad);
    load(1, k::right());
    const ReplayResult r = run(request(1));
    EXPECT_EQ(r.gate, "driver");
    EXPECT_NE(r.evidence.find("smaller"), std::string::npos) << r.evidence;
    link_.use(nullptr);
}

TEST(SandboxStart, AnotherDeviceIsRefused) {
    ::setenv("LD_LIBRARY_PATH", TTT_EMULATOR_DIR, 1);
    SandboxLink link(
        {TTT_BIN_DIR "/ttt-sandbox", "GPU-00000000-0000-0000-0000-00000000dead", true, 0, 90});
    const std::string ptx = k::right();
    auto r = link.load(1, std::as_bytes(std::span(ptx)), "vecadd");
    ASSERT_FALSE(r.ok());
    EXPECT_NE(r.error().str().find("no device"), std::string::npos) << r.error().str();
}

TEST(SandboxStart, MissingProgramIsAnError) {
    SandboxLink link({"/nonexistent/ttt-sandbox", "", true, 0, 90});
    const std::string ptx = k::right();
    EXPECT_FALSE(link.load(1, std::as_bytes(std::span(ptx)), "vecadd").ok());
}

TEST(Perturb, DependsOnSeedAndElementOnly) {
    const auto v = k::values(3);
    std::vector<std::byte> whole(k::kBytes), parts(k::kBytes), other(k::kBytes);
    std::memcpy(whole.data(), v.data(), k::kBytes);
    parts = other = whole;
    sandbox::perturb(whole, 4, 2, 0);
    sandbox::perturb(std::span(parts).first(400), 4, 2, 0);
    sandbox::perturb(std::span(parts).subspan(400), 4, 2, 100);
    EXPECT_EQ(whole, parts);
    sandbox::perturb(other, 4, 4, 0);
    EXPECT_NE(whole, other);
}

TEST(Perturb, OddSeedsStayFiniteEvenOnesDoNot) {
    std::vector<float> v = k::values(1), special = v;
    sandbox::perturb(std::as_writable_bytes(std::span(v)), 4, 1, 0);
    for (float x : v) EXPECT_TRUE(x - x == 0) << x;
    EXPECT_NE(v, k::values(1));
    sandbox::perturb(std::as_writable_bytes(std::span(special)), 4, 2, 0);
    int nans = 0, infinities = 0;
    for (float x : special) {
        nans += x != x;
        infinities += x == x && x - x != 0;
    }
    EXPECT_GT(nans, 0);
    EXPECT_GT(infinities, 0);
}

}  // namespace
}  // namespace ttt::tuner
