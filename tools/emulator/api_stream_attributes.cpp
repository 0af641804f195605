// Attributes of streams (kept, without effect on simulated time), memory values written by streams.
#include <cstring>

#include "emulator/api.h"

namespace ttt::emulator::api {
namespace {

CUresult write_value(CUstream handle, CUdeviceptr address, uint64_t value, size_t bytes) {
    Stream* stream = nullptr;
    TTT_EMU_TRY(need_stream(handle, &stream));
    if (address % bytes != 0 || Gpu::get().memory->find(address) == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    if (stream->capture != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    const bool done = Gpu::get().memory->copy(address, reinterpret_cast<uint64_t>(&value), bytes);
    return done ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

CUresult cuStreamSetAttribute(CUstream handle, CUstreamAttrID id, const CUstreamAttrValue* value) {
    Stream* stream = nullptr;
    TTT_EMU_TRY(need_stream(handle, &stream));
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (id == CU_LAUNCH_ATTRIBUTE_PRIORITY) stream->priority = value->priority;
    stream->attributes[id] = *value;
    return CUDA_SUCCESS;
}
CUresult cuStreamGetAttribute(CUstream handle, CUstreamAttrID id, CUstreamAttrValue* value) {
    Stream* stream = nullptr;
    TTT_EMU_TRY(need_stream(handle, &stream));
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto set = stream->attributes.find(id);
    if (set != stream->attributes.end()) return give(value, set->second);
    std::memset(value, 0, sizeof *value);
    if (id == CU_LAUNCH_ATTRIBUTE_PRIORITY) value->priority = stream->priority;
    return CUDA_SUCCESS;
}
CUresult cuStreamCopyAttributes(CUstream to_handle, CUstream from_handle) {
    Stream *to = nullptr, *from = nullptr;
    TTT_EMU_TRY(need_stream(to_handle, &to));
    TTT_EMU_TRY(need_stream(from_handle, &from));
    to->attributes = from->attributes;
    return CUDA_SUCCESS;
}
CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                 unsigned int) {
    return write_value(stream, address, value, 4);
}
CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value,
                                 unsigned int) {
    return write_value(stream, address, value, 8);
}

}  // namespace ttt::emulator::api
