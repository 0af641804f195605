// The launch interface of CUDA 2: shape and parameters are set on the function, then it is
// launched.
#include <algorithm>
#include <cstring>

#include "emulator/api.h"

namespace ttt::emulator::api {
namespace {

constexpr size_t kMaxParams = 4096;

CUresult put(CUfunction handle, int offset, const void* data, size_t bytes) {
    Function* function = nullptr;
    TTT_EMU_TRY(need_function(handle, &function));
    if (offset < 0 || data == nullptr || static_cast<size_t>(offset) > kMaxParams ||
        bytes > kMaxParams - static_cast<size_t>(offset)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    auto& params = function->legacy.params;
    params.resize(std::max(params.size(), static_cast<size_t>(offset) + bytes));
    std::memcpy(params.data() + offset, data, bytes);
    return CUDA_SUCCESS;
}

CUresult launch(CUfunction handle, int width, int height, CUstream stream) {
    Function* function = nullptr;
    TTT_EMU_TRY(need_function(handle, &function));
    if (width < 1 || height < 1) return CUDA_ERROR_INVALID_VALUE;
    std::vector<std::byte> params = function->legacy.params;
    size_t bytes = params.size();
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, params.data(), CU_LAUNCH_PARAM_BUFFER_SIZE,
                     &bytes, CU_LAUNCH_PARAM_END};
    const Dim3& block = function->legacy.block;
    return api::cuLaunchKernel(handle, static_cast<unsigned>(width), static_cast<unsigned>(height),
                               1, block.x, block.y, block.z, function->legacy.shared, stream,
                               nullptr, extra);
}

}  // namespace

CUresult cuFuncSetBlockShape(CUfunction handle, int x, int y, int z) {
    Function* function = nullptr;
    TTT_EMU_TRY(need_function(handle, &function));
    if (x < 1 || y < 1 || z < 1) return CUDA_ERROR_INVALID_VALUE;
    function->legacy.block = {static_cast<uint32_t>(x), static_cast<uint32_t>(y),
                              static_cast<uint32_t>(z)};
    return CUDA_SUCCESS;
}
CUresult cuFuncSetSharedSize(CUfunction handle, unsigned int bytes) {
    Function* function = nullptr;
    TTT_EMU_TRY(need_function(handle, &function));
    function->legacy.shared = bytes;
    return CUDA_SUCCESS;
}
CUresult cuParamSetSize(CUfunction handle, unsigned int bytes) {
    Function* function = nullptr;
    TTT_EMU_TRY(need_function(handle, &function));
    if (bytes > kMaxParams) return CUDA_ERROR_INVALID_VALUE;
    function->legacy.params.resize(bytes);
    return CUDA_SUCCESS;
}
CUresult cuParamSeti(CUfunction handle, int offset, unsigned int value) {
    return put(handle, offset, &value, sizeof value);
}
CUresult cuParamSetf(CUfunction handle, int offset, float value) {
    return put(handle, offset, &value, sizeof value);
}
CUresult cuParamSetv(CUfunction handle, int offset, void* data, unsigned int bytes) {
    return put(handle, offset, data, bytes);
}
CUresult cuLaunch(CUfunction handle) { return launch(handle, 1, 1, nullptr); }
CUresult cuLaunchGrid(CUfunction handle, int width, int height) {
    return launch(handle, width, height, nullptr);
}
CUresult cuLaunchGridAsync(CUfunction handle, int width, int height, CUstream stream) {
    return launch(handle, width, height, stream);
}

}  // namespace ttt::emulator::api
