// Kernels through every launch form, their variables, and what happens when they fail.
#include <cstring>
#include <vector>

#include "unit/emulator/driver.h"

namespace ttt::test {
namespace {

struct Launch : Emulator {
    static constexpr unsigned kCount = 1000;
    void prepare() {
        add = load(kAdd, "add");
        std::vector<float> a(kCount), b(kCount);
        for (unsigned i = 0; i < kCount; ++i) {
            a[i] = static_cast<float>(i);
            b[i] = static_cast<float>(i) * 0.5F;
        }
        for (CUdeviceptr* p : {&da, &db, &dc}) *p = allocate(kCount * 4);
        ASSERT_EQ(CU(cuMemcpyHtoD)(da, a.data(), kCount * 4), CUDA_SUCCESS);
        ASSERT_EQ(CU(cuMemcpyHtoD)(db, b.data(), kCount * 4), CUDA_SUCCESS);
        ASSERT_EQ(CU(cuMemsetD8)(dc, 0, kCount * 4), CUDA_SUCCESS);
    }
    void expect_sums() {
        std::vector<float> c(kCount);
        ASSERT_EQ(CU(cuMemcpyDtoH)(c.data(), dc, kCount * 4), CUDA_SUCCESS);
        for (unsigned i = 0; i < kCount; ++i) ASSERT_EQ(c[i], static_cast<float>(i) * 1.5F) << i;
    }
    CUfunction add = nullptr;
    CUdeviceptr da = 0, db = 0, dc = 0;
    unsigned n = kCount;
};

TEST_F(Launch, PointerParameters) {
    prepare();
    void* params[] = {&da, &db, &dc, &n};
    EXPECT_EQ(CU(cuLaunchKernel)(add, 8, 1, 1, 128, 1, 1, 0, nullptr, params, nullptr),
              CUDA_SUCCESS);
    EXPECT_EQ(CU(cuCtxSynchronize)(), CUDA_SUCCESS);
    expect_sums();
}

TEST_F(Launch, PackedParameters) {
    prepare();
    struct {
        CUdeviceptr a, b, c;
        unsigned n;
    } packed{da, db, dc, n};
    size_t bytes = 28;
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     CU_LAUNCH_PARAM_END};
    EXPECT_EQ(CU(cuLaunchKernel)(add, 8, 1, 1, 128, 1, 1, 0, nullptr, nullptr, extra),
              CUDA_SUCCESS);
    expect_sums();
    bytes = 12;  // too few for the kernel
    EXPECT_EQ(CU(cuLaunchKernel)(add, 8, 1, 1, 128, 1, 1, 0, nullptr, nullptr, extra),
              CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Launch, ExtendedAndPerThreadForms) {
    prepare();
    CUlaunchConfig config{};
    config.gridDimX = 8;
    config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = 128;
    config.blockDimY = config.blockDimZ = 1;
    void* params[] = {&da, &db, &dc, &n};
    EXPECT_EQ(CU(cuLaunchKernelEx)(&config, add, params, nullptr), CUDA_SUCCESS);
    expect_sums();
    const auto launch = driver_function<decltype(cuLaunchKernel)>("cuLaunchKernel_ptsz");
    EXPECT_EQ(CU(cuMemsetD8)(dc, 0, kCount * 4), CUDA_SUCCESS);
    EXPECT_EQ(launch(add, 8, 1, 1, 128, 1, 1, 0, nullptr, params, nullptr), CUDA_SUCCESS);
    expect_sums();
}

TEST_F(Launch, BadGeometryAndHandlesAreRefused) {
    prepare();
    void* params[] = {&da, &db, &dc, &n};
    EXPECT_EQ(CU(cuLaunchKernel)(add, 0, 1, 1, 128, 1, 1, 0, nullptr, params, nullptr),
              CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(CU(cuLaunchKernel)(add, 1, 1, 1, 1025, 1, 1, 0, nullptr, params, nullptr),
              CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(CU(cuLaunchKernel)(add, 1, 1, 1, 32, 1, 1, 1 << 20, nullptr, params, nullptr),
              CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(CU(cuLaunchKernel)(nullptr, 1, 1, 1, 32, 1, 1, 0, nullptr, params, nullptr),
              CUDA_ERROR_INVALID_HANDLE);
    const auto wild = reinterpret_cast<CUfunction>(&n);
    EXPECT_EQ(CU(cuLaunchKernel)(wild, 1, 1, 1, 32, 1, 1, 0, nullptr, params, nullptr),
              CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(Launch, ModuleVariablesAreInitialisedAndReachable) {
    CUmodule module = nullptr;
    ASSERT_EQ(CU(cuModuleLoadData)(&module, kFill), CUDA_SUCCESS);
    CUfunction fill = nullptr;
    ASSERT_EQ(CU(cuModuleGetFunction)(&fill, module, "fill"), CUDA_SUCCESS);
    CUdeviceptr total = 0;
    size_t bytes = 0;
    ASSERT_EQ(CU(cuModuleGetGlobal)(&total, &bytes, module, "total"), CUDA_SUCCESS);
    EXPECT_EQ(bytes, 4u);
    CUdeviceptr out = allocate(32 * 4);
    unsigned value = 42, count = 0;
    void* params[] = {&out, &value};
    ASSERT_EQ(CU(cuLaunchKernel)(fill, 1, 1, 1, 32, 1, 1, 0, nullptr, params, nullptr),
              CUDA_SUCCESS);
    ASSERT_EQ(CU(cuMemcpyDtoH)(&count, total, 4), CUDA_SUCCESS);
    EXPECT_EQ(count, 5u + 32u);
    unsigned filled[32];
    ASSERT_EQ(CU(cuMemcpyDtoH)(filled, out, sizeof filled), CUDA_SUCCESS);
    for (const unsigned f : filled) EXPECT_EQ(f, 42u);
    EXPECT_EQ(CU(cuModuleGetGlobal)(&total, &bytes, module, "missing"), CUDA_ERROR_NOT_FOUND);
}

TEST_F(Launch, AFaultIsStickyUntilTheContextIsReset) {
    CUfunction fill = load(kFill, "fill");
    CUdeviceptr out = allocate(16 * 4);  // for a block of 64: the upper threads write beyond it
    unsigned value = 1;
    void* params[] = {&out, &value};
    EXPECT_EQ(CU(cuLaunchKernel)(fill, 1, 1, 1, 64, 1, 1, 0, nullptr, params, nullptr),
              CUDA_SUCCESS);
    EXPECT_EQ(CU(cuCtxSynchronize)(), CUDA_ERROR_ILLEGAL_ADDRESS);
    CUdeviceptr more = 0;
    EXPECT_EQ(CU(cuMemAlloc)(&more, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(CU(cuLaunchKernel)(fill, 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr),
              CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(CU(cuMemFree)(out), CUDA_ERROR_ILLEGAL_ADDRESS);
    ASSERT_EQ(CU(cuDevicePrimaryCtxReset)(0), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuDevicePrimaryCtxRetain)(&context, 0), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuCtxSetCurrent)(context), CUDA_SUCCESS);
    EXPECT_EQ(CU(cuMemAlloc)(&more, 4), CUDA_SUCCESS);
}

TEST_F(Launch, UseAfterFreeIsAFault) {
    CUfunction fill = load(kFill, "fill");
    CUdeviceptr out = allocate(32 * 4);
    ASSERT_EQ(CU(cuMemFree)(out), CUDA_SUCCESS);
    unsigned value = 1;
    void* params[] = {&out, &value};
    EXPECT_EQ(CU(cuLaunchKernel)(fill, 1, 1, 1, 32, 1, 1, 0, nullptr, params, nullptr),
              CUDA_SUCCESS);
    EXPECT_EQ(CU(cuStreamSynchronize)(nullptr), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(Launch, EventsShowSimulatedTimeThatRepeats) {
    prepare();
    void* params[] = {&da, &db, &dc, &n};
    CUevent first = nullptr, second = nullptr;
    ASSERT_EQ(CU(cuEventCreate)(&first, 0), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuEventCreate)(&second, 0), CUDA_SUCCESS);
    const auto time = [&](unsigned blocks) {
        EXPECT_EQ(CU(cuEventRecord)(first, nullptr), CUDA_SUCCESS);
        EXPECT_EQ(CU(cuLaunchKernel)(add, blocks, 1, 1, 128, 1, 1, 0, nullptr, params, nullptr),
                  CUDA_SUCCESS);
        EXPECT_EQ(CU(cuEventRecord)(second, nullptr), CUDA_SUCCESS);
        EXPECT_EQ(CU(cuEventSynchronize)(second), CUDA_SUCCESS);
        float ms = 0;
        EXPECT_EQ(CU(cuEventElapsedTime)(&ms, first, second), CUDA_SUCCESS);
        return ms;
    };
    const float once = time(8);
    EXPECT_GT(once, 0.0005F);
    EXPECT_LT(once, 0.1F);
    EXPECT_EQ(time(8), once);
    EXPECT_GT(time(8000), once);
}

TEST_F(Launch, KernelAttributesAndOccupancy) {
    prepare();
    int registers = 0, threads = 0, blocks = 0;
    EXPECT_EQ(CU(cuFuncGetAttribute)(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, add), CUDA_SUCCESS);
    EXPECT_GT(registers, 0);
    EXPECT_LE(registers, 255);
    EXPECT_EQ(CU(cuFuncGetAttribute)(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, add),
              CUDA_SUCCESS);
    EXPECT_EQ(threads, 1024);
    EXPECT_EQ(CU(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&blocks, add, 256, 0), CUDA_SUCCESS);
    EXPECT_EQ(blocks, 8);  // 2048 threads per multiprocessor
    size_t offset = 0, size = 0;
    EXPECT_EQ(CU(cuFuncGetParamInfo)(add, 3, &offset, &size), CUDA_SUCCESS);
    EXPECT_EQ(offset, 24u);
    EXPECT_EQ(size, 4u);
    EXPECT_EQ(CU(cuFuncGetParamInfo)(add, 4, &offset, &size), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Launch, LibrariesAndTheirKernels) {
    prepare();
    CUlibrary library = nullptr;
    ASSERT_EQ(CU(cuLibraryLoadData)(&library, kAdd, nullptr, nullptr, 0, nullptr, nullptr, 0),
              CUDA_SUCCESS);
    CUkernel kernel = nullptr;
    ASSERT_EQ(CU(cuLibraryGetKernel)(&kernel, library, "add"), CUDA_SUCCESS);
    EXPECT_EQ(CU(cuLibraryGetKernel)(&kernel, library, "missing"), CUDA_ERROR_NOT_FOUND);
    const auto as_function = reinterpret_cast<CUfunction>(kernel);
    const char* name = nullptr;
    EXPECT_EQ(CU(cuKernelGetName)(&name, kernel), CUDA_SUCCESS);
    EXPECT_STREQ(name, "add");
    EXPECT_NE(CU(cuFuncGetName)(&name, as_function), CUDA_SUCCESS);  // as on hardware
    void* params[] = {&da, &db, &dc, &n};
    EXPECT_EQ(CU(cuLaunchKernel)(as_function, 8, 1, 1, 128, 1, 1, 0, nullptr, params, nullptr),
              CUDA_SUCCESS);
    expect_sums();
    CUfunction function = nullptr;
    EXPECT_EQ(CU(cuKernelGetFunction)(&function, kernel), CUDA_SUCCESS);
    EXPECT_EQ(CU(cuFuncGetName)(&name, function), CUDA_SUCCESS);
    EXPECT_STREQ(name, "add");
    EXPECT_EQ(CU(cuLibraryUnload)(library), CUDA_SUCCESS);
    EXPECT_EQ(CU(cuLaunchKernel)(as_function, 8, 1, 1, 128, 1, 1, 0, nullptr, params, nullptr),
              CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(Launch, TheOldInterface) {
    prepare();
    using Shape = CUresult(CUfunction, int, int, int);
    using Put = CUresult(CUfunction, int, void*, unsigned);
    using Grid = CUresult(CUfunction, int, int);
    EXPECT_EQ(driver_function<Shape>("cuFuncSetBlockShape")(add, 128, 1, 1), CUDA_SUCCESS);
    auto* put = driver_function<Put>("cuParamSetv");
    EXPECT_EQ(put(add, 0, &da, 8), CUDA_SUCCESS);
    EXPECT_EQ(put(add, 8, &db, 8), CUDA_SUCCESS);
    EXPECT_EQ(put(add, 16, &dc, 8), CUDA_SUCCESS);
    EXPECT_EQ(put(add, 24, &n, 4), CUDA_SUCCESS);
    EXPECT_EQ(put(add, 4095, &n, 4), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(driver_function<Grid>("cuLaunchGrid")(add, 8, 1), CUDA_SUCCESS);
    expect_sums();
}

TEST_F(Launch, GraphsOutliveTheirModuleWithoutHarm) {
    CUmodule module = nullptr;
    ASSERT_EQ(CU(cuModuleLoadData)(&module, kFill), CUDA_SUCCESS);
    CUfunction fill = nullptr;
    ASSERT_EQ(CU(cuModuleGetFunction)(&fill, module, "fill"), CUDA_SUCCESS);
    CUdeviceptr out = allocate(128);
    unsigned value = 1;
    void* params[] = {&out, &value};
    CUDA_KERNEL_NODE_PARAMS node{};
    node.func = fill;
    node.gridDimX = node.gridDimY = node.gridDimZ = 1;
    node.blockDimX = 32;
    node.blockDimY = node.blockDimZ = 1;
    node.kernelParams = params;
    CUgraph graph = nullptr;
    CUgraphNode handle = nullptr;
    CUgraphExec exec = nullptr;
    ASSERT_EQ(CU(cuGraphCreate)(&graph, 0), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuGraphAddKernelNode)(&handle, graph, nullptr, 0, &node), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuGraphInstantiate)(&exec, graph, 0), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuModuleUnload)(module), CUDA_SUCCESS);
    EXPECT_EQ(CU(cuGraphLaunch)(exec, nullptr), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(CU(cuGraphKernelNodeGetParams)(handle, &node), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(CU(cuModuleUnload)(module), CUDA_ERROR_INVALID_HANDLE);
}

}  // namespace
}  // namespace ttt::test
