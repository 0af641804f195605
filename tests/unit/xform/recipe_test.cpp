#include "xform/recipe.h"

#include <gtest/gtest.h>

namespace ttt::xform {
namespace {

TEST(Recipe, ParsesStepsAndKnobs) {
    const auto r =
        Recipe::parse("pin_rounding | specialise(scalars, ntid) | registers(max=48,reqntid)");
    ASSERT_TRUE(r.ok()) << r.error().str();
    ASSERT_EQ(r->steps.size(), 3u);
    EXPECT_EQ(r->steps[0], (Step{"pin_rounding", {}}));
    EXPECT_EQ(r->steps[1], (Step{"specialise", {{"ntid", ""}, {"scalars", ""}}}));
    EXPECT_EQ(r->steps[2], (Step{"registers", {{"max", "48"}, {"reqntid", ""}}}));
}

TEST(Recipe, CanonicalTextRoundTrips) {
    for (const char* text :
         {"", "memory.nc", "  memory.nc ( ) ", "a|b", "registers(reqntid,max=48)",
          "pin_rounding | specialise(scalars,ntid,nctaid) | memory.nc | "
          "registers(max=48,reqntid)"}) {
        const auto once = Recipe::parse(text);
        ASSERT_TRUE(once.ok()) << text;
        const auto twice = Recipe::parse(once->str());
        ASSERT_TRUE(twice.ok()) << once->str();
        EXPECT_EQ(*once, *twice) << text;
        EXPECT_EQ(once->str(), twice->str()) << text;
    }
    EXPECT_EQ(Recipe::parse("registers( reqntid , max = 48 )")->str(), "registers(max=48,reqntid)");
}

TEST(Recipe, HashIgnoresSpellingAndSeesOrder) {
    EXPECT_EQ(Recipe::parse("a(x,y)|b")->hash(), Recipe::parse(" a ( y,x ) | b ")->hash());
    EXPECT_NE(Recipe::parse("a|b")->hash(), Recipe::parse("b|a")->hash());
    EXPECT_NE(Recipe::parse("a(x)")->hash(), Recipe::parse("a(x=1)")->hash());
}

TEST(Recipe, ErrorsNameTheColumn) {
    const std::pair<const char*, uint32_t> cases[] = {
        {"|", 1},      {"a |", 4},      {"a || b", 4}, {"a(", 3},     {"a(x", 4},
        {"a(x,)", 5},  {"a(x=)", 5},    {"a(x,x)", 5}, {"a(x) b", 6}, {"a b", 3},
        {"a(x;y)", 4}, {"a(x=1=2)", 6}, {"\xff", 1},
    };
    for (const auto& [text, column] : cases) {
        const auto r = Recipe::parse(text);
        ASSERT_FALSE(r.ok()) << text;
        EXPECT_EQ(r.error().column, column) << text << ": " << r.error().message;
        EXPECT_EQ(r.error().code, Code::kInvalidArgument);
        EXPECT_NE(r.error().message.find("column"), std::string::npos);
    }
}

}  // namespace
}  // namespace ttt::xform
