// Every recipe the search would try on the suite, against the pinned original in the interpreter:
// bit for bit.
#include <gtest/gtest.h>

#include <set>

#include "suite_case.h"
#include "xform/pinning.h"

namespace ttt::xform {
namespace {

using test::SuiteCase;

class Suite : public testing::TestWithParam<const char*> {};

TEST_P(Suite, EveryCandidateHasTheBitsOfThePinnedOriginal) {
    const SuiteCase c(GetParam(), ".small");
    const auto pinned = pin(c.kernel.module(), GetParam());
    ASSERT_TRUE(pinned.ok()) << pinned.error().str();
    const test::Executed want = test::execute(*pinned, c);
    ASSERT_EQ(want.error, "");
    ASSERT_FALSE(want.written.empty());
    std::vector<Skipped> skipped;
    for (const Recipe& recipe : candidates(c.kernel.module(), c.kernel.context(), &skipped)) {
        const auto applied = apply(recipe, c.kernel.module(), c.kernel.context());
        ASSERT_TRUE(applied.ok()) << recipe.str() << ": " << applied.error().str();
        EXPECT_TRUE(
            applied->guard.holds(c.spec.grid, c.spec.block, c.spec.shared, c.kernel.facts.params))
            << recipe.str();
        if (!applied->pinned) continue;  // registers alone: the assembler decides what fuses
        const test::Executed got = test::execute(applied->module, c);
        ASSERT_EQ(got.error, "") << recipe.str();
        EXPECT_EQ(got.buffers, want.buffers) << recipe.str();
        EXPECT_TRUE(ptx::Footprint::covers(want.written, got.written)) << recipe.str();
        EXPECT_TRUE(ptx::Footprint::covers(want.read, got.read)) << recipe.str();
    }
}

TEST_P(Suite, CandidatesAreDistinctParsableAndFew) {
    const SuiteCase c(GetParam(), "");
    std::set<std::string> texts;
    const auto recipes = candidates(c.kernel.module(), c.kernel.context(), nullptr);
    EXPECT_GE(recipes.size(), 10u);
    EXPECT_LE(recipes.size(), 40u);
    for (const Recipe& recipe : recipes) {
        EXPECT_TRUE(texts.insert(recipe.str()).second) << recipe.str();
        EXPECT_EQ(*Recipe::parse(recipe.str()), recipe);
        const auto applied = apply(recipe, c.kernel.module(), c.kernel.context());
        ASSERT_TRUE(applied.ok()) << recipe.str() << ": " << applied.error().str();
        auto again = ptx::parse(ptx::print(applied->module));
        ASSERT_TRUE(again.ok()) << recipe.str() << ": " << again.error().str();
        EXPECT_EQ(ptx::print(*again), ptx::print(applied->module)) << recipe.str();
        // One entry, and only it.
        size_t entries = 0;
        for (const ptx::Function& f : again->functions) entries += f.is_entry;
        EXPECT_EQ(entries, 1u);
    }
}

INSTANTIATE_TEST_SUITE_P(Kernels, Suite, testing::ValuesIn(test::kSuite),
                         [](const auto& p) { return std::string(p.param); });

TEST(SuiteScalars, AreConstantsExceptWhereTheRulesForbid) {
    for (const char* entry : test::kSuite) {
        const SuiteCase c(entry, "");
        const auto applied = c.kernel.apply("pin_rounding | specialise(scalars)");
        ASSERT_TRUE(applied.ok()) << entry << ": " << applied.error().str();
        const std::string text = ptx::print(applied->module);
        for (const ptx::ParamUse& p : c.kernel.summary.params) {
            if (p.pointer) continue;
            EXPECT_FALSE(p.reaches_approx) << entry;
        }
        EXPECT_EQ(text.find("ld.param.u32"), std::string::npos) << entry;
        EXPECT_EQ(text.find("ld.param.f32"), std::string::npos) << entry;
    }
}

}  // namespace
}  // namespace ttt::xform
