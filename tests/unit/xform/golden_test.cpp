// tests/golden/xform/NAME.ptx holds a kernel and, in comments, the recipe and the launch's parameter bytes;
// NAME.expected holds the variant's text and guard. TTT_UPDATE_GOLDENS=1 rewrites the expected files.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "kernel_case.h"

namespace ttt::xform {
namespace {

namespace fs = std::filesystem;

std::string comment(const std::string& text, const std::string& key) {
    const std::string mark = "// " + key + ": ";
    const size_t at = text.find(mark);
    if (at == std::string::npos) return {};
    return text.substr(at + mark.size(), text.find('\n', at) - at - mark.size());
}

void fill_params(test::KernelCase& kernel, const std::string& hex) {
    std::string digits;
    for (char c : hex) {
        if (c != ' ') digits += c;
    }
    ASSERT_LE(digits.size() / 2, kernel.facts.params.size() + 1);
    for (size_t i = 0; i + 1 < digits.size() && i / 2 < kernel.facts.params.size(); i += 2) {
        kernel.facts.params[i / 2] = static_cast<std::byte>(std::stoi(digits.substr(i, 2), nullptr, 16));
    }
}

class Golden : public testing::TestWithParam<std::string> {};

TEST_P(Golden, GivesTheExpectedText) {
    const std::string base = std::string(TTT_SOURCE_DIR) + "/tests/golden/xform/" + GetParam();
    const std::string source = test::read_file(base + ".ptx");
    test::KernelCase kernel(source);
    fill_params(kernel, comment(source, "params"));
    const std::string recipe = comment(source, "recipe");
    const auto applied = kernel.apply(recipe);
    ASSERT_TRUE(applied.ok()) << applied.error().str();
    const std::string got = "// recipe: " + recipe + "\n// guard: " + applied->guard.str() + "\n" + ptx::print(applied->module);
    if (std::getenv("TTT_UPDATE_GOLDENS") != nullptr) {
        std::ofstream(base + ".expected") << got;
        return;
    }
    EXPECT_EQ(got, test::read_file(base + ".expected"));
    // Pure: the same recipe on the same module gives the same text.
    EXPECT_EQ(kernel.text(recipe), ptx::print(applied->module));
}

std::vector<std::string> names() {
    std::vector<std::string> out;
    for (const auto& entry : fs::directory_iterator(std::string(TTT_SOURCE_DIR) + "/tests/golden/xform")) {
        if (entry.path().extension() == ".ptx") out.push_back(entry.path().stem().string());
    }
    std::sort(out.begin(), out.end());
    return out;
}

INSTANTIATE_TEST_SUITE_P(Xform, Golden, testing::ValuesIn(names()), [](const auto& p) { return p.param; });

}  // namespace
}  // namespace ttt::xform
