// Allocation table, event queue, parameters, sites, lease, child environment: state without a
// driver.
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <thread>

#include "session/allocations.h"
#include "session/event_queue.h"
#include "session/lease.h"
#include "session/params.h"
#include "session/sites.h"
#include "session/spawn.h"

namespace ttt::session {
namespace {

TEST(Allocations, FindsTheContainingAllocation) {
    Allocations a;
    a.add(0x1000, 0x100, MemoryKind::kDevice);
    a.add(0x2000, 0x10, MemoryKind::kManaged);
    Allocation found;
    EXPECT_TRUE(a.find(0x1000, &found));
    EXPECT_TRUE(a.find(0x10FF, &found));
    EXPECT_EQ(found.base, 0x1000u);
    EXPECT_TRUE(found.device_memory());
    EXPECT_FALSE(a.find(0x1100, &found));
    EXPECT_FALSE(a.find(0xFFF, &found));
    EXPECT_TRUE(a.find(0x200F, &found));
    EXPECT_FALSE(found.device_memory());
}

TEST(Allocations, GenerationMovesWithEveryChange) {
    Allocations a;
    const uint64_t g0 = a.generation();
    a.add(0x1000, 0x100, MemoryKind::kDevice);
    const uint64_t g1 = a.generation();
    a.remove(0x1000);
    const uint64_t g2 = a.generation();
    a.remove(0x1000);  // unknown: nothing changed
    EXPECT_NE(g0, g1);
    EXPECT_NE(g1, g2);
    EXPECT_EQ(g2, a.generation());
    EXPECT_EQ(a.size(), 0u);
}

TEST(Allocations, UnmappingARangeRemovesEveryMappingInIt) {
    Allocations a;
    a.add(0x1000, 0x100, MemoryKind::kVmm);
    a.add(0x1100, 0x100, MemoryKind::kVmm);
    a.add(0x1200, 0x100, MemoryKind::kVmm);
    a.remove_range(0x1000, 0x200);
    Allocation found;
    EXPECT_FALSE(a.find(0x1000, &found));
    EXPECT_FALSE(a.find(0x1180, &found));
    EXPECT_TRUE(a.find(0x1200, &found));
}

struct Node {
    Node* next = nullptr;
    int value = 0;
};

TEST(EventQueue, KeepsThePushOrderOfEachThread) {
    EventQueue<Node> q;
    constexpr int kThreads = 4, kEach = 5000;
    std::vector<std::thread> all;
    for (int t = 0; t < kThreads; ++t)
        all.emplace_back([&q, t] {
            for (int i = 0; i < kEach; ++i) q.push(new Node{nullptr, t * kEach + i});
        });
    std::vector<int> last(kThreads, -1);
    int seen = 0;
    while (seen < kThreads * kEach)
        for (Node* n = q.drain(); n != nullptr; ++seen) {
            const size_t t = static_cast<size_t>(n->value / kEach);
            EXPECT_GT(n->value % kEach, last[t]);
            last[t] = n->value % kEach;
            delete std::exchange(n, n->next);
        }
    for (auto& t : all) t.join();
    EXPECT_EQ(q.drain(), nullptr);
}

ParamLayout layout() {
    ParamLayout l;
    l.params = {{0, 8}, {8, 4}, {16, 24}};
    l.known = true;
    return l;
}

TEST(Params, LocatesOnlyInsideOneParameter) {
    ParamField f;
    EXPECT_TRUE(locate(layout(), 24, 8, &f));
    EXPECT_EQ(f.param, 2u);
    EXPECT_EQ(f.within, 8u);
    EXPECT_FALSE(locate(layout(), 8, 8, &f)) << "runs over the end of a parameter";
    EXPECT_FALSE(locate(layout(), 12, 4, &f)) << "padding";
    EXPECT_FALSE(locate(layout(), 0xFFFFFFFC, 8, &f)) << "overflow";
}

TEST(Params, BothFormsPackTheSame) {
    const ParamLayout l = layout();
    uint64_t a = 0x1122334455667788;
    uint32_t b = 7;
    unsigned char c[24];
    std::memset(c, 0x5A, sizeof c);
    void* pointers[] = {&a, &b, c};
    std::vector<std::byte> packed(l.bytes()), again(l.bytes());
    ASSERT_TRUE(ParamView(l, pointers, nullptr).pack(packed));
    size_t size = packed.size();
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, packed.data(), CU_LAUNCH_PARAM_BUFFER_SIZE,
                     &size, CU_LAUNCH_PARAM_END};
    ASSERT_TRUE(ParamView(l, nullptr, extra).pack(again));
    EXPECT_EQ(packed, again);
}

TEST(Params, ShortOrStrangeExtraIsNotRead) {
    const ParamLayout l = layout();
    std::vector<std::byte> buffer(10), out(l.bytes());
    size_t size = buffer.size();
    void* cut[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer.data(), CU_LAUNCH_PARAM_BUFFER_SIZE,
                   &size, CU_LAUNCH_PARAM_END};
    EXPECT_FALSE(ParamView(l, nullptr, cut).pack(out));
    void* strange[] = {reinterpret_cast<void*>(77), buffer.data(), CU_LAUNCH_PARAM_END};
    EXPECT_FALSE(ParamView(l, nullptr, strange).ok());
    EXPECT_FALSE(ParamView(l, nullptr, nullptr).ok());
    ParamLayout unknown = l;
    unknown.known = false;
    void* pointers[] = {nullptr};
    EXPECT_FALSE(ParamView(unknown, pointers, nullptr).ok())
        << "unknown sizes: parameters must not be touched";
}

TEST(Sites, AScalarIsStableUntilItChanges) {
    Kernel k;
    k.layout = layout();
    Sites sites;
    Site& s = sites.at(&k, {1, 1, 1}, {32, 1, 1}, 0);
    std::vector<std::byte> params(k.layout.bytes());
    sites.observe(s, params, {});
    EXPECT_EQ(s.stable, (std::vector<uint8_t>{1, 1, 1}));
    params[8] = std::byte{1};
    sites.observe(s, params, {});
    params[8] = std::byte{0};
    sites.observe(s, params, {});
    EXPECT_EQ(s.stable, (std::vector<uint8_t>{1, 0, 1}))
        << "coming back does not make it stable again";
}

TEST(Sites, ShapesAreDifferentSites) {
    Kernel k;
    Sites sites;
    Site& a = sites.at(&k, {1, 1, 1}, {32, 1, 1}, 0);
    EXPECT_EQ(&sites.at(&k, {1, 1, 1}, {32, 1, 1}, 0), &a);
    EXPECT_NE(&sites.at(&k, {2, 1, 1}, {32, 1, 1}, 0), &a);
    EXPECT_NE(&sites.at(&k, {1, 1, 1}, {32, 1, 1}, 64), &a);
    EXPECT_EQ(sites.find(a.id), &a);
    EXPECT_EQ(sites.find(77), nullptr);
}

TEST(Lease, BusyProgramsKeepTheGpu) {
    auto s = std::make_unique<Shared>();
    s->config.idle_us = 1000;
    s->config.slice_us = 20;
    Lease lease(*s);
    s->lease->busy.store(kLaunched);
    EXPECT_FALSE(lease.granted(1000)) << "just launched";
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    EXPECT_FALSE(lease.granted(1000)) << "quiet, but nothing says that the launch has finished";
    s->lease->busy.store(kSynchronised);
    lease.look();
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    EXPECT_TRUE(lease.granted(1000));
    EXPECT_FALSE(lease.granted(10e6)) << "10 ms of work need a gap of 200";
    s->synchronising.store(1);
    EXPECT_FALSE(lease.granted(1000)) << "the program waits for the GPU";
    lease.hold(true);
    EXPECT_TRUE(lease.granted(10e6)) << "a launch is held for us";
    s->leaving.store(1);
    EXPECT_FALSE(lease.granted(1000));
}

TEST(Lease, AProgramThatNeverSynchronisesIsIdleAfterAWhile) {
    auto s = std::make_unique<Shared>();
    Lease lease(*s);
    s->lease->busy.store(kLaunched);
    lease.look();
    std::this_thread::sleep_for(std::chrono::milliseconds(40));
    EXPECT_TRUE(lease.granted(1000));
}

TEST(Lease, ShortRegularPausesAreLearned) {
    auto s = std::make_unique<Shared>();
    s->config.idle_us = 1000;
    Lease lease(*s);
    constexpr double kSlice = 2e6;  // twenty times as long a pause never comes
    int granted = 0;
    for (int period = 0; period < 40; ++period) {
        s->lease->busy.store(kSynchronised);
        lease.look();
        for (int ms = 0; ms < 10; ++ms) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
            if (ms == 2 && period > 20) granted += lease.granted(kSlice) ? 1 : 0;
            lease.look();
        }
    }
    EXPECT_GT(granted, 10) << "pauses of 10 ms and more have room for 2 ms after the third";
    EXPECT_GT(lease.toll().requests(), 30u);
    EXPECT_EQ(lease.toll().touched(), 0u);
}

TEST(Lease, TouchedRequestsAreChargedAndCapped) {
    auto s = std::make_unique<Shared>();
    s->config.idle_us = 0;
    s->config.toll = 0;
    Lease lease(*s);
    int granted = 0;
    for (int i = 0; i < 1000 && lease.granted(1000); ++i, ++granted) {
        s->lease->busy.store(kSynchronised);  // a launch meets every slice
        lease.look();
    }
    EXPECT_EQ(lease.toll().touched(), static_cast<uint64_t>(granted));
    EXPECT_LT(granted, 100) << "the account closes";
}

TEST(Lease, APauseThatASandboxUsedIsCharged) {
    auto page = ipc::LeasePage::create(3);
    ASSERT_TRUE(page.ok());
    auto s = std::make_unique<Shared>();
    s->lease = &page->words();
    s->config.idle_us = 0;
    Lease lease(*s);
    auto request = [&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        lease.look();
        s->lease->busy.store(kSynchronised);
        lease.look();
    };
    request();
    EXPECT_EQ(lease.toll().touched(), 0u);
    page->begin_proof();
    page->end_proof();
    request();
    EXPECT_EQ(lease.toll().touched(), 1u) << "it had ended, but the context switch is paid";
    request();
    EXPECT_EQ(lease.toll().touched(), 1u);
    page->begin_proof();
    request();
    EXPECT_EQ(lease.toll().touched(), 2u) << "still running";
}

TEST(Lease, TheOtherProcessesSeeOnlyLongPauses) {
    auto page = ipc::LeasePage::create(3);
    ASSERT_TRUE(page.ok());
    auto s = std::make_unique<Shared>();
    s->lease = &page->words();
    Lease lease(*s);
    s->lease->busy.store(kSynchronised);
    EXPECT_FALSE(page->granted(std::chrono::nanoseconds(0)));
    lease.look();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    lease.look();
    EXPECT_FALSE(page->granted(std::chrono::nanoseconds(0))) << "nothing is known of it yet";
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    lease.look();
    EXPECT_TRUE(page->granted(std::chrono::milliseconds(1)));
    EXPECT_FALSE(page->granted(std::chrono::milliseconds(200))) << "a twentieth of the pause";
    s->lease->busy.store(kLaunched);
    EXPECT_FALSE(page->granted(std::chrono::nanoseconds(0))) << "before our thread has looked";
    lease.look();
    EXPECT_FALSE(page->granted(std::chrono::nanoseconds(0)));
}

TEST(Spawn, EnvironmentLosesOnlyWhatWouldPullUsIn) {
    const auto env = child_environment({"PATH=/bin", "LD_PRELOAD=libttt.so", "LD_PRELOAD_NOT=1",
                                        "CUDA_INJECTION64_PATH=x", "LD_LIBRARY_PATH=/emulator",
                                        "NVTX_INJECTION64_PATH=y"});
    EXPECT_EQ(env, (std::vector<std::string>{"PATH=/bin", "LD_PRELOAD_NOT=1",
                                             "LD_LIBRARY_PATH=/emulator"}));
}

TEST(Spawn, AMissingProgramIsAnErrorNotADeadChild) {
    const auto r = spawn_invisible({"/nonexistent/ttt-tuner", {}, {}, 0, 0});
    ASSERT_FALSE(r.ok());
    EXPECT_NE(r.error().message.find("/nonexistent/ttt-tuner"), std::string::npos);
}

}  // namespace
}  // namespace ttt::session
