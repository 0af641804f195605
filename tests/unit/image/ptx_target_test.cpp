#include "image/ptx_target.h"

#include <gtest/gtest.h>

#include <string>

namespace ttt::image {
namespace {

TEST(PtxTarget, ReadsTheLeadingDirectives) {
    const PtxTarget t = ptx_target(
        "/* a\n .version 1.0 */ // b\n.version 8.5\n\n.target sm_100f, debug\n.address_size 64\n");
    EXPECT_EQ(t.version, 85u);
    EXPECT_EQ(t.arch, 100u);
    EXPECT_EQ(t.suffix, 'f');
}

TEST(PtxTarget, MissingOrStrangePartsAreZero) {
    for (const char* text : {"", ".version", ".version x.y", "nonsense", "/* open", "// only",
                             ".target 90", ".version 99999999999999.1"}) {
        const PtxTarget t = ptx_target(text);
        EXPECT_EQ(t.arch, 0u) << text;
        EXPECT_LE(t.version, 100'000u) << text;
    }
    EXPECT_EQ(ptx_target(".version 8.5\n.visible .entry k(){}\n.target sm_90\n").arch, 0u);
}

TEST(PtxTarget, LongCommentsTakeLinearTime) {
    std::string text(4 << 20, '/');
    text += "\n.version 8.0\n.target sm_75";
    EXPECT_EQ(ptx_target(text).arch, 75u);
}

}  // namespace
}  // namespace ttt::image
