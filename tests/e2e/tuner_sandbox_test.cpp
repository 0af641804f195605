// The sandbox on the emulated GPU: what it must accept, and each kind of wrong variant it must
// catch.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <optional>
#include <thread>

#include "e2e/tuner_kernels.h"
#include "sandbox/device_bytes.h"
#include "sandbox/device_compare.h"
#include "sandbox/perturb.h"
#include "tuner/sandbox_link.h"

namespace ttt::tuner {
namespace {

namespace k = testing_kernels;

// Every verdict is the same whether results are compared on the device or on the host.
class Sandbox : public testing::TestWithParam<const char*> {
  protected:
    void SetUp() override {
        ::setenv("LD_LIBRARY_PATH", TTT_EMULATOR_DIR, 1);
        ::setenv("TTT_COMPARE", GetParam(), 1);
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

TEST_P(Sandbox, OriginalReproducesTheRecording) {
    ReplayRequest q = request(1);
    q.repeats = 3;
    const ReplayResult r = run(q);
    EXPECT_TRUE(r.ok) << r.gate << ": " << r.evidence;
    EXPECT_GT(r.coarse_ns, 0);
    EXPECT_GT(r.wall_ms, 0);
}

TEST_P(Sandbox, WrongBitsAreNamed) {
    load(2, k::wrong());
    const ReplayResult r = run(request(2));
    EXPECT_FALSE(r.ok);
    EXPECT_EQ(r.gate, "bits");
    EXPECT_NE(r.evidence.find("region 2"), std::string::npos) << r.evidence;
}

TEST_P(Sandbox, WritingBesideABufferIsCaught) {
    load(2, k::beyond());
    const ReplayResult r = run(request(2));
    EXPECT_EQ(r.gate, "footprint") << r.evidence;
}

TEST_P(Sandbox, WritingAnInputIsCaught) {
    load(2, k::writes_input());
    const ReplayResult r = run(request(2));
    EXPECT_EQ(r.gate, "footprint") << r.evidence;
}

TEST_P(Sandbox, PoisonShowsAReadOfTheOutput) {
    load(2, k::reads_output());
    EXPECT_TRUE(run(request(2)).ok) << "the recorded output starts as zero";
    ReplayRequest q = request(2, 1);
    q.poison = 0x5A;
    const ReplayResult r = run(q);
    EXPECT_EQ(r.gate, "bits") << r.evidence;
    q.module = 1;
    EXPECT_TRUE(run(q).ok);
}

TEST_P(Sandbox, PerturbedInputShowsAValueDependentFault) {
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

TEST_P(Sandbox, FaultIsNamedAndTheNextReplayRuns) {
    load(2, k::faulting());
    const ReplayResult r = run(request(2));
    EXPECT_EQ(r.gate, "fault") << r.evidence;
    EXPECT_TRUE(run(request(1)).ok) << "a new sandbox must have the snapshot and the module";
    EXPECT_EQ(link_.restarts(), 2u);
}

TEST_P(Sandbox, HangEndsAtTheTimeout) {
    load(2, k::hanging());
    ReplayRequest q = request(2);
    q.timeout_ms = 300;
    const ReplayResult r = run(q);
    EXPECT_EQ(r.gate, "fault");
    EXPECT_NE(r.evidence.find("hang"), std::string::npos) << r.evidence;
    EXPECT_TRUE(run(request(1)).ok);
}

TEST_P(Sandbox, FailingReferenceIsNotTheVariantsFault) {
    load(2, k::faulting());
    ReplayRequest q = request(1, 2);
    q.poison = 0x5A;
    EXPECT_EQ(run(q).gate, "reference");
}

TEST_P(Sandbox, PoisonNeedsAReference) {
    ReplayRequest q = request(1);
    q.poison = 1;
    EXPECT_EQ(run(q).gate, "driver");
}

TEST_P(Sandbox, HostCopyHoldsPreAndPost) {
    auto copy = link_.fetch();
    ASSERT_TRUE(copy.ok()) << copy.error().str();
    ASSERT_EQ(copy->pre.size(), 3u);
    EXPECT_TRUE(copy->post[0].empty());
    ASSERT_EQ(copy->post[2].size(), k::kBytes);
    const auto arena = k::arena_bytes();
    EXPECT_EQ(std::memcmp(copy->pre[1].data(), arena.data() + k::kBytes, k::kBytes), 0);
    EXPECT_EQ(std::memcmp(copy->post[2].data(), arena.data() + 3 * k::kBytes, k::kBytes), 0);
}

TEST_P(Sandbox, ModuleThatIsNoneIsAnError) {
    const std::string garbage = "this is no module";
    EXPECT_FALSE(link_.load(3, std::as_bytes(std::span(garbage)), "vecadd").ok());
    const std::string ptx = k::right();
    EXPECT_FALSE(link_.load(3, std::as_bytes(std::span(ptx)), "another").ok());
    EXPECT_TRUE(run(request(1)).ok);
}

TEST_P(Sandbox, ArenaSmallerThanAnnouncedIsRefused) {
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

INSTANTIATE_TEST_SUITE_P(Compare, Sandbox, testing::Values("host", "device"),
                         [](const auto& which) { return std::string(which.param); });

// c = a + scale * b with `scale` in constant memory, recorded as 2.
class SandboxVariables : public Sandbox {
  protected:
    static std::string with_variable(const std::string& declaration, const std::string& load) {
        std::string text = k::vecadd("    ld.param.u64 %rd7, [p_c];\n" + load +
                                     "\n    fma.rn.f32 %f3, %f2, %f4, %f1;\n"
                                     "    st.global.f32 [%rd6], %f3;");
        return text.insert(text.find(".visible .entry"), declaration + "\n");
    }
    static std::string original() {
        return with_variable(".visible .const .align 4 .f32 scale = 0f40A00000;",
                             "    ld.const.f32 %f4, [scale];");
    }
    static std::string bound(const std::string& use) {
        return with_variable(".visible .const .align 8 .u64 ttt_at_scale;",
                             "    ld.const.u64 %rd8, [ttt_at_scale];\n" + use);
    }
    static sandbox::Binding binding() { return {1, {{"ttt_at_scale", "scale", 4}}}; }

    void SetUp() override {
        Sandbox::SetUp();
        std::vector<std::byte> arena = k::arena_bytes();
        const auto a = k::values(1), b = k::values(2);
        const float scale = 2;
        for (uint32_t i = 0; i < k::kCount; ++i) {
            const float c = a[i] + scale * b[i];
            std::memcpy(arena.data() + 3 * k::kBytes + i * 4, &c, 4);
        }
        arena.resize(arena.size() + 4);
        std::memcpy(arena.data() + 4 * k::kBytes, &scale, 4);
        measure::Region r;
        r.address = 0x20000004;
        r.bytes = 4;
        r.pre_offset = 4 * k::kBytes;
        r.variable = "scale";
        recorded_.id = 2;
        recorded_.snapshot.regions.push_back(r);
        recorded_.snapshot.arena_bytes += 4;
        auto fd = ipc::make_memfd("arena", arena);
        ASSERT_TRUE(fd.ok());
        recorded_.arena = std::make_shared<ArenaFd>(std::move(*fd));
        link_.use(&recorded_);
        load(1, original());
    }
    void load_bound(uint64_t id, const std::string& ptx) {
        auto r = link_.load(id, std::as_bytes(std::span(ptx)), "vecadd", -1, -1, binding());
        ASSERT_TRUE(r.ok()) << r.error().str();
    }
};

TEST_P(SandboxVariables, TheOriginalFindsTheRecordedContents) {
    const ReplayResult r = run(request(1));
    EXPECT_TRUE(r.ok) << r.gate << ": " << r.evidence;
}

TEST_P(SandboxVariables, AVariantReadsTheOriginalsStorage) {
    load_bound(2, bound("    ld.global.nc.f32 %f4, [%rd8];"));
    ReplayRequest q = request(2);
    q.repeats = 3;
    ReplayResult r = run(q);
    EXPECT_TRUE(r.ok) << r.gate << ": " << r.evidence;
    q = request(2, 1);
    q.poison = 0xFF;
    r = run(q);
    EXPECT_TRUE(r.ok) << r.gate << ": " << r.evidence;
    // Another module with a variable of its own of that name is given the contents too.
    load(3, original());
    EXPECT_TRUE(run(request(3)).ok);
    load_bound(4, bound("    ld.global.nc.f32 %f4, [%rd8];\n    add.rn.f32 %f4, %f4, %f4;"));
    EXPECT_EQ(run(request(4)).gate, "bits");
}

TEST_P(SandboxVariables, ChangingAVariableIsCaught) {
    load_bound(2, bound("    ld.global.f32 %f4, [%rd8];\n    st.global.f32 [%rd8], %f1;"));
    const ReplayResult r = run(request(2));
    EXPECT_FALSE(r.ok);
    EXPECT_NE(r.gate, "driver") << r.evidence;
    // One thread writes the variable when all have read it: only the variable itself shows it.
    load_bound(3, bound("    ld.global.f32 %f4, [%rd8];\n    setp.ne.s32 %p2, %r5, 999;\n"
                        "    @%p2 bra KEEP;\n    st.global.f32 [%rd8], %f1;\nKEEP:"));
    EXPECT_FALSE(run(request(3)).ok);
}

TEST_P(SandboxVariables, CellsThatCannotBeFilledAreRefused) {
    const std::string ptx = bound("    ld.global.nc.f32 %f4, [%rd8];");
    const auto error = [&](const sandbox::Binding& b) {
        auto r = link_.load(2, std::as_bytes(std::span(ptx)), "vecadd", -1, -1, b);
        return r.ok() ? std::string() : r.error().str();
    };
    EXPECT_NE(error({1, {{"ttt_at_none", "scale", 4}}}).find("no module variable ttt_at_none"),
              std::string::npos);
    EXPECT_NE(error({1, {{"ttt_at_scale", "none", 4}}}).find("no module variable none"),
              std::string::npos);
    EXPECT_NE(error({1, {{"ttt_at_scale", "scale", 8}}}).find("has 4 bytes, not 8"),
              std::string::npos);
    EXPECT_NE(error({9, {{"ttt_at_scale", "scale", 4}}}), "");
    EXPECT_EQ(error(binding()), "");
}

TEST_P(SandboxVariables, ANewSandboxLoadsTheOriginalFirst) {
    load_bound(2, bound("    ld.global.nc.f32 %f4, [%rd8];"));
    load_bound(3, bound("    mov.u64 %rd9, 64;\n    ld.global.f32 %f4, [%rd9];"));
    EXPECT_EQ(run(request(3)).gate, "fault");
    const ReplayResult r = run(request(2));
    EXPECT_TRUE(r.ok) << r.gate << ": " << r.evidence;
}

INSTANTIATE_TEST_SUITE_P(Compare, SandboxVariables, testing::Values("host", "device"),
                         [](const auto& p) { return std::string(p.param); });

TEST(SandboxCompare, DeviceAndHostGiveTheSameEvidence) {
    ::setenv("LD_LIBRARY_PATH", TTT_EMULATOR_DIR, 1);
    Recorded recorded;
    recorded.id = 1;
    recorded.snapshot = k::snapshot();
    recorded.host_arena = true;
    auto fd = ipc::make_memfd("arena", k::arena_bytes());
    ASSERT_TRUE(fd.ok());
    recorded.arena = std::make_shared<ArenaFd>(std::move(*fd));
    std::map<std::string, std::vector<std::string>> evidence;
    for (const char* where : {"host", "device"}) {
        ::setenv("TTT_COMPARE", where, 1);
        SandboxLink link({TTT_BIN_DIR "/ttt-sandbox", "", true, 0, 90});
        link.use(&recorded);
        const std::string modules[] = {k::right(), k::wrong(), k::beyond(), k::writes_input(),
                                       k::right_on_these_values()};
        for (uint64_t id = 1; const std::string& ptx : modules)
            ASSERT_TRUE(link.load(id++, std::as_bytes(std::span(ptx)), "vecadd").ok());
        for (uint64_t id = 1; id <= std::size(modules); ++id)
            for (uint64_t seed : {0, 1, 2}) {
                ReplayRequest q;
                q.module = id;
                q.reference = seed != 0 ? 1 : 0;
                q.seed = seed;
                q.float_bytes = {4, 4, 4};
                q.grid = {k::kGrid, 1, 1};
                q.block = {k::kBlock, 1, 1};
                auto r = link.replay(q);
                ASSERT_TRUE(r.ok()) << r.error().str();
                evidence[where].push_back(r->gate + ": " + r->evidence);
            }
    }
    EXPECT_EQ(evidence["host"], evidence["device"]);
}

TEST(SandboxCompare, FindsADifferenceAnywhere) {
    // Under the name the driver's loader asks for.
    ASSERT_NE(::dlopen(TTT_EMULATOR_DIR "/libcuda.so.1", RTLD_NOW | RTLD_GLOBAL), nullptr);
    auto driver = sandbox::Driver::load();
    ASSERT_TRUE(driver.ok()) << driver.error().str();
    ASSERT_TRUE(sandbox::open_device(*driver, "").ok());
    auto compare = sandbox::DeviceCompare::make(*driver);
    ASSERT_TRUE(compare.ok()) << compare.error().str();
    constexpr uint64_t kRoom = 4096;
    auto a = sandbox::DeviceBytes::make(*driver, kRoom, 0);
    auto b = sandbox::DeviceBytes::make(*driver, kRoom, 0);
    ASSERT_TRUE(a.ok() && b.ok());
    std::vector<std::byte> bytes(kRoom, std::byte{7});
    driver->cuMemcpyHtoD_v2(b->at(), bytes.data(), kRoom);
    struct Case {
        uint64_t start_a, start_b, length, differs;  // differs == length: equal
    };
    for (const Case& c :
         {Case{0, 0, 4096, 4096}, Case{0, 0, 4096, 4095}, Case{0, 0, 1, 0}, Case{3, 3, 1000, 0},
          Case{3, 3, 1000, 12}, Case{3, 3, 1000, 13}, Case{3, 3, 1000, 999}, Case{3, 3, 1000, 1000},
          Case{15, 15, 3, 2}, Case{1, 2, 777, 776}, Case{1, 2, 777, 777}, Case{8, 8, 5, 4}}) {
        std::vector<std::byte> changed = bytes;
        // Differences outside the range must not be seen.
        if (c.start_a > 0) changed[c.start_a - 1] = std::byte{9};
        if (c.start_a + c.length < kRoom) changed[c.start_a + c.length] = std::byte{9};
        if (c.differs < c.length) changed[c.start_a + c.differs] = std::byte{9};
        driver->cuMemcpyHtoD_v2(a->at(), changed.data(), kRoom);
        const sandbox::DeviceCompare::Ranges ranges[] = {
            {a->at() + c.start_a, b->at() + c.start_b, c.length}, {b->at(), b->at(), kRoom}};
        auto found = (*compare)->first_differences(ranges, nullptr);
        ASSERT_TRUE(found.ok()) << found.error().str();
        EXPECT_EQ((*found)[1], sandbox::DeviceCompare::kEqual);
        if (c.differs == c.length) {
            EXPECT_EQ((*found)[0], sandbox::DeviceCompare::kEqual) << c.start_a << " " << c.length;
        } else {
            EXPECT_LE((*found)[0], c.differs) << c.start_a << " " << c.length;
            EXPECT_GT((*found)[0] + 16, c.differs) << c.start_a << " " << c.length;
        }
    }
}

class SandboxLease : public testing::Test {
  protected:
    void SetUp() override {
        ::setenv("LD_LIBRARY_PATH", TTT_EMULATOR_DIR, 1);
        auto page = ipc::LeasePage::create(3);
        ASSERT_TRUE(page.ok());
        page_.emplace(std::move(*page));
        recorded_.id = 1;
        recorded_.snapshot = k::snapshot();
        recorded_.host_arena = true;
        auto fd = ipc::make_memfd("arena", k::arena_bytes());
        ASSERT_TRUE(fd.ok());
        recorded_.arena = std::make_shared<ArenaFd>(std::move(*fd));
        link_.emplace(SandboxLink::Options{TTT_BIN_DIR "/ttt-sandbox", "", true, 0, 90, &*page_});
        link_->use(&recorded_);
        const std::string ptx = k::right();
        ASSERT_TRUE(link_->load(1, std::as_bytes(std::span(ptx)), "vecadd").ok());
    }
    ReplayResult run(uint32_t lease_ms) {
        ReplayRequest q;
        q.module = 1;
        q.grid = {k::kGrid, 1, 1};
        q.block = {k::kBlock, 1, 1};
        q.repeats = 3;
        q.lease_ms = lease_ms;
        auto r = link_->replay(q);
        EXPECT_TRUE(r.ok());
        return r.ok() ? *r : ReplayResult{};
    }
    // What the session's thread does while the program is quiet.
    void idle_for(std::chrono::milliseconds time) {
        const auto until = std::chrono::steady_clock::now() + time;
        while (std::chrono::steady_clock::now() < until) {
            page_->words().beat_ns.store(ipc::lease_clock_ns());
            page_->words().until_ns.store(ipc::lease_clock_ns() + 1'000'000'000);
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        page_->words().until_ns.store(0);
    }
    std::optional<ipc::LeasePage> page_;
    Recorded recorded_;
    std::optional<SandboxLink> link_;
};

TEST_F(SandboxLease, NothingRunsWithoutAPause) {
    EXPECT_EQ(run(100).gate, "lease");
    EXPECT_EQ(page_->words().proofs.load(), 0u) << "the GPU was not used";
    page_->words().busy.store(1);  // the program launches, whatever else the page says
    std::thread session([&] { idle_for(std::chrono::milliseconds(300)); });
    EXPECT_EQ(run(100).gate, "lease");
    session.join();
}

TEST_F(SandboxLease, RunsOnceThereIsAPause) {
    std::thread session([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(150));
        idle_for(std::chrono::milliseconds(3000));
    });
    const ReplayResult r = run(20000);
    session.join();
    EXPECT_TRUE(r.ok) << r.gate << ": " << r.evidence;
    EXPECT_EQ(page_->words().proofs.load(), 6u) << "three runs, each marked";
}

TEST_F(SandboxLease, ADeadSessionStopsItBetweenTwoLaunches) {
    page_->words().until_ns.store(~uint64_t{0});
    page_->words().beat_ns.store(ipc::lease_clock_ns());
    ReplayRequest q;
    q.module = 1;
    q.grid = {k::kGrid, 1, 1};
    q.block = {k::kBlock, 1, 1};
    q.repeats = 100000;
    q.lease_ms = 500;
    q.timeout_ms = 1000;
    auto r = link_->replay(q);
    ASSERT_TRUE(r.ok());
    EXPECT_EQ(r->gate, "lease") << "the page went stale";
    EXPECT_EQ(page_->words().proofs.load() % 2, 0u);
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
