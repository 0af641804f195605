#include "driver_table/fault_plan.h"

#include <gtest/gtest.h>

namespace ttt::driver_table {
namespace {

TEST(FaultPlan, CountsCallsPerRule) {
    FaultPlan plan("cuMemAlloc:3=2;launch:5=fault;copy:slow=10");
    EXPECT_TRUE(plan.problems().empty()) << plan.problems();
    EXPECT_EQ(plan.on_call("cuMemAlloc", "cuMemAlloc_v2"), 0);
    EXPECT_EQ(plan.on_call("cuMemAlloc", "cuMemAlloc_v2"), 0);
    EXPECT_EQ(plan.on_call("cuMemFree", "cuMemFree_v2"), 0);
    EXPECT_EQ(plan.on_call("cuMemAlloc", "cuMemAlloc_v2"), 2);
    EXPECT_EQ(plan.on_call("cuMemAlloc", "cuMemAlloc_v2"), 0);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(plan.on_launch(), 0);
    EXPECT_EQ(plan.on_launch(), FaultPlan::kFault);
    EXPECT_EQ(plan.on_launch(), 0);
    EXPECT_EQ(plan.copy_slowdown(), 10);
    EXPECT_EQ(plan.launch_slowdown(), 1);
}

TEST(FaultPlan, OpenRangesAndSymbols) {
    FaultPlan plan("cuMemAlloc_v2:2+=2;cuInit:*=100");
    EXPECT_EQ(plan.on_call("cuMemAlloc", "cuMemAlloc"), 0);  // another symbol of that base
    EXPECT_EQ(plan.on_call("cuMemAlloc", "cuMemAlloc_v2"), 0);
    EXPECT_EQ(plan.on_call("cuMemAlloc", "cuMemAlloc_v2"), 2);
    EXPECT_EQ(plan.on_call("cuMemAlloc", "cuMemAlloc_v2"), 2);
    EXPECT_EQ(plan.on_call("cuInit", "cuInit"), 100);
}

TEST(FaultPlan, BadRulesAreNamedAndIgnored) {
    for (const char* text : {"cuInit", "cuInit:1", "cuInit=1", "cuInit:0=1", "cuInit:x=1",
                             "cuInit:1=", "cuInit:1=0", ":1=1", "cuInit:1=fault", "copy:slow=0",
                             "copy:slow=-1", "copy:slow=nan", "disk:slow=2", "cuInit:1=-5"}) {
        const FaultPlan plan(text);
        EXPECT_TRUE(plan.empty()) << text;
        EXPECT_NE(plan.problems().find(text), std::string::npos) << text;
    }
    EXPECT_TRUE(FaultPlan("").problems().empty());
    EXPECT_FALSE(FaultPlan("nonsense;cuInit:1=3").empty());
}

}  // namespace
}  // namespace ttt::driver_table
