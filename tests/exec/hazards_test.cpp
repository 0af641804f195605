// Inputs from public fault reports about PTX tools, with the answers of
// tests/data/hazards/answers.json.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "instruction_test.h"
#include "spec_run.h"

namespace ttt::test {
namespace {

const std::string kFolder = std::string(TTT_SOURCE_DIR) + "/tests/data/hazards/";

nlohmann::json answers() {
    const auto list = nlohmann::json::parse(read_text(kFolder + "answers.json"), nullptr, false);
    return list.is_array() ? list : nlohmann::json::array();
}

std::vector<std::string> cases() {
    std::vector<std::string> out;
    for (const auto& item : answers()) out.push_back(item.at("launch").get<std::string>());
    return out;
}

std::unique_ptr<SpecRun> prepare(const std::string& launch_file) {
    auto launch = spec::read_file(kFolder + launch_file);
    EXPECT_TRUE(launch.ok()) << (launch.ok() ? "" : launch.error().str());
    if (!launch.ok()) return nullptr;
    const std::string ptx =
        read_text(kFolder + launch_file.substr(0, launch_file.find('.')) + ".ptx");
    auto run = SpecRun::make(ptx, *launch);
    EXPECT_TRUE(run.ok()) << (run.ok() ? "" : run.error().str());
    return run.ok() ? std::move(*run) : nullptr;
}

uint32_t word(SpecRun& run, size_t arg, size_t index) {
    uint32_t value = 0;
    std::memcpy(&value, run.buffer(arg).data() + 4 * index, 4);
    return value;
}

class Hazard : public testing::TestWithParam<std::string> {};

TEST_P(Hazard, GivesTheRightAnswer) {
    auto run = prepare(GetParam());
    ASSERT_NE(run, nullptr);
    auto result = run->launch();
    ASSERT_TRUE(result.ok());
    ASSERT_FALSE(result->fault) << result->fault->message;
    EXPECT_GT(result->counters.thread_instructions, 0u);
    for (const auto& item : answers()) {
        if (item.at("launch") != GetParam() || item.at("answers").empty()) continue;
        InstructionTest expected;
        auto list = parse_expectations(item.at("answers").dump());
        ASSERT_TRUE(list.ok()) << list.error().str();
        expected.expectations = *list;
        const auto wrong = differences(expected, run->buffers());
        ASSERT_TRUE(wrong.ok()) << wrong.error().str();
        for (const Difference& d : *wrong) ADD_FAILURE() << describe(d);
    }
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
    std::string name = info.param;
    std::replace(name.begin(), name.end(), '.', '_');
    return name;
}

INSTANTIATE_TEST_SUITE_P(Interpreter, Hazard, testing::ValuesIn(cases()), test_name);

TEST(Hazards, EveryFileHasAnAnswer) {
    const auto list = answers();
    size_t files = 0;
    for (const auto& e : std::filesystem::directory_iterator(kFolder)) {
        if (e.path().extension() != ".ptx") continue;
        ++files;
        const auto names_it = [&](const auto& item) {
            return item.at("ptx") == e.path().filename().string();
        };
        EXPECT_TRUE(std::any_of(list.begin(), list.end(), names_it)) << e.path();
    }
    EXPECT_EQ(files, 12u);
}

TEST(Hazards, ModuleCounterSurvivesTheFirstLaunch) {
    auto run = prepare("r19_counter_not_reset.json");
    ASSERT_NE(run, nullptr);
    ASSERT_FALSE(run->launch()->fault);
    EXPECT_EQ(word(*run, 0, 0), 4u);
    std::memset(run->buffer(0).data(), 0, 64);
    ASSERT_FALSE(run->launch()->fault);
    EXPECT_EQ(word(*run, 0, 0), 0u);
}

TEST(Hazards, PointerValueIsTheProgramsOwn) {
    auto run = prepare("r20_setp_ptr_dependent.json");
    ASSERT_NE(run, nullptr);
    ASSERT_FALSE(run->launch()->fault);
    EXPECT_EQ(word(*run, 0, 0), static_cast<uint32_t>(run->address(0) >> 8));
}

}  // namespace
}  // namespace ttt::test
