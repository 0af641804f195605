#include "measure/snapshot.h"

#include <gtest/gtest.h>

#include <cstring>

namespace ttt::measure {
namespace {

Launch launch_with(const std::vector<uint64_t>& words) {
    Launch launch;
    launch.params.resize(words.size() * 8);
    std::memcpy(launch.params.data(), words.data(), launch.params.size());
    return launch;
}

uint64_t word(const std::vector<std::byte>& params, size_t i) {
    uint64_t v = 0;
    std::memcpy(&v, params.data() + 8 * i, 8);
    return v;
}

TEST(Relocate, MovesInteriorPointersByTheRegionsDistance) {
    const Launch launch = launch_with({0x1010, 42, 0x1000, 0x5000});
    const std::vector<Region> regions = {
        {.address = 0x1000, .bytes = 64, .pointers = {0, 16}},
        {.address = 0x5000, .bytes = 64, .pointers = {24}},
    };
    const auto params = relocate(launch, regions, {0x9000, 0x100});
    EXPECT_EQ(word(params, 0), 0x9010u);
    EXPECT_EQ(word(params, 1), 42u);
    EXPECT_EQ(word(params, 2), 0x9000u);
    EXPECT_EQ(word(params, 3), 0x100u);
}

TEST(Relocate, OffsetsOutsideTheBufferChangeNothing) {
    const Launch launch = launch_with({0x1010});
    const std::vector<Region> regions = {
        {.address = 0x1000, .bytes = 64, .pointers = {1, 8, 0xFFFFFFFC}}};
    EXPECT_EQ(relocate(launch, regions, {0x9000}), launch.params);
}

TEST(Relocate, EmptyBufferStaysEmpty) {
    const std::vector<Region> regions = {{.address = 0x1000, .bytes = 64, .pointers = {0}}};
    EXPECT_TRUE(relocate(Launch{}, regions, {0x9000}).empty());
}

TEST(Relocate, MissingNewBaseLeavesTheRegionWhereItWas) {
    const Launch launch = launch_with({0x1000});
    const std::vector<Region> regions = {{.address = 0x1000, .bytes = 64, .pointers = {0}}};
    EXPECT_EQ(relocate(launch, regions, {}), launch.params);
}

}  // namespace
}  // namespace ttt::measure
