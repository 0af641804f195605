// Launches in every form, occupancy.
#include <algorithm>
#include <cstring>

#include "emulator/api.h"

namespace ttt::emulator {

CUresult pack_params(const Function& function, void** params, void** extra, KernelWork* work) {
    work->params.assign(function.param_bytes, std::byte{0});
    if (params != nullptr && extra != nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (extra != nullptr) {
        const void* buffer = nullptr;
        size_t bytes = 0;
        for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
            if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) {
                buffer = extra[1];
            } else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) {
                std::memcpy(&bytes, extra[1], sizeof bytes);
            } else {
                return CUDA_ERROR_INVALID_VALUE;
            }
        }
        if (buffer == nullptr && bytes > 0) return CUDA_ERROR_INVALID_VALUE;
        const uint32_t needed = function.params.empty() ? 0 : function.param_bytes;
        if (bytes < needed) return CUDA_ERROR_INVALID_VALUE;
        if (needed > 0) std::memcpy(work->params.data(), buffer, needed);
    } else if (!function.params.empty()) {
        if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
        for (size_t i = 0; i < function.params.size(); ++i) {
            if (params[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
            std::memcpy(work->params.data() + function.params[i].offset, params[i],
                        function.params[i].size);
        }
    }
    return CUDA_SUCCESS;
}

CUresult make_kernel(CUfunction handle, Dim3 grid, Dim3 block, unsigned shared, void** params,
                     void** extra, KernelWork* work) {
    TTT_EMU_TRY(need_function(handle, &work->function));
    work->handle = handle;
    work->grid = grid;
    work->block = block;
    work->dynamic_shared = shared;
    return pack_params(*work->function, params, extra, work);
}

namespace api {
namespace {

CUresult launch(CUfunction handle, Dim3 grid, Dim3 block, unsigned shared, CUstream stream_handle,
                void** params, void** extra, std::vector<CUlaunchAttribute> attributes = {}) {
    Context* context = nullptr;
    TTT_EMU_TRY(need_context(&context));
    Stream* stream = nullptr;
    TTT_EMU_TRY(need_stream(stream_handle, &stream));
    KernelWork work;
    TTT_EMU_TRY(make_kernel(handle, grid, block, shared, params, extra, &work));
    if (work.function->module->context != stream->context) return CUDA_ERROR_INVALID_HANDLE;
    work.attributes = std::move(attributes);
    return submit(*stream, std::move(work));
}

// A cooperative grid must fit on the device at once.
CUresult check_cooperative(CUfunction handle, Dim3 grid, Dim3 block, unsigned shared) {
    Function* function = nullptr;
    TTT_EMU_TRY(need_function(handle, &function));
    model::Resources resources = resources_of(*function);
    resources.shared_bytes += shared;
    const model::Device& device = *Gpu::get().device;
    const uint64_t resident =
        uint64_t{model::occupancy(device, block, resources).blocks_per_sm} * device.sm_count;
    return grid.count() <= resident ? CUDA_SUCCESS : CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
}

int resident_blocks(Function& function, int block_size, size_t dynamic) {
    model::Resources resources = resources_of(function);
    resources.shared_bytes +=
        static_cast<uint32_t>(std::min<size_t>(dynamic, ~0u - resources.shared_bytes));
    const Dim3 block{static_cast<uint32_t>(block_size), 1, 1};
    return static_cast<int>(model::occupancy(*Gpu::get().device, block, resources).blocks_per_sm);
}

CUresult best_block(int* grid, int* block, CUfunction handle, CUoccupancyB2DSize dynamic_of,
                    size_t dynamic, int limit) {
    Function* function = nullptr;
    TTT_EMU_TRY(need_function(handle, &function));
    if (grid == nullptr || block == nullptr) return CUDA_ERROR_INVALID_VALUE;
    int highest = static_cast<int>(function->max_threads);
    if (limit > 0) highest = std::min(highest, limit);
    int best_threads = 0, best_size = 0, best_blocks = 0;
    for (int size = highest / 32 * 32; size >= 32; size -= 32) {
        const size_t bytes = dynamic_of != nullptr ? dynamic_of(size) : dynamic;
        const int blocks = resident_blocks(*function, size, bytes);
        if (blocks * size <= best_threads) continue;
        best_threads = blocks * size;
        best_size = size;
        best_blocks = blocks;
    }
    *block = best_size;
    *grid = best_blocks * static_cast<int>(Gpu::get().device->sm_count);
    return CUDA_SUCCESS;
}

}  // namespace

CUresult cuLaunchKernel(CUfunction function, unsigned int gx, unsigned int gy, unsigned int gz,
                        unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
                        CUstream stream, void** params, void** extra) {
    return launch(function, {gx, gy, gz}, {bx, by, bz}, shared, stream, params, extra);
}
CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** params,
                          void** extra) {
    if (config == nullptr || (config->numAttrs > 0 && config->attrs == nullptr))
        return CUDA_ERROR_INVALID_VALUE;
    std::vector<CUlaunchAttribute> attributes(config->attrs, config->attrs + config->numAttrs);
    const Dim3 grid{config->gridDimX, config->gridDimY, config->gridDimZ};
    const Dim3 block{config->blockDimX, config->blockDimY, config->blockDimZ};
    for (const CUlaunchAttribute& attribute : attributes) {
        if (attribute.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE && attribute.value.cooperative != 0) {
            TTT_EMU_TRY(check_cooperative(function, grid, block, config->sharedMemBytes));
        }
        if (attribute.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
            const auto& c = attribute.value.clusterDim;
            if (uint64_t{c.x} * c.y * c.z > 1) {
                note("clusters of more than one block are not emulated");
                return CUDA_ERROR_NOT_SUPPORTED;
            }
        }
    }
    return launch(function, grid, block, config->sharedMemBytes, config->hStream, params, extra,
                  std::move(attributes));
}
CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int gx, unsigned int gy,
                                   unsigned int gz, unsigned int bx, unsigned int by,
                                   unsigned int bz, unsigned int shared, CUstream stream,
                                   void** params) {
    TTT_EMU_TRY(check_cooperative(function, {gx, gy, gz}, {bx, by, bz}, shared));
    return launch(function, {gx, gy, gz}, {bx, by, bz}, shared, stream, params, nullptr);
}
CUresult cuLaunchHostFunc(CUstream handle, CUhostFn call, void* data) {
    Stream* stream = nullptr;
    TTT_EMU_TRY(need_stream(handle, &stream));
    if (call == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return submit(*stream, HostWork{call, data});
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction handle, int block_size,
                                                     size_t dynamic) {
    Function* function = nullptr;
    TTT_EMU_TRY(need_function(handle, &function));
    if (block_size <= 0) return CUDA_ERROR_INVALID_VALUE;
    return give(blocks, resident_blocks(*function, block_size, dynamic));
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction handle,
                                                              int block_size, size_t dynamic,
                                                              unsigned int) {
    return api::cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, handle, block_size, dynamic);
}
CUresult cuOccupancyMaxPotentialBlockSize(int* grid, int* block, CUfunction function,
                                          CUoccupancyB2DSize dynamic_of, size_t dynamic,
                                          int limit) {
    return best_block(grid, block, function, dynamic_of, dynamic, limit);
}
CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block, CUfunction function,
                                                   CUoccupancyB2DSize dynamic_of, size_t dynamic,
                                                   int limit, unsigned int) {
    return best_block(grid, block, function, dynamic_of, dynamic, limit);
}
CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, CUfunction handle, int blocks,
                                                 int block_size) {
    Function* function = nullptr;
    TTT_EMU_TRY(need_function(handle, &function));
    if (blocks <= 0 || block_size <= 0) return CUDA_ERROR_INVALID_VALUE;
    constexpr size_t kReserved = 1024;  // per block, by the system
    const size_t share = Gpu::get().device->shared_per_sm / static_cast<size_t>(blocks);
    const size_t taken = kReserved + resources_of(*function).shared_bytes;
    const size_t limit = Gpu::get().device->shared_per_block_optin;
    return give(bytes, std::min(share > taken ? share - taken : 0, limit));
}

}  // namespace api
}  // namespace ttt::emulator
