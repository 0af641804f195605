// tests/golden/xform/NAME.ptx holds a kernel and, in comments, the recipe and the launch's
// parameter bytes; NAME.expected holds the variant's text and guard. TTT_UPDATE_GOLDENS=1 rewrites
// the expected files.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/hash.h"
#include "kernel_case.h"
#include "ptx/interpreter.h"
#include "xform/pinning.h"

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
        kernel.facts.params[i / 2] =
            static_cast<std::byte>(std::stoi(digits.substr(i, 2), nullptr, 16));
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
    const std::string got = "// recipe: " + recipe + "\n// guard: " + applied->guard.str() + "\n" +
                            ptx::print(applied->module);
    if (std::getenv("TTT_UPDATE_GOLDENS") != nullptr) {
        std::ofstream(base + ".expected") << got;
        return;
    }
    EXPECT_EQ(got, test::read_file(base + ".expected"));
    // Pure: the same recipe on the same module gives the same text.
    EXPECT_EQ(kernel.text(recipe), ptx::print(applied->module));
}

// What the kernel leaves in its buffers, which start with seeded bytes; every pointer parameter has
// one of its own. Cells lead to the variables of the original, which is loaded beside it.
std::vector<std::byte> run(const ptx::Module& module, const test::KernelCase& kernel,
                           const std::vector<VariableCell>& cells = {}) {
    constexpr size_t kBytes = 1 << 16;
    std::vector<std::byte> memory(kBytes * kernel.summary.pointers.size());
    for (size_t i = 0; i < memory.size(); ++i)
        memory[i] = static_cast<std::byte>(splitmix64(i / 4) >> (i % 4 * 8));
    // Small magnitudes in every fourth byte keep floats finite.
    for (size_t i = 3; i < memory.size(); i += 4) memory[i] = static_cast<std::byte>(0x3F);
    std::vector<std::byte> params = kernel.facts.params;
    ptx::AddressSpace space;
    for (size_t k = 0; k < kernel.summary.pointers.size(); ++k) {
        const uint64_t address = 0x10000000 * (k + 1);
        EXPECT_TRUE(space.add({address, kBytes, memory.data() + k * kBytes, true, true}).ok());
        std::memcpy(params.data() + kernel.summary.pointers[k].offset, &address, sizeof address);
    }
    auto loaded = ptx::LoadedModule::load(module, space, 0x700000000);
    if (!loaded.ok()) return ADD_FAILURE() << loaded.error().str(), memory;
    auto original = ptx::LoadedModule::load(kernel.module(), space, 0x600000000);
    if (!original.ok()) return ADD_FAILURE() << original.error().str(), memory;
    for (const VariableCell& cell : cells)
        for (const auto& g : (*original)->globals()) {
            if (g.name != cell.variable) continue;
            std::vector<std::byte> value(sizeof g.address);
            std::memcpy(value.data(), &g.address, sizeof g.address);
            EXPECT_TRUE(ptx::set_variable(**loaded, space, cell.cell, value).ok());
        }
    auto program = ptx::Program::decode(**loaded, kernel.facts.entry);
    if (!program.ok()) return ADD_FAILURE() << program.error().str(), memory;
    ptx::LaunchRequest request;
    request.grid = kernel.facts.grid;
    request.block = kernel.facts.block;
    request.params = params;
    const ptx::LaunchResult result = (*program)->run(space, request);
    if (result.fault) ADD_FAILURE() << result.fault->message;
    return memory;
}

TEST_P(Golden, LeavesTheBitsOfThePinnedOriginal) {
    const std::string source =
        test::read_file(std::string(TTT_SOURCE_DIR) + "/tests/golden/xform/" + GetParam() + ".ptx");
    test::KernelCase kernel(source);
    fill_params(kernel, comment(source, "params"));
    const auto applied = kernel.apply(comment(source, "recipe"));
    ASSERT_TRUE(applied.ok()) << applied.error().str();
    const auto original = pin(kernel.module(), "k");
    ASSERT_TRUE(original.ok()) << original.error().str();
    EXPECT_TRUE(run(*original, kernel) == run(applied->module, kernel, applied->cells));
}

std::vector<std::string> names() {
    std::vector<std::string> out;
    for (const auto& entry :
         fs::directory_iterator(std::string(TTT_SOURCE_DIR) + "/tests/golden/xform")) {
        if (entry.path().extension() == ".ptx") out.push_back(entry.path().stem().string());
    }
    std::sort(out.begin(), out.end());
    return out;
}

INSTANTIATE_TEST_SUITE_P(Xform, Golden, testing::ValuesIn(names()),
                         [](const auto& p) { return p.param; });

}  // namespace
}  // namespace ttt::xform
