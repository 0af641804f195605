#include "sandbox/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>

namespace ttt::sandbox {
namespace {

std::string uuid_text(const CUuuid& u) {
    std::string s = "GPU-";
    for (size_t i = 0; i < 16; ++i) {
        if (i == 4 || i == 6 || i == 8 || i == 10) s += '-';
        s += fmt::format("{:02x}", static_cast<unsigned char>(u.bytes[i]));
    }
    return s;
}

Result<Device> describe(const Driver& d, int ordinal) {
    Device device;
    TTT_CHECK_OK(d.check(d.cuDeviceGet(&device.handle, ordinal), "cuDeviceGet"));
    CUuuid uuid{};
    TTT_CHECK_OK(d.check(d.cuDeviceGetUuid_v2(&uuid, device.handle), "cuDeviceGetUuid"));
    device.uuid = uuid_text(uuid);
    std::array<char, 256> name{};
    TTT_CHECK_OK(d.check(d.cuDeviceGetName(name.data(), 255, device.handle), "cuDeviceGetName"));
    device.name = name.data();
    int major = 0, minor = 0;
    TTT_CHECK_OK(d.check(
        d.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device.handle),
        "cuDeviceGetAttribute"));
    TTT_CHECK_OK(d.check(
        d.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device.handle),
        "cuDeviceGetAttribute"));
    device.arch = static_cast<uint32_t>(major * 10 + minor);
    return device;
}

}  // namespace

Result<Driver> Driver::load() {
    void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        const char* why = ::dlerror();
        return make_error(Code::kNotFound, why != nullptr ? why : "libcuda.so.1 is missing");
    }
    Driver d;
#define TTT_SANDBOX_USES(name)                                                       \
    d.name = reinterpret_cast<decltype(d.name)>(::dlsym(library, TTT_STRING(name))); \
    if (d.name == nullptr) return make_error(Code::kNotFound, "the driver lacks " TTT_STRING(name));
#define TTT_STRING_(x) #x
#define TTT_STRING(x) TTT_STRING_(x)
#include "sandbox/driver_uses.def"
#undef TTT_SANDBOX_USES
    d.elapsed = reinterpret_cast<decltype(d.elapsed)>(::dlsym(library, "cuEventElapsedTime"));
    if (d.elapsed == nullptr)
        return make_error(Code::kNotFound, "the driver lacks cuEventElapsedTime");
    d.emulated = ::dlsym(library, "ttt_emulator_profile") != nullptr;
    TTT_CHECK_OK(d.check(d.cuInit(0), "cuInit"));
    TTT_CHECK_OK(d.check(d.cuDriverGetVersion(&d.version), "cuDriverGetVersion"));
    return d;
}

Status Driver::check(CUresult r, const char* what) const {
    if (r == CUDA_SUCCESS) return ok_status();
    const char* name = nullptr;
    if (cuGetErrorName(r, &name) != CUDA_SUCCESS || name == nullptr) name = "unknown error";
    return make_error(Code::kDriver, fmt::format("{}: {} ({})", what, name, static_cast<int>(r)));
}

Result<Device> open_device(const Driver& d, std::string_view uuid) {
    int count = 0;
    TTT_CHECK_OK(d.check(d.cuDeviceGetCount(&count), "cuDeviceGetCount"));
    for (int i = 0; i < count; ++i) {
        TTT_TRY(Device device, describe(d, i));
        if (!uuid.empty() && device.uuid != uuid) continue;
        CUcontext context = nullptr;
        TTT_CHECK_OK(d.check(d.cuDevicePrimaryCtxRetain(&context, device.handle),
                             "cuDevicePrimaryCtxRetain"));
        TTT_CHECK_OK(d.check(d.cuCtxSetCurrent(context), "cuCtxSetCurrent"));
        return device;
    }
    return make_error(Code::kNotFound, fmt::format("no device {} among {}", uuid, count));
}

}  // namespace ttt::sandbox
