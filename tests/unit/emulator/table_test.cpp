// The whole interface: every name of the typedef header resolves, what is not emulated says so.
#include <cudaProfiler.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "unit/emulator/driver.h"

namespace ttt::test {
namespace {

using Table = Emulator;

nlohmann::json table() {
    std::ifstream file(TTT_DRIVER_TABLE);
    return nlohmann::json::parse(file);
}

TEST_F(Table, EveryFunctionOfTheHeaderIsExported) {
    const auto all = table();
    size_t count = 0;
    for (const auto& row : all.at("functions")) {
        const std::string symbol = row.at("symbol");
        EXPECT_NE(dlsym(driver_library(), symbol.c_str()), nullptr) << symbol;
        ++count;
    }
    EXPECT_GT(count, 400u);
}

TEST_F(Table, EveryLookUpAnswersWithItsSymbol) {
    using Lookup = CUresult(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);
    auto* lookup = driver_function<Lookup>("cuGetProcAddress_v2");
    const auto all = table();
    for (const auto& row : all.at("lookups")) {
        const std::string base = row.at("base"), symbol = row.at("symbol"),
                          thread = row.at("thread");
        void* found = nullptr;
        CUdriverProcAddressQueryResult status{};
        ASSERT_EQ(lookup(base.c_str(), &found, row.at("since"), thread.empty() ? 0 : 2, &status),
                  CUDA_SUCCESS)
            << base;
        EXPECT_EQ(found, dlsym(driver_library(), symbol.c_str())) << symbol;
        EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SUCCESS) << symbol;
    }
}

TEST_F(Table, OddLookUps) {
    using Lookup = CUresult(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);
    auto* lookup = driver_function<Lookup>("cuGetProcAddress_v2");
    void* found = &found;
    CUdriverProcAddressQueryResult status{};
    EXPECT_EQ(lookup("", &found, CUDA_VERSION, 0, &status), CUDA_SUCCESS);
    EXPECT_EQ(found, nullptr);
    EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    EXPECT_EQ(lookup("cuLaunchKernelEx", &found, 9000, 0, &status), CUDA_SUCCESS);
    EXPECT_EQ(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    EXPECT_EQ(lookup("cuInit", &found, CUDA_VERSION + 1000, 0, &status), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(lookup("cuGetProcAddress", &found, 12000, 0, &status), CUDA_SUCCESS);
    EXPECT_EQ(found, reinterpret_cast<void*>(lookup));
}

TEST_F(Table, WhatIsNotEmulatedSaysSo) {
    CUarray array = nullptr;
    CUDA_ARRAY_DESCRIPTOR descriptor{};
    EXPECT_EQ(CU(cuArrayCreate)(&array, &descriptor), CUDA_ERROR_NOT_SUPPORTED);
    CUgreenCtx green = nullptr;
    EXPECT_EQ(CU(cuGreenCtxCreate)(&green, nullptr, 0, 0), CUDA_ERROR_NOT_SUPPORTED);
}

TEST_F(Table, OnlyDriverNamesAreExported) {
    EXPECT_NE(dlsym(driver_library(), "ttt_emulator_profile"), nullptr);
    EXPECT_STREQ(driver_function<const char*()>("ttt_emulator_profile")(), "h200");
    EXPECT_EQ(dlsym(driver_library(),
                    "_ZN3ttt5model12find_profileESt17basic_string_viewIcSt11char_traitsIcEE"),
              nullptr);
}

TEST_F(Table, DeviceAttributesOfTheProfile) {
    int major = 0, sms = 0, integrated = 0, bad = 0;
    EXPECT_EQ(CU(cuDeviceGetAttribute)(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0),
              CUDA_SUCCESS);
    EXPECT_EQ(CU(cuDeviceGetAttribute)(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0),
              CUDA_SUCCESS);
    EXPECT_EQ(CU(cuDeviceGetAttribute)(&integrated, CU_DEVICE_ATTRIBUTE_INTEGRATED, 0),
              CUDA_SUCCESS);
    EXPECT_EQ(major, 9);
    EXPECT_EQ(sms, 132);
    EXPECT_EQ(integrated, 0);
    EXPECT_EQ(CU(cuDeviceGetAttribute)(&bad, CU_DEVICE_ATTRIBUTE_MAX, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(CU(cuDeviceGetAttribute)(&bad, CU_DEVICE_ATTRIBUTE_INTEGRATED, 1),
              CUDA_ERROR_INVALID_DEVICE);
}

TEST_F(Table, CallsNeedAContext) {
    ASSERT_EQ(CU(cuCtxSetCurrent)(nullptr), CUDA_SUCCESS);
    CUdeviceptr p = 0;
    EXPECT_EQ(CU(cuMemAlloc)(&p, 4), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(CU(cuCtxSynchronize)(), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(CU(cuCtxSetCurrent)(reinterpret_cast<CUcontext>(&p)), CUDA_ERROR_INVALID_CONTEXT);
}

}  // namespace
}  // namespace ttt::test
