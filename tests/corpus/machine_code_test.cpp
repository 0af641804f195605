// parse → print must assemble to the same machine code, byte for byte: on the drawn list of toolkit
// modules, and on the committed PTX of CUB, CuPy, Warp and Triton.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <thread>

#include "assemble.h"
#include "corpus/draw.h"
#include "ptx/ir.h"

namespace ttt::corpus {
namespace {

constexpr unsigned kWorkers = 2;

struct Tally {
    std::atomic<size_t> entries{0}, modules{0};
    std::mutex mutex;
    std::vector<std::string> differences, refused;
};

void compare(const std::string& ptxas, const Sample& sample, Tally& tally) {
    const auto note = [&](std::vector<std::string>& list, const std::string& what) {
        const std::lock_guard lock(tally.mutex);
        list.push_back(sample.name + ": " + what);
    };
    const auto module = ptx::parse(sample.text);
    if (!module.ok()) return note(tally.differences, module.error().str());
    if (const auto sound = ptx::verify(*module); !sound.ok())
        return note(tally.differences, sound.error().str());
    const auto original = machine_code(ptxas, sample.text);
    if (!original.ok()) return note(tally.refused, original.error().str());
    const auto printed = machine_code(ptxas, ptx::print(*module));
    if (!printed.ok()) return note(tally.differences, printed.error().str());
    if (original->empty()) return note(tally.differences, "no machine code to compare");
    if (*original != *printed) return note(tally.differences, "machine code differs");
    tally.entries += sample.entries;
    ++tally.modules;
}

void compare_all(const std::string& ptxas, const std::vector<Sample>& samples, Tally& tally) {
    std::atomic<size_t> next{0};
    std::vector<std::thread> workers;
    for (unsigned i = 0; i < kWorkers; ++i)
        workers.emplace_back([&] {
            for (size_t k = next++; k < samples.size(); k = next++)
                compare(ptxas, samples[k], tally);
        });
    for (std::thread& worker : workers) worker.join();
}

void report(const char* what, const Tally& tally, double seconds) {
    std::printf(
        "%s: %zu entries of %zu modules assemble to the same bytes; %zu differ; the assembler "
        "refuses the "
        "original of %zu (%.0f s)\n",
        what, tally.entries.load(), tally.modules.load(), tally.differences.size(),
        tally.refused.size(), seconds);
    for (const std::string& d : tally.differences) ADD_FAILURE() << d;
    for (const std::string& r : tally.refused) std::printf("  refused: %s\n", r.c_str());
}

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TEST(MachineCode, DrawnToolkitModules) {
    const auto rows = read_list(std::string(TTT_SOURCE_DIR) + "/tests/corpus/corpus.txt");
    ASSERT_GE(rows.size(), 100u) << "tests/corpus/corpus.txt is damaged";
    const std::string ptxas = find_ptxas();
    if (ptxas.empty()) GTEST_SKIP() << "ptxas is not installed";
    const auto start = std::chrono::steady_clock::now();
    size_t missing = 0;
    const auto loaded = load(rows, missing);
    ASSERT_TRUE(loaded.ok()) << loaded.error().str();
    const std::vector<Sample>& samples = *loaded;
    if (samples.empty())
        GTEST_SKIP()
            << "none of the listed toolkit libraries is installed (searched $TTT_CUDA_LIB, "
               "$CUDA_HOME/lib64, /usr/local/cuda/lib64)";
    Tally tally;
    compare_all(ptxas, samples, tally);
    report("toolkit", tally, seconds_since(start));
    if (missing > 0)
        std::printf("  %zu listed entries are of libraries that this machine lacks\n", missing);
    else
        EXPECT_GE(tally.entries.load(), 1000u);
    EXPECT_TRUE(tally.refused.empty());
}

TEST(MachineCode, CommittedModules) {
    const std::string ptxas = find_ptxas();
    if (ptxas.empty()) GTEST_SKIP() << "ptxas is not installed";
    const auto start = std::chrono::steady_clock::now();
    std::vector<Sample> samples;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(
             std::string(TTT_SOURCE_DIR) + "/tests/data/ptx")) {
        if (entry.path().extension() != ".ptx") continue;
        std::ifstream in(entry.path(), std::ios::binary);
        Sample sample{entry.path().filename().string(),
                      {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()},
                      0};
        const auto module = ptx::parse(sample.text);
        if (module.ok())
            for (const ptx::Function& f : module->functions)
                sample.entries += f.is_entry && f.has_body;
        samples.push_back(std::move(sample));
    }
    ASSERT_GE(samples.size(), 10u);
    Tally tally;
    compare_all(ptxas, samples, tally);
    report("committed", tally, seconds_since(start));
    EXPECT_TRUE(tally.refused.empty());
}

}  // namespace
}  // namespace ttt::corpus
