// Other profiles and injected faults: each needs its own environment, so each runs in a process of
// its own.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>

#include "unit/emulator/driver.h"

namespace ttt::test {
namespace {

// Runs `body` in a child with one environment variable set; its result is the body's failure count.
int in_child(const char* variable, const char* value, const std::function<int()>& body) {
    const pid_t pid = fork();  // the driver is not loaded in this process
    if (pid == 0) {
        setenv(variable, value, 1);
        _exit(body());
    }
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

#define CHECK(condition)                             \
    do {                                             \
        if (!(condition)) return __LINE__ % 250 + 1; \
    } while (0)

int begin(CUcontext* context) {
    CHECK(CU(cuInit)(0) == CUDA_SUCCESS);
    CHECK(CU(cuDevicePrimaryCtxRetain)(context, 0) == CUDA_SUCCESS);
    CHECK(CU(cuCtxSetCurrent)(*context) == CUDA_SUCCESS);
    return 0;
}

int check_device(int major, int minor, int integrated) {
    int got[3] = {-1, -1, -1};
    CHECK(CU(cuInit)(0) == CUDA_SUCCESS);
    CU(cuDeviceGetAttribute)(&got[0], CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0);
    CU(cuDeviceGetAttribute)(&got[1], CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0);
    CU(cuDeviceGetAttribute)(&got[2], CU_DEVICE_ATTRIBUTE_INTEGRATED, 0);
    CHECK(got[0] == major);
    CHECK(got[1] == minor);
    CHECK(got[2] == integrated);
    return 0;
}

TEST(Profiles, OrinAndThorAreIntegrated) {
    EXPECT_EQ(in_child("TTT_EMU_PROFILE", "orin", [] { return check_device(8, 7, 1); }), 0);
    EXPECT_EQ(in_child("TTT_EMU_PROFILE", "thor", [] { return check_device(11, 0, 1); }), 0);
}

TEST(Profiles, AnUnknownOneIsNoDevice) {
    EXPECT_EQ(in_child("TTT_EMU_PROFILE", "abacus",
                       [] { return CU(cuInit)(0) == CUDA_ERROR_NO_DEVICE ? 0 : 1; }),
              0);
}

TEST(Faults, TheNthCallFailsOnce) {
    EXPECT_EQ(in_child("TTT_EMU_FAULT", "cuMemAlloc:2=2",
                       [] {
                           CUcontext context = nullptr;
                           CHECK(begin(&context) == 0);
                           CUdeviceptr p = 0;
                           CHECK(CU(cuMemAlloc)(&p, 4) == CUDA_SUCCESS);
                           CHECK(CU(cuMemAlloc)(&p, 4) == CUDA_ERROR_OUT_OF_MEMORY);
                           CHECK(CU(cuMemAlloc)(&p, 4) == CUDA_SUCCESS);
                           return 0;
                       }),
              0);
}

int launch_three(CUresult second_sync) {
    CUcontext context = nullptr;
    CHECK(begin(&context) == 0);
    CUmodule module = nullptr;
    CUfunction fill = nullptr;
    CUdeviceptr out = 0;
    CHECK(CU(cuModuleLoadData)(&module, kFill) == CUDA_SUCCESS);
    CHECK(CU(cuModuleGetFunction)(&fill, module, "fill") == CUDA_SUCCESS);
    CHECK(CU(cuMemAlloc)(&out, 128) == CUDA_SUCCESS);
    unsigned value = 1;
    void* params[] = {&out, &value};
    CHECK(CU(cuLaunchKernel)(fill, 1, 1, 1, 32, 1, 1, 0, nullptr, params, nullptr) == CUDA_SUCCESS);
    CHECK(CU(cuCtxSynchronize)() == CUDA_SUCCESS);
    CHECK(CU(cuLaunchKernel)(fill, 1, 1, 1, 32, 1, 1, 0, nullptr, params, nullptr) == CUDA_SUCCESS);
    CHECK(CU(cuCtxSynchronize)() == second_sync);
    CHECK(CU(cuLaunchKernel)(fill, 1, 1, 1, 32, 1, 1, 0, nullptr, params, nullptr) == second_sync);
    return 0;
}

TEST(Faults, TheNthLaunchFaults) {
    EXPECT_EQ(in_child("TTT_EMU_FAULT", "launch:2=fault",
                       [] { return launch_three(CUDA_ERROR_ILLEGAL_ADDRESS); }),
              0);
    EXPECT_EQ(in_child("TTT_EMU_FAULT", "", [] { return launch_three(CUDA_SUCCESS); }), 0);
}

int copy_nanoseconds(double* ns) {
    CUcontext context = nullptr;
    CHECK(begin(&context) == 0);
    CUdeviceptr p = 0;
    CHECK(CU(cuMemAlloc)(&p, 1 << 20) == CUDA_SUCCESS);
    CUevent first = nullptr, second = nullptr;
    CHECK(CU(cuEventCreate)(&first, 0) == CUDA_SUCCESS);
    CHECK(CU(cuEventCreate)(&second, 0) == CUDA_SUCCESS);
    CHECK(CU(cuEventRecord)(first, nullptr) == CUDA_SUCCESS);
    CHECK(CU(cuMemcpyDtoD)(p, p + (1 << 19), 1 << 19) == CUDA_SUCCESS);
    CHECK(CU(cuEventRecord)(second, nullptr) == CUDA_SUCCESS);
    float ms = 0;
    CHECK(CU(cuEventElapsedTime)(&ms, first, second) == CUDA_SUCCESS);
    *ns = static_cast<double>(ms) * 1e6;
    return 0;
}

TEST(Faults, SlowCopiesTakeTheirFactor) {
    const auto nanoseconds = [](double* ns) { return copy_nanoseconds(ns); };
    // 1400 ns and half a megabyte at half of 4300 GB/s, and ten times that.
    EXPECT_EQ(in_child("TTT_EMU_FAULT", "",
                       [&] {
                           double ns = 0;
                           CHECK(nanoseconds(&ns) == 0);
                           return ns > 1400 && ns < 2000 ? 0 : 1;
                       }),
              0);
    EXPECT_EQ(in_child("TTT_EMU_FAULT", "copy:slow=10",
                       [&] {
                           double ns = 0;
                           CHECK(nanoseconds(&ns) == 0);
                           return ns > 14000 && ns < 20000 ? 0 : 1;
                       }),
              0);
}

}  // namespace
}  // namespace ttt::test
