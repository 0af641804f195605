#include <gtest/gtest.h>

#include "ptx/interpreter.h"

namespace ttt::ptx {
namespace {

AddressSpace::Allocation at(uint64_t base, uint64_t size) {
    return {base, size, nullptr, true, true};
}

TEST(AddressSpace, FindsTheAllocationThatHoldsTheWholeRange) {
    AddressSpace space;
    ASSERT_TRUE(space.add(at(0x2000, 0x100)).ok());
    ASSERT_TRUE(space.add(at(0x1000, 0x100)).ok());
    ASSERT_NE(space.find(0x1000), nullptr);
    EXPECT_EQ(space.find(0x10FF)->base, 0x1000u);
    EXPECT_EQ(space.find(0x10FC, 4)->base, 0x1000u);
    EXPECT_EQ(space.find(0x10FD, 4), nullptr);
    EXPECT_EQ(space.find(0x1100), nullptr);
    EXPECT_EQ(space.find(0xFFF), nullptr);
    EXPECT_EQ(space.find(0x20FF)->base, 0x2000u);
    EXPECT_EQ(space.find(0x2000, 0x100)->size, 0x100u);
    EXPECT_EQ(space.find(0x2000, ~uint64_t{0}), nullptr);
    EXPECT_EQ(space.all().size(), 2u);
    EXPECT_EQ(space.all()[0].base, 0x1000u);
}

TEST(AddressSpace, RefusesOverlapsAndWindows) {
    AddressSpace space;
    ASSERT_TRUE(space.add(at(0x1000, 0x100)).ok());
    EXPECT_FALSE(space.add(at(0x10FF, 1)).ok());
    EXPECT_FALSE(space.add(at(0xF01, 0x100)).ok());
    EXPECT_FALSE(space.add(at(0x800, 0x1000)).ok());
    EXPECT_TRUE(space.add(at(0x1100, 1)).ok());
    EXPECT_FALSE(space.add(at(0x5000, 0)).ok());
    EXPECT_FALSE(space.add(at(~uint64_t{0} - 3, 8)).ok());
    EXPECT_FALSE(space.add(at(kSharedWindow + 4096, 16)).ok());
    EXPECT_FALSE(space.add(at(kLocalWindow - 8, 16)).ok());
    EXPECT_FALSE(space.add(at(kParamWindow, 16)).ok());
    EXPECT_EQ(space.all().size(), 2u);
}

TEST(AddressSpace, Removes) {
    AddressSpace space;
    ASSERT_TRUE(space.add(at(0x1000, 0x100)).ok());
    EXPECT_FALSE(space.remove(0x1001));
    EXPECT_TRUE(space.remove(0x1000));
    EXPECT_FALSE(space.remove(0x1000));
    EXPECT_EQ(space.find(0x1000), nullptr);
}

TEST(Footprint, Covers) {
    using R = Footprint::Range;
    const std::vector<R> outer{{0, 10}, {10, 20}, {30, 40}};
    EXPECT_TRUE(Footprint::covers(outer, {}));
    EXPECT_TRUE(Footprint::covers(outer, std::vector<R>{{5, 15}, {30, 40}}));
    EXPECT_FALSE(Footprint::covers(outer, std::vector<R>{{5, 21}}));
    EXPECT_FALSE(Footprint::covers(outer, std::vector<R>{{25, 26}}));
    EXPECT_FALSE(Footprint::covers({}, std::vector<R>{{0, 1}}));
    EXPECT_TRUE(Footprint::covers({}, std::vector<R>{{7, 7}}));
}

}  // namespace
}  // namespace ttt::ptx
