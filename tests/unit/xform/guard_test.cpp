#include "xform/guard.h"

#include <gtest/gtest.h>

#include <cstring>

namespace ttt::xform {
namespace {

std::vector<std::byte> bytes(std::initializer_list<unsigned> values) {
    std::vector<std::byte> out;
    for (unsigned v : values) out.push_back(static_cast<std::byte>(v));
    return out;
}

std::vector<std::byte> pointer(uint64_t value) {
    std::vector<std::byte> out(8);
    std::memcpy(out.data(), &value, 8);
    return out;
}

constexpr Dim3 kGrid{4, 1, 1}, kBlock{256, 1, 1};

TEST(Guard, EmptyAlwaysHolds) { EXPECT_TRUE(Guard{}.holds(kGrid, kBlock, 7, {})); }

TEST(Guard, EachConditionIsChecked) {
    Guard g;
    g.grid = kGrid;
    EXPECT_TRUE(g.holds(kGrid, kBlock, 0, {}));
    EXPECT_FALSE(g.holds({4, 2, 1}, kBlock, 0, {}));
    g = {};
    g.block = kBlock;
    EXPECT_FALSE(g.holds(kGrid, {256, 1, 2}, 0, {}));
    g = {};
    g.dynamic_shared = 16;
    EXPECT_TRUE(g.holds(kGrid, kBlock, 16, {}));
    EXPECT_FALSE(g.holds(kGrid, kBlock, 0, {}));
    g = {};
    g.scalars.push_back({1, bytes({2, 3})});
    EXPECT_TRUE(g.holds(kGrid, kBlock, 0, bytes({9, 2, 3})));
    EXPECT_FALSE(g.holds(kGrid, kBlock, 0, bytes({9, 2, 4})));
    g = {};
    g.aligned.push_back({0, 16});
    EXPECT_TRUE(g.holds(kGrid, kBlock, 0, pointer(0x1010)));
    EXPECT_FALSE(g.holds(kGrid, kBlock, 0, pointer(0x1008)));
}

TEST(Guard, ShortParameterBufferNeverHolds) {
    Guard g;
    g.scalars.push_back({4, bytes({0, 0, 0, 0})});
    EXPECT_FALSE(g.holds(kGrid, kBlock, 0, bytes({0, 0, 0, 0})));
    EXPECT_FALSE(g.holds(kGrid, kBlock, 0, {}));
    g = {};
    g.aligned.push_back({0xFFFFFFFF, 4});
    EXPECT_FALSE(g.holds(kGrid, kBlock, 0, pointer(0)));
}

TEST(Guard, TextNamesEveryCondition) {
    Guard g;
    g.block = kBlock;
    g.scalars.push_back({16, bytes({0, 4, 0, 0})});
    g.aligned.push_back({0, 16});
    g.no_overlap.push_back({0, 8});
    EXPECT_EQ(g.str(),
              "block=(256,1,1), param+16=1024, param+0 % 16 == 0, param+0 apart from param+8");
    EXPECT_EQ(Guard{}.str(), "");
}

TEST(Guard, MergeKeepsBothSidesOnce) {
    Guard a, b;
    a.scalars.push_back({0, bytes({1})});
    b.scalars.push_back({0, bytes({1})});
    b.scalars.push_back({1, bytes({2})});
    b.block = kBlock;
    b.no_overlap.push_back({0, 8});
    a.merge(b);
    a.merge(b);
    EXPECT_EQ(a.scalars.size(), 2u);
    EXPECT_EQ(a.no_overlap.size(), 1u);
    EXPECT_EQ(a.block, kBlock);
}

TEST(Guard, ContradictionNeverHolds) {
    Guard a, b;
    a.grid = kGrid;
    b.grid = Dim3{8, 1, 1};
    a.merge(b);
    EXPECT_FALSE(a.holds(kGrid, kBlock, 0, {}));
    EXPECT_FALSE(a.holds({8, 1, 1}, kBlock, 0, {}));
    Guard c, d;
    c.dynamic_shared = 1;
    d.dynamic_shared = 2;
    c.merge(d);
    EXPECT_FALSE(c.holds(kGrid, kBlock, 1, {}));
    EXPECT_FALSE(c.holds(kGrid, kBlock, 2, {}));
    Guard e, f;
    e.scalars.push_back({0, bytes({1})});
    f.scalars.push_back({0, bytes({2})});
    e.merge(f);
    EXPECT_FALSE(e.holds(kGrid, kBlock, 0, bytes({1})));
    EXPECT_FALSE(e.holds(kGrid, kBlock, 0, bytes({2})));
}

}  // namespace
}  // namespace ttt::xform
