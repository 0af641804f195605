// Runs every instruction test (see instruction_test.h) in the interpreter.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "instruction_test.h"
#include "spec_run.h"

namespace ttt::test {
namespace {

const std::string kFolder = std::string(TTT_SOURCE_DIR) + "/tests/exec/";

std::vector<std::string> files() {
    std::vector<std::string> out;
    for (const auto& e : std::filesystem::directory_iterator(kFolder))
        if (e.path().extension() == ".ptx") out.push_back(e.path().stem().string());
    std::sort(out.begin(), out.end());
    return out;
}

class Instruction : public testing::TestWithParam<std::string> {};

TEST_P(Instruction, GivesTheIsasResult) {
    const auto test = read_instruction_test(kFolder + GetParam() + ".ptx");
    ASSERT_TRUE(test.ok()) << test.error().str();
    for (unsigned threads : {1u, 2u}) {
        auto run = SpecRun::make(test->ptx, test->launch);
        ASSERT_TRUE(run.ok()) << run.error().str();
        auto result = (*run)->launch(threads);
        ASSERT_TRUE(result.ok());
        ASSERT_FALSE(result->fault) << result->fault->message;
        const auto wrong = differences(*test, (*run)->buffers());
        ASSERT_TRUE(wrong.ok()) << wrong.error().str();
        for (const Difference& d : *wrong) ADD_FAILURE() << describe(d);
    }
}

INSTANTIATE_TEST_SUITE_P(Exec, Instruction, testing::ValuesIn(files()),
                         [](const auto& instance) { return instance.param; });

InstructionTest one_result(const std::string& expect_hex, ErrorBound bound) {
    InstructionTest test;
    test.expectations = *parse_expectations(R"([{"arg":0,"hex":")" + expect_hex + "\"}]");
    test.approximations.push_back({0, ptx::soft::kF32, 4, {bound}});
    return test;
}

size_t wrong_results(const InstructionTest& test, const std::string& got_hex) {
    const std::vector<std::vector<std::byte>> buffers{*spec::from_hex(got_hex)};
    return differences(test, buffers)->size();
}

TEST(ErrorBounds, AllowWhatTheyStateAndNoMore) {
    using Kind = ErrorBound::Kind;
    // 1.0f = 3f800000, little endian; its neighbours are 2^-23 above and 2^-24 below.
    const InstructionTest one_ulp = one_result("0000803f", {Kind::kUlp, 1});
    EXPECT_EQ(wrong_results(one_ulp, "0100803f"), 0u);
    EXPECT_EQ(wrong_results(one_ulp, "0200803f"), 1u);
    EXPECT_EQ(wrong_results(one_ulp, "ffff7f3f"), 0u);
    // 2^-20 is eight units above 1; rounding of both sides adds one.
    for (Kind kind : {Kind::kRelative, Kind::kAbsolute}) {
        const InstructionTest bounded = one_result("0000803f", {kind, 0x1p-20});
        EXPECT_EQ(wrong_results(bounded, "0900803f"), 0u);
        EXPECT_EQ(wrong_results(bounded, "0a00803f"), 1u);
    }
    // Relative and absolute differ away from 1: at 1024 the same bound is 2^-10 or 2^-20.
    EXPECT_EQ(wrong_results(one_result("00008044", {Kind::kRelative, 0x1p-20}), "08008044"), 0u);
    EXPECT_EQ(wrong_results(one_result("00008044", {Kind::kAbsolute, 0x1p-20}), "08008044"), 1u);
    // Any NaN for a NaN, nothing else.
    const InstructionTest nan = one_result("ffffff7f", {Kind::kUlp, 4});
    EXPECT_EQ(wrong_results(nan, "0000c0ff"), 0u);
    EXPECT_EQ(wrong_results(nan, "0000807f"), 1u);
}

}  // namespace
}  // namespace ttt::test
