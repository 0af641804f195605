#include "session/sources.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "image/image.h"

namespace ttt::session {
namespace {

// The smallest thing that counts as machine code: an ELF header for sm_90 with a mark in its
// padding.
std::vector<std::byte> code(uint8_t mark) {
    std::vector<std::byte> elf(64, std::byte{0});
    const std::array<unsigned char, 9> head = {0x7f, 'E', 'L', 'F', 2, 1, 1, 0x41, 8};
    std::memcpy(elf.data(), head.data(), head.size());
    elf[12] = std::byte{mark};
    elf[18] = std::byte{190};
    elf[52] = std::byte{64};
    return elf;
}

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

struct SourcesTest : testing::Test {
    void SetUp() override { take_sources(); }
};

TEST_F(SourcesTest, TellsPtxOptionsAndIdentityInOrder) {
    made_from(code(1), ".version 8.0", "NVRTC", "-arch=sm_90");
    made_from(code(2), std::string_view(".version 9.0\0rest", 17), "NVRTC", "");
    const auto told = take_sources();
    ASSERT_EQ(told.size(), 2u);
    EXPECT_EQ(told[0].ptx, ".version 8.0");
    EXPECT_EQ(told[0].options, "-arch=sm_90");
    EXPECT_EQ(told[0].codes, image::code_identities(code(1)));
    EXPECT_EQ(told[1].ptx, ".version 9.0") << "text ends at its NUL";
    EXPECT_NE(told[0].codes, told[1].codes);
    EXPECT_TRUE(take_sources().empty());
}

TEST_F(SourcesTest, IgnoresWhatIsNoMachineCode) {
    const std::array<std::byte, 64> zeros{};
    made_from(zeros, ".version 8.0", "NVRTC", "");
    made_from({}, ".version 8.0", "NVRTC", "");
    EXPECT_TRUE(take_sources().empty());
    made_from(code(1), std::string_view("\0", 1), "LTO-IR", "");
    const auto told = take_sources();
    ASSERT_EQ(told.size(), 1u) << "machine code without PTX is told with its reason";
    EXPECT_EQ(told[0].ptx, "");
}

TEST_F(SourcesTest, HoldsALimitedAmountUntilItIsTaken) {
    const std::string large(size_t{24} << 20, 'x');
    for (uint8_t i = 0; i < 4; ++i) made_from(code(i), large, "NVRTC", "");
    EXPECT_EQ(take_sources().size(), 2u) << "64 MiB hold two of 24";
    made_from(code(9), large, "NVRTC", "");
    EXPECT_EQ(take_sources().size(), 1u);
}

TEST_F(SourcesTest, OnlyALinkOfOnePtxModuleHasASource) {
    Links links("linker");
    const int a = 0, b = 0, c = 0, unknown = 0;
    links.begin(&a, "-O2");
    links.begin(&b, "");
    links.begin(&c, "");
    links.add_ptx(&a, bytes(".version 8.0"));
    links.add_ptx(&b, bytes(".version 8.0"));
    links.add_ptx(&b, bytes(".version 8.1"));
    links.add_ptx(&c, bytes(".version 8.0"));
    links.add_other(&c);
    links.add_ptx(&unknown, bytes(".version 8.0"));
    for (const int* l : {&a, &b, &c, &unknown}) links.linked(l, code(1));
    const auto told = take_sources();
    ASSERT_EQ(told.size(), 3u);
    EXPECT_EQ(told[0].origin, "linker");
    EXPECT_EQ(told[0].options, "-O2");
    EXPECT_EQ(told[0].ptx, ".version 8.0");
    EXPECT_EQ(told[1].ptx, "");
    EXPECT_EQ(told[1].origin, "linker made it from 2 inputs, 0 of them without PTX");
    EXPECT_EQ(told[2].ptx, "");
    EXPECT_EQ(told[2].origin, "linker made it from 2 inputs, 1 of them without PTX");
    links.end(&a);
    links.linked(&a, code(1));
    EXPECT_TRUE(take_sources().empty()) << "an ended link is forgotten";
}

}  // namespace
}  // namespace ttt::session
