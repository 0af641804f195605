// The driver under test, loaded as programs load it, and a few shared kernels. Each test binary
// runs with LD_LIBRARY_PATH at the emulated GPU.
#pragma once

#include <cuda.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>

namespace ttt::test {

inline void* driver_library() {
    static void* handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    return handle;
}

template <typename F>
F* driver_function(const char* name) {
    return reinterpret_cast<F*>(dlsym(driver_library(), name));
}

#define TTT_STRING_(x) #x
#define TTT_STRING(x) TTT_STRING_(x)
#define CU(function) (*::ttt::test::driver_function<decltype(function)>(TTT_STRING(function)))

// A current primary context for one test; reset afterwards, so that a sticky error does not leak
// into the next.
struct Emulator : testing::Test {
    void SetUp() override {
        ASSERT_NE(driver_library(), nullptr) << dlerror();
        ASSERT_EQ(CU(cuInit)(0), CUDA_SUCCESS);
        ASSERT_EQ(CU(cuDevicePrimaryCtxRetain)(&context, 0), CUDA_SUCCESS);
        ASSERT_EQ(CU(cuCtxSetCurrent)(context), CUDA_SUCCESS);
    }
    void TearDown() override {
        if (context != nullptr) CU(cuDevicePrimaryCtxReset)(0);
    }
    CUfunction load(const char* ptx, const char* name) {
        CUmodule module = nullptr;
        EXPECT_EQ(CU(cuModuleLoadData)(&module, ptx), CUDA_SUCCESS);
        CUfunction function = nullptr;
        EXPECT_EQ(CU(cuModuleGetFunction)(&function, module, name), CUDA_SUCCESS);
        return function;
    }
    CUdeviceptr allocate(size_t bytes) {
        CUdeviceptr address = 0;
        EXPECT_EQ(CU(cuMemAlloc)(&address, bytes), CUDA_SUCCESS);
        return address;
    }
    CUcontext context = nullptr;
};

// c[i] = a[i] + b[i]
inline constexpr const char* kAdd = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)
{
    .reg .pred %p<2>;
    .reg .f32 %f<4>;
    .reg .b32 %r<6>;
    .reg .b64 %rd<11>;
    ld.param.u64 %rd1, [a];
    ld.param.u64 %rd2, [b];
    ld.param.u64 %rd3, [c];
    ld.param.u32 %r2, [n];
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %ntid.x;
    mov.u32 %r5, %tid.x;
    mad.lo.s32 %r1, %r3, %r4, %r5;
    setp.ge.s32 %p1, %r1, %r2;
    @%p1 bra DONE;
    cvta.to.global.u64 %rd4, %rd1;
    mul.wide.s32 %rd5, %r1, 4;
    add.s64 %rd6, %rd4, %rd5;
    cvta.to.global.u64 %rd7, %rd2;
    add.s64 %rd8, %rd7, %rd5;
    ld.global.f32 %f1, [%rd8];
    ld.global.f32 %f2, [%rd6];
    add.f32 %f3, %f2, %f1;
    cvta.to.global.u64 %rd9, %rd3;
    add.s64 %rd10, %rd9, %rd5;
    st.global.f32 [%rd10], %f3;
DONE:
    ret;
}
)";

// Writes value to every element of out and counts its threads in the module variable `total`.
inline constexpr const char* kFill = R"(.version 8.0
.target sm_80
.address_size 64
.visible .global .align 4 .u32 total = 5;
.visible .entry fill(.param .u64 out, .param .u32 value)
{
    .reg .b32 %r<6>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [value];
    mov.u32 %r2, %tid.x;
    cvta.to.global.u64 %rd2, %rd1;
    mul.wide.u32 %rd3, %r2, 4;
    add.s64 %rd4, %rd2, %rd3;
    st.global.u32 [%rd4], %r1;
    atom.global.add.u32 %r3, [total], 1;
    ret;
}
)";

}  // namespace ttt::test
