// Thread instructions per second of the interpreter on the suite's kernels, one core unless told
// otherwise. Target on gemm_naive: 100 million.
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "spec_run.h"

namespace ttt::test {
namespace {

struct Kernel {
    const char* name;
    uint32_t blocks;  // of the grid's x direction, to keep a run short
};
constexpr Kernel kKernels[] = {{"gemm_naive", 2},   {"gemv", 64},      {"conv_naive", 1},
                               {"nbody", 1},        {"stencil27", 8},  {"permute4", 8192},
                               {"softmax_row", 64}, {"saxpy_h", 8192}, {"relu_u8", 16384},
                               {"transpose", 128},  {"heavy", 64}};

// Of this process on all cores, so that a busy machine does not count against the interpreter.
double cpu_seconds() {
    timespec t{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

int bench(unsigned threads) {
    const std::string folder = std::string(TTT_SOURCE_DIR) + "/tests/data/suite/";
    const std::string ptx = read_text(folder + "kernels.ptx");
    int failures = 0;
    for (const Kernel& k : kKernels) {
        auto launch = spec::read_file(folder + k.name + ".json");
        if (!launch) return std::fprintf(stderr, "%s\n", launch.error().str().c_str()), 1;
        launch->grid.x = std::min(launch->grid.x, k.blocks);
        launch->grid.y = std::min(launch->grid.y, 4u);
        launch->grid.z = std::min(launch->grid.z, 2u);
        auto run = SpecRun::make(ptx, *launch);
        if (!run) {
            std::fprintf(stderr, "%s: %s\n", k.name, run.error().str().c_str());
            ++failures;
            continue;
        }
        const double start = cpu_seconds();
        auto result = (*run)->launch(threads);
        const double s = cpu_seconds() - start;
        if (!result || result->fault) {
            std::fprintf(stderr, "%s: %s\n", k.name, result ? result->fault->message.c_str() : "?");
            ++failures;
            continue;
        }
        const auto n = static_cast<double>(result->counters.thread_instructions);
        std::printf("%-12s %8.1f M thread instructions in %6.3f s: %7.1f M/s per core\n", k.name,
                    n * 1e-6, s, n / s * 1e-6);
    }
    return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace ttt::test

int main(int argc, char** argv) {
    return ttt::test::bench(argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 1);
}
