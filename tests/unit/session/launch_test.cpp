// The launch path against a driver of canned answers: guards, canary, refused variants, captures,
// recordings.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <thread>

#include "session/launch_path.h"
#include "session/recording.h"

namespace ttt::session {
namespace {

CUfunction const kOriginal = reinterpret_cast<CUfunction>(0x100);
CUfunction const kVariant = reinterpret_cast<CUfunction>(0x200);
CUcontext const kContext = reinterpret_cast<CUcontext>(0x300);

CUstreamCaptureStatus g_capture = CU_STREAM_CAPTURE_STATUS_NONE;
int g_records = 0, g_copies = 0;
CUresult g_copy_result = CUDA_SUCCESS;

Driver canned_driver() {
    Driver d;
    d.cuCtxGetCurrent = [](CUcontext* c) {
        *c = kContext;
        return CUDA_SUCCESS;
    };
    d.cuCtxGetDevice = [](CUdevice* v) {
        *v = 0;
        return CUDA_SUCCESS;
    };
    d.cuThreadExchangeStreamCaptureMode = [](CUstreamCaptureMode*) { return CUDA_SUCCESS; };
    d.cuStreamIsCapturing = [](CUstream, CUstreamCaptureStatus* s) {
        *s = g_capture;
        return CUDA_SUCCESS;
    };
    d.cuEventRecord = [](CUevent, CUstream) {
        ++g_records;
        return CUDA_SUCCESS;
    };
    d.cuMemcpyDtoDAsync_v2 = [](CUdeviceptr, CUdeviceptr, size_t, CUstream) {
        ++g_copies;
        return g_copy_result;
    };
    return d;
}

// Never freed, as in a program: a launching thread's cached answers name dispatches by address.
template <typename T>
T* kept() {
    static auto& all = *new std::vector<std::unique_ptr<T>>;
    all.push_back(std::make_unique<T>());
    return all.back().get();
}

struct LaunchPath : testing::Test {
    void SetUp() override {
        g_capture = CU_STREAM_CAPTURE_STATUS_NONE;
        g_records = g_copies = 0;
        g_copy_result = CUDA_SUCCESS;
        s.driver = canned_driver();
        auto entry = std::make_unique<Function>();
        entry->handle = kOriginal;
        entry->kernel_id = 1;
        entry->valid_epoch.store(s.functions.epoch());
        entry->layout.params = {{0, 8}, {8, 8}, {16, 4}};
        entry->layout.known = true;
        f = s.functions.insert(std::move(entry));
        s.allocations.add(0x10000, 0x1000, MemoryKind::kDevice);
        s.allocations.add(0x20000, 0x1000, MemoryKind::kDevice);
        pool.context = kContext;
        s.pools.store(&pool);
        launch.function = kOriginal;
        launch.grid = {4, 1, 1};
        launch.block = {128, 1, 1};
        launch.params = params;
        launch.state = this;
        launch.call = [](void* p, CUfunction fn, const Dim3& g, const Dim3&, uint32_t) {
            auto& t = *static_cast<LaunchPath*>(p);
            t.calls.push_back(fn);
            t.last_grid = g;
            return fn == kVariant ? t.variant_result : t.original_result;
        };
    }
    void publish(DispatchMode mode) {
        auto* d = kept<Dispatch>();
        d->function = kVariant;
        d->context = kContext;
        d->grid = {2, 1, 1};
        d->block = {256, 1, 1};
        d->need_grid = Dim3{4, 1, 1};
        ParamField count;
        ASSERT_TRUE(locate(f->layout, 16, 4, &count));
        d->scalars.push_back({count, {std::byte{16}, std::byte{0}, std::byte{0}, std::byte{0}}});
        ParamField a, b;
        ASSERT_TRUE(locate(f->layout, 0, 8, &a) && locate(f->layout, 8, 8, &b));
        d->aligned.push_back({a, 15});
        d->overlaps.push_back({a, b});
        d->mode.store(mode);
        dispatch = d;
        auto* set = kept<DispatchSet>();
        set->variants.push_back(d);
        f->dispatch.store(set);
        f->attention.store(kHasDispatch);
    }
    CUresult go() { return launch_with_attention(s, f, launch); }

    Shared s;
    ContextPool pool;
    Function* f = nullptr;
    Launch launch;
    uint64_t in = 0x10000, out = 0x20000;
    uint32_t n = 16;
    void* params[3] = {&in, &out, &n};
    std::vector<CUfunction> calls;
    Dim3 last_grid;
    CUresult variant_result = CUDA_SUCCESS, original_result = CUDA_SUCCESS;
    const Dispatch* dispatch = nullptr;
};

TEST_F(LaunchPath, VariantServesWhereTheGuardHolds) {
    publish(DispatchMode::kLive);
    EXPECT_EQ(go(), CUDA_SUCCESS);
    EXPECT_EQ(calls, std::vector<CUfunction>{kVariant});
    EXPECT_EQ(last_grid.x, 2u);
}

TEST_F(LaunchPath, EachBrokenConditionMeansTheOriginal) {
    publish(DispatchMode::kLive);
    n = 17;
    go();
    n = 16;
    in = 0x10008;  // not 16-byte aligned
    go();
    in = 0x20010;  // the output's allocation
    go();
    in = 0x50000;  // no known allocation
    go();
    in = 0x10000;
    launch.grid.x = 5;
    go();
    launch.grid.x = 4;
    s.variants_on.store(0);
    go();
    s.variants_on.store(1);
    launch.plain = false;
    go();
    EXPECT_EQ(calls, std::vector<CUfunction>(7, kOriginal));
}

TEST_F(LaunchPath, FreedMemoryInvalidatesTheCachedAnswer) {
    publish(DispatchMode::kLive);
    go();
    s.allocations.remove(0x20000);
    go();
    EXPECT_EQ(calls, (std::vector<CUfunction>{kVariant, kOriginal}));
}

TEST_F(LaunchPath, RefusedVariantIsHiddenAndRetired) {
    publish(DispatchMode::kLive);
    variant_result = CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    original_result = CUDA_ERROR_INVALID_VALUE;
    EXPECT_EQ(go(), CUDA_ERROR_INVALID_VALUE) << "the original's own code";
    EXPECT_EQ(calls, (std::vector<CUfunction>{kVariant, kOriginal}));
    go();
    EXPECT_EQ(calls.size(), 3u) << "not tried again";
    EXPECT_EQ(calls.back(), kOriginal);
    EXPECT_EQ(s.variant_failures.load(), 1u);
}

TEST_F(LaunchPath, CanaryPairsOriginalAndVariantOnItsOwnPermits) {
    publish(DispatchMode::kCanary);
    go();
    EXPECT_EQ(calls, std::vector<CUfunction>{kOriginal}) << "no permit";
    s.sample_armed.store(1);
    go();
    EXPECT_EQ(calls.back(), kOriginal) << "anybody's permit: an ordinary sample";
    EXPECT_EQ(g_records, 2);
    calls.clear();
    int variant_first = 0;
    for (int pair = 0; pair < 40; ++pair) {
        for (int side = 0; side < 2; ++side) {
            dispatch->permit.store(1);
            go();
            go();  // without one
            EXPECT_EQ(calls.back(), kOriginal);
            calls.pop_back();
        }
        const CUfunction first = calls[calls.size() - 2], second = calls.back();
        EXPECT_NE(first, second) << "each two are a pair";
        variant_first += first == kVariant;
        for (Sample& sample : pool.samples) sample.state.store(SampleState::kFree);
    }
    EXPECT_GT(variant_first, 8) << "in no fixed order";
    EXPECT_LT(variant_first, 32);
    EXPECT_EQ(g_records, 2 + 2 * 80);
}

TEST_F(LaunchPath, APermitMayLetLaunchesPass) {
    s.sample_armed.store(3);
    go();
    go();
    EXPECT_EQ(g_records, 0);
    go();
    EXPECT_EQ(g_records, 2);
    go();
    EXPECT_EQ(g_records, 2);
}

TEST_F(LaunchPath, CapturedLaunchesAreTheOriginalsAndUntimed) {
    publish(DispatchMode::kLive);
    g_capture = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    s.captures.store(1);
    s.sample_armed.store(1);
    go();
    EXPECT_EQ(calls, std::vector<CUfunction>{kOriginal});
    EXPECT_EQ(g_records, 0);
}

TEST_F(LaunchPath, AnotherContextIsTheOriginals) {
    publish(DispatchMode::kLive);
    s.contexts.store(2);
    s.driver.cuCtxGetCurrent = [](CUcontext* c) {
        *c = reinterpret_cast<CUcontext>(0x999);
        return CUDA_SUCCESS;
    };
    go();
    EXPECT_EQ(calls, std::vector<CUfunction>{kOriginal});
}

TEST_F(LaunchPath, DependentLaunchesGetNothingOfOursBetweenThem) {
    publish(DispatchMode::kLive);
    CUlaunchAttribute attribute{};
    attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    CUlaunchConfig config{};
    config.attrs = &attribute;
    config.numAttrs = 1;
    note_attributes(s, config);
    go();
    EXPECT_EQ(calls.back(), kVariant) << "the attribute's value was 0";
    attribute.value.programmaticStreamSerializationAllowed = 1;
    note_attributes(s, config);
    s.sample_armed.store(1);
    go();
    EXPECT_EQ(calls.back(), kOriginal);
    EXPECT_EQ(g_records, 0);
}

TEST_F(LaunchPath, NoFreeSlotMeansAnUntimedLaunch) {
    for (Sample& sample : pool.samples) sample.state.store(SampleState::kRecorded);
    s.sample_armed.store(1);
    EXPECT_EQ(go(), CUDA_SUCCESS);
    EXPECT_EQ(calls.size(), 1u);
    EXPECT_EQ(g_records, 0);
}

TEST(DispatchMode, ARetirementIsNeverUndone) {
    for (int round = 0; round < 200; ++round) {
        Dispatch d;
        d.mode.store(DispatchMode::kWaiting);
        std::atomic<bool> go{false};
        std::thread launching([&] {
            while (!go.load()) {
            }
            d.mode.store(DispatchMode::kRetired);
        });
        go.store(true);
        d.enter(DispatchMode::kLive);
        launching.join();
        EXPECT_EQ(d.mode.load(), DispatchMode::kRetired);
        EXPECT_FALSE(d.enter(DispatchMode::kLive));
        EXPECT_EQ(d.mode.load(), DispatchMode::kRetired);
    }
}

struct Recording : LaunchPath {
    void SetUp() override {
        LaunchPath::SetUp();
        job.context = kContext;
        job.grid = launch.grid;
        job.block = launch.block;
        job.expected_params.resize(20);
        const uint64_t a = 0x10000, b = 0x20000;
        const uint32_t count = 16;
        std::memcpy(job.expected_params.data(), &a, 8);
        std::memcpy(job.expected_params.data() + 8, &b, 8);
        std::memcpy(job.expected_params.data() + 16, &count, 4);
        job.must_equal = {0, 0, 1};
        add(0x10000, 0, false);
        add(0x20000, 8, true);
        job.arena = 0x900000;
    }
    void add(uint64_t address, uint32_t pointer, bool written) {
        measure::Region r;
        r.address = address;
        r.bytes = 0x1000;
        r.post_offset = written ? 0x4000 : measure::kNoBytes;
        r.written = written;
        r.pointers = {pointer};
        job.regions.push_back(r);
        ParamField field;
        ASSERT_TRUE(locate(f->layout, pointer, 8, &field));
        job.pointers.push_back({field});
    }
    bool record() { return try_record(s, f, launch, &job, &result); }
    SnapshotJob job;
    CUresult result = CUDA_ERROR_UNKNOWN;
};

TEST_F(Recording, CopiesBeforeAndAfterOnTheLaunchsOwnStream) {
    ASSERT_TRUE(record());
    EXPECT_EQ(result, CUDA_SUCCESS);
    EXPECT_EQ(calls, std::vector<CUfunction>{kOriginal});
    EXPECT_EQ(g_copies, 3) << "two before, the written one after";
    EXPECT_EQ(job.state.load(), JobState::kTaken);
    EXPECT_FALSE(record()) << "once";
}

TEST_F(Recording, FollowsPointersThatMovedToOtherBuffers) {
    s.allocations.add(0x70000, 0x2000, MemoryKind::kDevice);
    in = 0x70800;
    ASSERT_TRUE(record());
    EXPECT_EQ(job.addresses[0], 0x70800u);
}

TEST_F(Recording, LeavesLaunchesThatDoNotFit) {
    in = 0x10800;  // the region would run past its allocation
    EXPECT_FALSE(record());
    in = 0x10000;
    n = 99;  // a constant scalar changed
    EXPECT_FALSE(record());
    n = 16;
    s.allocations.remove(0x20000);
    s.allocations.add(0x20000, 0x1000, MemoryKind::kManaged);
    EXPECT_FALSE(record());
    g_capture = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    EXPECT_FALSE(record());
    EXPECT_TRUE(calls.empty());
    EXPECT_EQ(g_copies, 0);
    EXPECT_EQ(job.state.load(), JobState::kArmed) << "a later launch may fit";
}

TEST_F(Recording, AFailedCopyStillLaunchesOnce) {
    g_copy_result = CUDA_ERROR_INVALID_VALUE;
    ASSERT_TRUE(record());
    EXPECT_EQ(result, CUDA_SUCCESS);
    EXPECT_EQ(calls.size(), 1u);
    EXPECT_EQ(job.state.load(), JobState::kFailed);
}

TEST(DriverLoad, NamesTheFunctionThatIsMissing) {
    const auto r = Driver::load(
        [](void*, const char* name) -> void* {
            return std::strcmp(name, "cuEventRecord") == 0 ? nullptr : reinterpret_cast<void*>(1);
        },
        nullptr);
    ASSERT_FALSE(r.ok());
    EXPECT_NE(r.error().message.find("cuEventRecord"), std::string::npos);
}

}  // namespace
}  // namespace ttt::session
