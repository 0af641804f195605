// Slow: every PTX module of every installed toolkit library parses, verifies, and prints to a
// fixpoint.
#include <gtest/gtest.h>

#include <chrono>

#include "corpus/modules.h"
#include "ptx/check.h"

namespace ttt::corpus {
namespace {

TEST(Fixpoint, AllToolkitPtx) {
    const auto libraries = toolkit_libraries();
    if (libraries.empty())
        GTEST_SKIP()
            << "no toolkit library with fat binaries is installed (searched $TTT_CUDA_LIB, "
               "$CUDA_HOME/lib64, /usr/local/cuda/lib64)";
    const auto start = std::chrono::steady_clock::now();
    ptx::CheckReport report;
    for (const std::string& library : libraries) {
        const std::string name = library.substr(library.rfind('/') + 1);
        const auto status = for_each_module(library, [&](FoundModule&& m) {
            ptx::check_text(name + " module " + std::to_string(m.index), std::move(m.text), report);
            return report.failures.size() < 20;
        });
        EXPECT_TRUE(status.ok()) << name << ": " << (status.ok() ? "" : status.error().str());
    }
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::printf(
        "%llu modules, %llu entries, %llu instructions (%llu kept as text), %.0f MB in %.0f s\n",
        static_cast<unsigned long long>(report.files),
        static_cast<unsigned long long>(report.entries),
        static_cast<unsigned long long>(report.instructions),
        static_cast<unsigned long long>(report.opaque), static_cast<double>(report.bytes) / 1e6,
        seconds);
    for (const auto& f : report.failures) ADD_FAILURE() << f.file << ": " << f.error.str();
    EXPECT_GT(report.entries, 0u);
}

}  // namespace
}  // namespace ttt::corpus
