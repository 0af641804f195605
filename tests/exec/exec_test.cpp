// Runs every tests/exec/*.ptx: `// launch: {spec}` says how, `// expect: […]` what must come out,
// `// approx: arg type ulp` where the ISA allows an error. The same files run on a real driver.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "spec_run.h"

namespace ttt::test {
namespace {

std::vector<std::string> lines_after(const std::string& text, const std::string& prefix) {
    std::vector<std::string> out;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);)
        if (line.starts_with(prefix)) out.push_back(line.substr(prefix.size()));
    return out;
}

std::vector<std::string> files() {
    std::vector<std::string> out;
    for (const auto& e :
         std::filesystem::directory_iterator(std::string(TTT_SOURCE_DIR) + "/tests/exec"))
        if (e.path().extension() == ".ptx") out.push_back(e.path().stem().string());
    std::sort(out.begin(), out.end());
    return out;
}

class Instruction : public testing::TestWithParam<std::string> {};

TEST_P(Instruction, GivesTheIsasResult) {
    const std::string text =
        read_text(std::string(TTT_SOURCE_DIR) + "/tests/exec/" + GetParam() + ".ptx");
    const auto launches = lines_after(text, "// launch: ");
    const auto expects = lines_after(text, "// expect: ");
    ASSERT_EQ(launches.size(), 1u);
    ASSERT_EQ(expects.size(), 1u);
    auto launch = spec::parse(launches[0]);
    ASSERT_TRUE(launch.ok()) << launch.error().str();
    for (unsigned threads : {1u, 2u}) {
        auto run = SpecRun::make(text, *launch);
        ASSERT_TRUE(run.ok()) << run.error().str();
        auto result = (*run)->launch(threads);
        ASSERT_TRUE(result.ok());
        ASSERT_FALSE(result->fault) << result->fault->message;
        EXPECT_EQ(check_expectations(**run, expects[0], lines_after(text, "// approx: ")), "");
    }
}

INSTANTIATE_TEST_SUITE_P(Exec, Instruction, testing::ValuesIn(files()),
                         [](const auto& instance) { return instance.param; });

}  // namespace
}  // namespace ttt::test
