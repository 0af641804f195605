// What the emulated driver says about images it cannot run, and the linker.
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

#include "unit/emulator/driver.h"

namespace ttt::test {
namespace {

struct Image : Emulator {
    CUresult load_code(const void* image) {
        CUmodule module = nullptr;
        return CU(cuModuleLoadData)(&module, image);
    }
};

TEST_F(Image, NewerPtxIsItsOwnError) {
    EXPECT_EQ(load_code(".version 99.0\n.target sm_80\n.address_size 64\n"),
              CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
}

TEST_F(Image, PtxOfANewerTargetIsRefused) {
    EXPECT_EQ(load_code(".version 8.0\n.target sm_121\n.address_size 64\n"),
              CUDA_ERROR_INVALID_PTX);
}

TEST_F(Image, InvalidPtxExplainsItselfInTheLog) {
    const char* text =
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n    mov.u32 %r1 "
        "%r2;\n";
    char log[512] = {};
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
    CUmodule module = nullptr;
    EXPECT_EQ(CU(cuModuleLoadDataEx)(&module, text, 2, options, values), CUDA_ERROR_INVALID_PTX);
    EXPECT_NE(std::strstr(log, "line"), nullptr) << log;
    EXPECT_EQ(reinterpret_cast<size_t>(values[1]), std::strlen(log));
}

std::vector<char> data_file(const char* name) {
    std::ifstream file(std::string(TTT_SOURCE_DIR "/tests/data/image/") + name, std::ios::binary);
    std::vector<char> bytes(std::istreambuf_iterator<char>(file), {});
    EXPECT_FALSE(bytes.empty()) << name;
    return bytes;
}

TEST_F(Image, MachineCodeAloneCannotRun) {
    EXPECT_EQ(load_code(data_file("probe_90.cubin").data()), CUDA_ERROR_NO_BINARY_FOR_GPU);
    EXPECT_EQ(load_code(data_file("object.o").data()), CUDA_ERROR_NO_BINARY_FOR_GPU);
}

TEST_F(Image, FatBinariesInEveryCompression) {
    for (const char* name : {"none.fatbin", "speed.fatbin", "size.fatbin"}) {
        EXPECT_EQ(load_code(data_file(name).data()), CUDA_SUCCESS) << name;
    }
}

TEST_F(Image, DamagedFatBinariesAreErrors) {
    const std::vector<char> whole = data_file("size.fatbin");
    for (size_t at = 0; at < whole.size(); at += 1 + whole.size() / 300) {
        std::vector<char> bytes = whole;
        bytes[at] = static_cast<char>(bytes[at] ^ 0x55);
        CUmodule module = nullptr;
        if (CU(cuModuleLoadData)(&module, bytes.data()) == CUDA_SUCCESS) {
            EXPECT_EQ(CU(cuModuleUnload)(module), CUDA_SUCCESS);
        }
    }
}

TEST_F(Image, Garbage) {
    const char garbage[64] = "\x01\x02\x03garbage that is no image at all";
    EXPECT_EQ(load_code(garbage), CUDA_ERROR_INVALID_IMAGE);
    EXPECT_EQ(load_code(nullptr), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Image, LinkerReturnsAnImageThatLoads) {
    CUlinkState state = nullptr;
    ASSERT_EQ(CU(cuLinkCreate)(0, nullptr, nullptr, &state), CUDA_SUCCESS);
    std::string text = kAdd;
    ASSERT_EQ(CU(cuLinkAddData)(state, CU_JIT_INPUT_PTX, text.data(), text.size() + 1, "add", 0,
                                nullptr, nullptr),
              CUDA_SUCCESS);
    void* image = nullptr;
    size_t bytes = 0;
    ASSERT_EQ(CU(cuLinkComplete)(state, &image, &bytes), CUDA_SUCCESS);
    EXPECT_EQ(load_code(image), CUDA_SUCCESS);
    EXPECT_EQ(CU(cuLinkDestroy)(state), CUDA_SUCCESS);
    EXPECT_EQ(CU(cuLinkDestroy)(state), CUDA_ERROR_INVALID_HANDLE);
}

}  // namespace
}  // namespace ttt::test
