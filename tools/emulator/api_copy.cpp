// Copies and sets, one-, two- and three-dimensional, blocking and on streams.
#include <algorithm>
#include <cstring>

#include "emulator/api.h"

namespace ttt::emulator {
namespace {

uint64_t bits(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

bool side(CUmemorytype type, const void* host, CUdeviceptr device, uint64_t* address) {
    switch (type) {
        case CU_MEMORYTYPE_HOST:
            *address = bits(host);
            return true;
        case CU_MEMORYTYPE_DEVICE:
        case CU_MEMORYTYPE_UNIFIED:
            *address = device;
            return true;
        default:
            return false;  // arrays are not emulated
    }
}

CUDA_MEMCPY3D widen(const CUDA_MEMCPY2D& in) {
    CUDA_MEMCPY3D out{};
    out.srcXInBytes = in.srcXInBytes;
    out.srcY = in.srcY;
    out.srcMemoryType = in.srcMemoryType;
    out.srcHost = in.srcHost;
    out.srcDevice = in.srcDevice;
    out.srcPitch = in.srcPitch;
    out.dstXInBytes = in.dstXInBytes;
    out.dstY = in.dstY;
    out.dstMemoryType = in.dstMemoryType;
    out.dstHost = in.dstHost;
    out.dstDevice = in.dstDevice;
    out.dstPitch = in.dstPitch;
    out.WidthInBytes = in.WidthInBytes;
    out.Height = in.Height;
    out.Depth = 1;
    return out;
}

CUresult on_stream(CUstream handle, Work work) {
    Stream* stream = nullptr;
    TTT_EMU_TRY(need_stream(handle, &stream));
    return submit(*stream, std::move(work));
}

CUresult copy_flat(uint64_t to, uint64_t from, uint64_t bytes, CUstream* stream) {
    if (bytes == 0) return CUDA_SUCCESS;
    CopyWork copy = flat_copy(to, from, bytes);
    return stream != nullptr ? on_stream(*stream, copy) : run_blocking(copy);
}

CUresult copy_3d(const CUDA_MEMCPY3D& params, CUstream* stream) {
    CopyWork copy;
    TTT_EMU_TRY(make_copy(params, &copy));
    return stream != nullptr ? on_stream(*stream, copy) : run_blocking(copy);
}

CUresult fill(CUdeviceptr to, size_t pitch, uint32_t value, unsigned value_bytes, size_t width,
              size_t height, CUstream* stream) {
    FillWork work;
    work.to = to;
    work.value = value;
    work.value_bytes = value_bytes;
    work.width = width;
    work.height = height;
    work.pitch = pitch;
    return stream != nullptr ? on_stream(*stream, work) : run_blocking(work);
}

// A device address is required where the name says so: programs' mistakes must show as on hardware.
CUresult need_device_range(uint64_t address, size_t bytes) {
    return bytes == 0 || Gpu::get().memory->is_device(address) ? CUDA_SUCCESS
                                                               : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

CopyWork flat_copy(uint64_t to, uint64_t from, uint64_t bytes) {
    CopyWork copy;
    copy.to = to;
    copy.from = from;
    copy.width = bytes;
    CUDA_MEMCPY3D& params = copy.params;
    params.srcMemoryType = params.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
    params.srcDevice = from;
    params.dstDevice = to;
    params.WidthInBytes = bytes;
    params.Height = params.Depth = 1;
    params.srcPitch = params.dstPitch = bytes;
    params.srcHeight = params.dstHeight = 1;
    return copy;
}

CUresult make_copy(const CUDA_MEMCPY3D& p, CopyWork* copy) {
    uint64_t from = 0, to = 0;
    if (!side(p.srcMemoryType, p.srcHost, p.srcDevice, &from) ||
        !side(p.dstMemoryType, p.dstHost, p.dstDevice, &to)) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    copy->params = p;
    copy->width = p.WidthInBytes;
    copy->height = p.Height;
    copy->depth = p.Depth;
    copy->from_pitch = p.srcPitch != 0 ? p.srcPitch : p.srcXInBytes + p.WidthInBytes;
    copy->to_pitch = p.dstPitch != 0 ? p.dstPitch : p.dstXInBytes + p.WidthInBytes;
    if (p.Height > 1 && (copy->from_pitch < p.WidthInBytes || copy->to_pitch < p.WidthInBytes)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    copy->from_slice = copy->from_pitch * (p.srcHeight != 0 ? p.srcHeight : p.Height);
    copy->to_slice = copy->to_pitch * (p.dstHeight != 0 ? p.dstHeight : p.Height);
    copy->from = from + p.srcXInBytes + p.srcY * copy->from_pitch + p.srcZ * copy->from_slice;
    copy->to = to + p.dstXInBytes + p.dstY * copy->to_pitch + p.dstZ * copy->to_slice;
    return CUDA_SUCCESS;
}

namespace api {

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
    return copy_flat(to, from, bytes, nullptr);
}
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    return copy_flat(to, from, bytes, &stream);
}
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes) {
    TTT_EMU_TRY(need_device_range(to, bytes));
    return copy_flat(to, bits(from), bytes, nullptr);
}
CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes) {
    TTT_EMU_TRY(need_device_range(from, bytes));
    return copy_flat(bits(to), from, bytes, nullptr);
}
CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
    TTT_EMU_TRY(need_device_range(to, bytes));
    TTT_EMU_TRY(need_device_range(from, bytes));
    return copy_flat(to, from, bytes, nullptr);
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
    TTT_EMU_TRY(need_device_range(to, bytes));
    return copy_flat(to, bits(from), bytes, &stream);
}
CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
    TTT_EMU_TRY(need_device_range(from, bytes));
    return copy_flat(bits(to), from, bytes, &stream);
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    TTT_EMU_TRY(need_device_range(to, bytes));
    TTT_EMU_TRY(need_device_range(from, bytes));
    return copy_flat(to, from, bytes, &stream);
}
CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t bytes) {
    return copy_flat(to, from, bytes, nullptr);
}
CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t bytes,
                           CUstream stream) {
    return copy_flat(to, from, bytes, &stream);
}
CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* params) {
    return params != nullptr ? copy_3d(widen(*params), nullptr) : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* params) {
    return params != nullptr ? copy_3d(widen(*params), nullptr) : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* params, CUstream stream) {
    return params != nullptr ? copy_3d(widen(*params), &stream) : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D* params) {
    return params != nullptr ? copy_3d(*params, nullptr) : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* params, CUstream stream) {
    return params != nullptr ? copy_3d(*params, &stream) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t n) {
    return fill(to, 0, value, 1, n, 1, nullptr);
}
CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t n) {
    return fill(to, 0, value, 2, n, 1, nullptr);
}
CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned int value, size_t n) {
    return fill(to, 0, value, 4, n, 1, nullptr);
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t n, CUstream stream) {
    return fill(to, 0, value, 1, n, 1, &stream);
}
CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t n, CUstream stream) {
    return fill(to, 0, value, 2, n, 1, &stream);
}
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t n, CUstream stream) {
    return fill(to, 0, value, 4, n, 1, &stream);
}
CUresult cuMemsetD2D8_v2(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                         size_t height) {
    return fill(to, pitch, value, 1, width, height, nullptr);
}
CUresult cuMemsetD2D16_v2(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                          size_t height) {
    return fill(to, pitch, value, 2, width, height, nullptr);
}
CUresult cuMemsetD2D32_v2(CUdeviceptr to, size_t pitch, unsigned int value, size_t width,
                          size_t height) {
    return fill(to, pitch, value, 4, width, height, nullptr);
}
CUresult cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                           size_t height, CUstream stream) {
    return fill(to, pitch, value, 1, width, height, &stream);
}
CUresult cuMemsetD2D16Async(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                            size_t height, CUstream stream) {
    return fill(to, pitch, value, 2, width, height, &stream);
}
CUresult cuMemsetD2D32Async(CUdeviceptr to, size_t pitch, unsigned int value, size_t width,
                            size_t height, CUstream stream) {
    return fill(to, pitch, value, 4, width, height, &stream);
}

}  // namespace api
}  // namespace ttt::emulator
