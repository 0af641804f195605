// The null driver itself, loaded the way programs load libcuda.so.1.
#include <cuda.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace {

struct NullDriver : testing::Test {
    void SetUp() override {
        handle = dlopen(TTT_NULL_DRIVER, RTLD_NOW | RTLD_LOCAL);
        ASSERT_NE(handle, nullptr) << dlerror();
    }
    template <typename F>
    F symbol(const char* name) {
        return reinterpret_cast<F>(dlsym(handle, name));
    }
    void* handle = nullptr;
};

using Load = CUresult (*)(CUmodule*, const void*);
using GetFunction = CUresult (*)(CUfunction*, CUmodule, const char*);
using Launch = CUresult (*)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                            unsigned, CUstream, void**, void**);
using Lookup = CUresult (*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);

TEST_F(NullDriver, HandlesAreUniqueAndStable) {
    CUmodule a = nullptr, b = nullptr;
    const auto load = symbol<Load>("cuModuleLoadData");
    EXPECT_EQ(load(&a, "x"), CUDA_SUCCESS);
    EXPECT_EQ(load(&b, "x"), CUDA_SUCCESS);
    EXPECT_NE(a, b);
    CUfunction f = nullptr, g = nullptr, h = nullptr;
    const auto get = symbol<GetFunction>("cuModuleGetFunction");
    EXPECT_EQ(get(&f, a, "k"), CUDA_SUCCESS);
    EXPECT_EQ(get(&g, a, "k"), CUDA_SUCCESS);
    EXPECT_EQ(get(&h, b, "k"), CUDA_SUCCESS);
    EXPECT_EQ(f, g);
    EXPECT_NE(f, h);
}

TEST_F(NullDriver, CountsLaunchesAndInjectsTheFailureOfTheEnvironment) {
    const auto launches = symbol<uint64_t (*)()>("ttt_null_launches");
    const auto launch = symbol<Launch>("cuLaunchKernel");
    const uint64_t before = launches();
    CUresult results[3];
    for (CUresult& r : results) r = launch(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
    EXPECT_EQ(launches() - before, 3u);
    // main() below set "launch:2=fault"; this is the only test that launches.
    EXPECT_EQ(results[0], CUDA_SUCCESS);
    EXPECT_EQ(results[1], CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(results[2], CUDA_SUCCESS);
}

TEST_F(NullDriver, AnswersLookupsByVersionAndFlags) {
    const auto lookup = symbol<Lookup>("cuGetProcAddress_v2");
    void* found = nullptr;
    CUdriverProcAddressQueryResult status{};
    EXPECT_EQ(lookup("cuCtxSynchronize", &found, 12000, 0, &status), CUDA_SUCCESS);
    EXPECT_EQ(found, symbol<void*>("cuCtxSynchronize"));
    EXPECT_EQ(lookup("cuLaunchKernel", &found, 12000, 2, &status), CUDA_SUCCESS);
    EXPECT_EQ(found, symbol<void*>("cuLaunchKernel_ptsz"));
    EXPECT_EQ(lookup("cuLaunchKernel", &found, 1000, 0, &status), CUDA_SUCCESS);
    EXPECT_EQ(found, nullptr);
    EXPECT_EQ(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    EXPECT_EQ(lookup("", &found, 12000, 0, &status), CUDA_SUCCESS);
    EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    EXPECT_EQ(lookup("cuInit", &found, CUDA_VERSION + 10, 0, &status), CUDA_ERROR_INVALID_VALUE);
}

// The plan is read when the library is loaded: set it before any test runs.
const bool g_planned = setenv("TTT_EMU_FAULT", "launch:2=fault", 1) == 0;

TEST_F(NullDriver, KnowsItsPlan) { EXPECT_TRUE(g_planned); }

}  // namespace
