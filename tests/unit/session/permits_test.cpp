// Who gets to be timed: one launch a millisecond overall, canaries first, nobody for ever.
#include "session/permits.h"

#include <gtest/gtest.h>

#include <memory>

namespace ttt::session {
namespace {

using std::chrono::milliseconds;

struct PermitsTest : testing::Test {
    Shared s;
    Permits permits{s};
    Permits::Clock::time_point now{std::chrono::hours(1)};

    // A millisecond passes; one of `launched` launches in order and takes what it may.
    struct Taken {
        int general = 0;
        std::vector<int> by;
    };
    void launch(std::span<const Dispatch* const> order, Taken* t) {
        for (size_t i = 0; i < order.size(); ++i) {
            if (order[i] != nullptr && order[i]->permit.exchange(0) != 0) ++t->by[i];
            if (s.sample_armed.exchange(0) != 0) ++t->general;
        }
    }
};

TEST_F(PermitsTest, AtMostOneEachMillisecond) {
    for (int us = 0; us < 10000; us += 100, now += std::chrono::microseconds(100)) {
        permits.step(now, true, {});
        if (us % 1000 != 0) {
            EXPECT_EQ(s.sample_armed.load(), 0u) << us;
        }
        s.sample_armed.store(0);
    }
}

TEST_F(PermitsTest, OneIsOutAtATime) {
    Dispatch d;
    d.mode.store(DispatchMode::kCanary);
    const Dispatch* canaries[] = {&d};
    for (int i = 0; i < 100; ++i, now += milliseconds(1)) {
        permits.step(now, false, canaries);
        EXPECT_LE((d.permit.load() != 0) + (s.sample_armed.load() != 0), 1);
    }
}

TEST_F(PermitsTest, AKernelLateInTheBurstIsTimedInMostBursts) {
    Dispatch d;
    d.mode.store(DispatchMode::kCanary);
    const Dispatch* canaries[] = {&d};
    const Dispatch* burst[] = {nullptr, nullptr, &d};  // two other kernels come first
    Taken taken;
    taken.by.resize(3);
    for (int ms = 0; ms < 5000; ++ms, now += milliseconds(1)) {
        const bool arrives = ms % 20 == 0;  // 50 bursts a second
        if (arrives) launch(burst, &taken);
        permits.step(now, arrives, canaries);
    }
    EXPECT_GT(taken.by[2], 200) << "of 250 bursts";
    EXPECT_GT(taken.general, 20) << "ordinary sampling goes on";
    EXPECT_LE(taken.by[2] + taken.general, 250);
}

TEST_F(PermitsTest, EveryPlaceInABurstIsSampled) {
    std::vector<int> taken(6);
    for (int ms = 0; ms < 5000; ++ms, now += milliseconds(1)) {
        if (ms % 20 == 0)
            for (int& place : taken) {  // as the launch path does
                const uint32_t n = s.sample_armed.load();
                if (n != 0) s.sample_armed.store(n - 1);
                place += n == 1;
            }
        permits.step(now, ms % 20 == 0, {});
    }
    for (int place : taken) EXPECT_GT(place, 8) << "of about 200 samples";
}

TEST_F(PermitsTest, ACanaryThatDoesNotLaunchHoldsNobodyUp) {
    Dispatch rare, frequent;
    rare.mode.store(DispatchMode::kCanary);
    frequent.mode.store(DispatchMode::kCanary);
    const Dispatch* canaries[] = {&rare, &frequent};
    const Dispatch* burst[] = {&frequent};
    Taken taken;
    taken.by.resize(1);
    for (int ms = 0; ms < 5000; ++ms, now += milliseconds(1)) {
        launch(burst, &taken);
        permits.step(now, true, canaries);
    }
    EXPECT_GT(taken.by[0], 100);
    EXPECT_GT(taken.general, 20);
}

TEST_F(PermitsTest, DecidedCanariesGetNone) {
    Dispatch d;
    d.mode.store(DispatchMode::kCanary);
    const Dispatch* canaries[] = {&d};
    permits.step(now, true, canaries);
    ASSERT_EQ(d.permit.load(), 1u);
    d.mode.store(DispatchMode::kLive);
    permits.step(now += milliseconds(1), true, {});
    EXPECT_EQ(d.permit.load(), 0u);
    EXPECT_NE(s.sample_armed.load(), 0u);
    permits.withdraw();
    EXPECT_EQ(s.sample_armed.load(), 0u);
}

}  // namespace
}  // namespace ttt::session
