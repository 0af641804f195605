// What the model of pauses says of programs with known habits, and the toll account.
#include "session/gap_model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/hash.h"
#include "session/toll.h"

namespace ttt::session {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using Duration = GapModel::Duration;

double uniform(uint64_t i) { return static_cast<double>(splitmix64(i) >> 11) * 0x1p-53; }

TEST(GapModel, AlwaysIdleSaysNothing) {
    const GapModel m;
    EXPECT_FALSE(m.chance(milliseconds(5), microseconds(20)));
    EXPECT_FALSE(m.room(milliseconds(5), 0.02));
    EXPECT_FALSE(m.long_gap());
}

TEST(GapModel, PeriodicProgramsLeaveTheRestOfTheirPeriod) {
    GapModel m;
    for (int i = 0; i < 200; ++i) m.add(microseconds(4500 + i % 10));
    EXPECT_DOUBLE_EQ(*m.chance(milliseconds(2), milliseconds(1)), 0);
    const Duration room = *m.room(milliseconds(2), 0.02);
    EXPECT_GT(room, milliseconds(1)) << "nothing ever came back that early";
    EXPECT_LT(room, microseconds(2500)) << "it always comes back after 4.5 ms";
    EXPECT_GT(*m.chance(milliseconds(2), milliseconds(4)), 0.99);
    EXPECT_FALSE(m.chance(milliseconds(50), milliseconds(1))) << "never seen so long a pause";
}

TEST(GapModel, PoissonArrivalsAreMemoryless) {
    GapModel m;
    for (uint64_t i = 0; i < 1000; ++i)
        m.add(microseconds(static_cast<int64_t>(-3000 * std::log(1 - uniform(i)))));
    for (int quiet : {1, 2, 4}) {
        const double expected = 1 - std::exp(-0.5 / 3);
        EXPECT_NEAR(*m.chance(milliseconds(quiet), microseconds(500)), expected, 0.06) << quiet;
    }
    EXPECT_LT(*m.room(milliseconds(2), 0.02), microseconds(150)) << "0.02 of 3 ms is 60 us";
    EXPECT_GT(*m.room(milliseconds(2), 0.02), microseconds(20));
}

TEST(GapModel, BurstyProgramsAreSafeOnceAPauseIsLong) {
    GapModel m;
    for (int i = 0; i < 300; ++i) m.add(i % 30 == 29 ? milliseconds(900) : microseconds(1500));
    EXPECT_GT(*m.chance(microseconds(1000), milliseconds(1)), 0.9) << "within a burst";
    EXPECT_DOUBLE_EQ(*m.chance(milliseconds(100), milliseconds(100)), 0) << "between bursts";
    EXPECT_GT(*m.long_gap(), milliseconds(700)) << "that is where the idle time lies";
}

TEST(GapModel, ANeverIdleProgramLeavesNoRoom) {
    GapModel m;
    for (int i = 0; i < 100; ++i) m.add(microseconds(200));
    EXPECT_EQ(m.room(microseconds(190), 0.0)->count(), 0);
    EXPECT_FALSE(m.room(milliseconds(2), 0.02));
    EXPECT_LT(*m.long_gap(), milliseconds(1));
}

TEST(GapModel, OldHabitsFade) {
    GapModel m;
    for (int i = 0; i < 2000; ++i) m.add(milliseconds(1));
    for (int i = 0; i < 4000; ++i) m.add(milliseconds(100));
    EXPECT_LT(*m.chance(Duration{0}, milliseconds(10)), 0.2);
}

TEST(GapModel, RoomIsTheInverseOfChance) {
    GapModel m;
    for (uint64_t i = 0; i < 1000; ++i)
        m.add(microseconds(static_cast<int64_t>(20000 * uniform(i))));
    for (double limit : {0.01, 0.1, 0.5}) {
        const Duration room = *m.room(milliseconds(3), limit);
        EXPECT_NEAR(*m.chance(milliseconds(3), room), limit, 1e-6);
    }
}

TEST(Toll, StopsAtItsShareAfterAFewFreeOnes) {
    Toll t(0.1);
    int granted = 0;
    for (; t.open() && granted < 1000; ++granted) t.request(true);
    EXPECT_GE(granted, 1) << "or nothing would ever start";
    EXPECT_LT(granted, 50);
    for (int i = 0; i < 1000; ++i) t.request(false);
    EXPECT_TRUE(t.open());
    while (t.open()) t.request(true);
    EXPECT_NEAR(static_cast<double>(t.touched()) / static_cast<double>(t.requests()), 0.1, 0.03);
}

}  // namespace
}  // namespace ttt::session
