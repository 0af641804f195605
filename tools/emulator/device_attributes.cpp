#include "emulator/device_attributes.h"

namespace ttt::emulator {
namespace {

struct Text {
    CUresult code;
    const char* name;
    const char* text;
};
#define TTT_ERROR(code, text) \
    { code, #code, text }
const Text kTexts[] = {
    TTT_ERROR(CUDA_SUCCESS, "no error"),
    TTT_ERROR(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
    TTT_ERROR(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
    TTT_ERROR(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
    TTT_ERROR(CUDA_ERROR_DEINITIALIZED, "driver shutting down"),
    TTT_ERROR(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
    TTT_ERROR(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
    TTT_ERROR(CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid"),
    TTT_ERROR(CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
    TTT_ERROR(CUDA_ERROR_NO_BINARY_FOR_GPU,
              "no kernel image is available for execution on the device"),
    TTT_ERROR(CUDA_ERROR_INVALID_PTX, "a PTX JIT compilation failed"),
    TTT_ERROR(CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
              "the provided PTX was compiled with an unsupported toolchain"),
    TTT_ERROR(CUDA_ERROR_FILE_NOT_FOUND, "file not found"),
    TTT_ERROR(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
    TTT_ERROR(CUDA_ERROR_NOT_FOUND, "named symbol not found"),
    TTT_ERROR(CUDA_ERROR_NOT_READY, "device not ready"),
    TTT_ERROR(CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
    TTT_ERROR(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch"),
    TTT_ERROR(CUDA_ERROR_LAUNCH_TIMEOUT, "the launch timed out and was terminated"),
    TTT_ERROR(CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, "primary context is active"),
    TTT_ERROR(CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed"),
    TTT_ERROR(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
              "part or all of the requested memory range is already mapped"),
    TTT_ERROR(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED,
              "pointer does not correspond to a registered memory region"),
    TTT_ERROR(CUDA_ERROR_ILLEGAL_INSTRUCTION, "an illegal instruction was encountered"),
    TTT_ERROR(CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned address"),
    TTT_ERROR(CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"),
    TTT_ERROR(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "too many blocks in cooperative launch"),
    TTT_ERROR(CUDA_ERROR_NOT_PERMITTED, "operation not permitted"),
    TTT_ERROR(CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
    TTT_ERROR(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
              "operation not permitted when stream is capturing"),
    TTT_ERROR(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
              "operation failed due to a previous error during capture"),
    TTT_ERROR(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "capture was not initiated in this stream"),
    TTT_ERROR(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "capturing stream has unjoined work"),
    TTT_ERROR(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
              "operation would make the legacy stream depend on a capturing blocking stream"),
    TTT_ERROR(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD,
              "attempt to terminate a thread-local capture sequence from another thread"),
    TTT_ERROR(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE,
              "the graph update was not performed because it included changes which violated "
              "constraints specific to instantiated graph update"),
    TTT_ERROR(CUDA_ERROR_UNKNOWN, "unknown error"),
};
#undef TTT_ERROR

const Text* find(CUresult code) {
    for (const Text& text : kTexts) {
        if (text.code == code) return &text;
    }
    return nullptr;
}

// What every supported GPU of the last generations answers alike.
bool common_attribute(CUdevice_attribute attribute, int* value) {
    struct Row {
        CUdevice_attribute attribute;
        int value;
    };
    static constexpr Row kRows[] = {
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 0x7FFFFFFF},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
        {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536},
        {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
        {CU_DEVICE_ATTRIBUTE_MAX_PITCH, 0x7FFFFFFF},
        {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
        {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512},
        {CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, 32},
        {CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT, 512},
        {CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 1},
        {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
        {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
        {CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 1},
        {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
        {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
        {CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1024},
        {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES, 1},
        {CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS, 1},
        {CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT, 1},
        {CU_DEVICE_ATTRIBUTE_NUMA_ID, -1},
        {CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, 0},
    };
    for (const Row& row : kRows) {
        if (row.attribute != attribute) continue;
        *value = row.value;
        return true;
    }
    return false;
}

int integer(uint64_t value) { return static_cast<int>(value); }

}  // namespace

bool device_attribute(const model::Device& device, CUdevice_attribute attribute, int* value) {
    if (attribute < 1 || attribute >= CU_DEVICE_ATTRIBUTE_MAX) return false;
    if (common_attribute(attribute, value)) return true;
    switch (attribute) {
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
            *value = integer(device.shared_per_block);
            break;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
            *value = integer(device.shared_per_block_optin);
            break;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
            *value = integer(device.shared_per_sm);
            break;
        case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
            *value = integer(device.registers_per_sm);
            break;
        case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
            *value = integer(device.max_threads_per_sm);
            break;
        case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
            *value = integer(device.max_blocks_per_sm);
            break;
        case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
            *value = integer(device.sm_count);
            break;
        case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
            *value = integer(uint64_t{device.clock_mhz} * 1000);
            break;
        case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
            *value = device.integrated ? 3200000 : 3201000;
            break;
        case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
            *value = device.integrated ? 256 : 6144;
            break;
        case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
            *value = integer(device.l2_bytes);
            break;
        case CU_DEVICE_ATTRIBUTE_INTEGRATED:
            *value = device.integrated ? 1 : 0;
            break;
        case CU_DEVICE_ATTRIBUTE_ECC_ENABLED:
            *value = device.integrated ? 0 : 1;
            break;
        case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
            *value = device.integrated ? 2 : 3;
            break;
        case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
            *value = device.integrated ? 0 : 1;
            break;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
            *value = integer(device.arch / 10);
            break;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
            *value = integer(device.arch % 10);
            break;
        case CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO:
            *value = device.arch == 90 ? 2 : 32;
            break;
        default:
            *value = 0;  // a feature that is not there
    }
    return true;
}

const char* error_name(CUresult error) {
    const Text* text = find(error);
    return text != nullptr ? text->name : nullptr;
}

const char* error_text(CUresult error) {
    const Text* text = find(error);
    return text != nullptr ? text->text : nullptr;
}

}  // namespace ttt::emulator
