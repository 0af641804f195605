// Initialisation, errors, the device and its attributes.
#include <cstdio>
#include <cstring>

#include "driver_table/proc_address.h"
#include "emulator/api.h"
#include "emulator/device_attributes.h"
#include "emulator/entry.h"

namespace ttt::emulator::api {

CUresult cuInit(unsigned int flags) {
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    return Gpu::get().initialise();
}
CUresult cuDriverGetVersion(int* version) { return give(version, CUDA_VERSION); }

CUresult cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags) {
    return driver_table::resolve(symbol, version, flags, function, nullptr);
}
CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* status) {
    return driver_table::resolve(symbol, version, flags, function, status);
}

CUresult cuGetErrorName(CUresult error, const char** text) {
    if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *text = error_name(error);
    return *text != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuGetErrorString(CUresult error, const char** text) {
    if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *text = error_text(error);
    return *text != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGetCount(int* count) { return give(count, 1); }
CUresult cuDeviceGet(CUdevice* device, int ordinal) {
    TTT_EMU_TRY(need_device(ordinal));
    return give(device, ordinal);
}
CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
    TTT_EMU_TRY(need_device(device));
    if (name == nullptr || length <= 0) return CUDA_ERROR_INVALID_VALUE;
    const std::string_view marketing = Gpu::get().device->marketing;
    std::snprintf(name, static_cast<size_t>(length), "%.*s", static_cast<int>(marketing.size()),
                  marketing.data());
    return CUDA_SUCCESS;
}
CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
    TTT_EMU_TRY(need_device(device));
    if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::memset(uuid->bytes, 0, sizeof uuid->bytes);  // the same in every process: stores key on it
    std::snprintf(uuid->bytes, sizeof uuid->bytes, "ttt-emu-%s", Gpu::get().profile.c_str());
    return CUDA_SUCCESS;
}
CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
    TTT_EMU_TRY(need_device(device));
    return give(bytes, Gpu::get().device->memory_bytes);
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
    TTT_EMU_TRY(need_device(device));
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return device_attribute(*Gpu::get().device, attribute, value) ? CUDA_SUCCESS
                                                                  : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
    TTT_EMU_TRY(need_device(device));
    const uint32_t arch = Gpu::get().device->arch;
    TTT_EMU_TRY(give(major, arch / 10));
    return give(minor, arch % 10);
}
CUresult cuDeviceGetPCIBusId(char* id, int length, CUdevice device) {
    TTT_EMU_TRY(need_device(device));
    if (id == nullptr || length <= 0) return CUDA_ERROR_INVALID_VALUE;
    std::snprintf(id, static_cast<size_t>(length), "0000:01:00.0");
    return CUDA_SUCCESS;
}
CUresult cuDeviceGetByPCIBusId(CUdevice* device, const char* id) {
    if (device == nullptr || id == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (std::strcmp(id, "0000:01:00.0") != 0) return CUDA_ERROR_INVALID_DEVICE;
    return give(device, kOnlyDevice);
}
CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
    TTT_EMU_TRY(need_device(device));
    TTT_EMU_TRY(need_device(peer));
    return give(can, 0);
}
CUresult cuProfilerStart() { return CUDA_SUCCESS; }
CUresult cuProfilerStop() { return CUDA_SUCCESS; }

}  // namespace ttt::emulator::api

extern "C" __attribute__((visibility("default"))) const char* ttt_emulator_profile(void);

// Presence tells that the driver is this emulator; the value is the profile in use, also before
// cuInit.
const char* ttt_emulator_profile(void) {
    const ttt::emulator::CallLock lock;
    ttt::emulator::Gpu& gpu = ttt::emulator::Gpu::get();
    if (!gpu.initialised) {
        static const char* wanted = std::getenv("TTT_EMU_PROFILE");
        return wanted != nullptr && *wanted != '\0' ? wanted : "h200";
    }
    return gpu.profile.c_str();
}
