#include "device.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstring>

namespace ttt::kernel_loop {

struct Kernel::Driver {
    decltype(&::cuInit) init = nullptr;
    decltype(&::cuGetErrorString) error_string = nullptr;
    decltype(&::cuDeviceGet) device_get = nullptr;
    decltype(&::cuDeviceGetName) device_name = nullptr;
    decltype(&::cuDeviceGetAttribute) device_attribute = nullptr;
    decltype(&::cuDriverGetVersion) driver_version = nullptr;
    decltype(&::cuDevicePrimaryCtxRetain) primary_retain = nullptr;
    decltype(&::cuDevicePrimaryCtxRelease_v2) primary_release = nullptr;
    decltype(&::cuCtxSetCurrent) set_current = nullptr;
    decltype(&::cuModuleLoadData) module_load = nullptr;
    decltype(&::cuModuleLoadDataEx) module_load_ex = nullptr;
    decltype(&::cuModuleUnload) module_unload = nullptr;
    decltype(&::cuModuleGetFunction) get_function = nullptr;
    decltype(&::cuModuleGetGlobal_v2) get_global = nullptr;
    decltype(&::cuFuncSetAttribute) set_attribute = nullptr;
    decltype(&::cuMemAlloc_v2) alloc = nullptr;
    decltype(&::cuMemFree_v2) free = nullptr;
    decltype(&::cuMemcpyHtoDAsync_v2) to_device = nullptr;
    decltype(&::cuMemcpyDtoHAsync_v2) to_host = nullptr;
    decltype(&::cuMemcpyDtoDAsync_v2) on_device = nullptr;
    decltype(&::cuStreamCreate) stream_create = nullptr;
    decltype(&::cuStreamDestroy_v2) stream_destroy = nullptr;
    decltype(&::cuStreamSynchronize) stream_synchronize = nullptr;
    decltype(&::cuLaunchKernel) launch = nullptr;

    Status open();
    Status check(CUresult rc, const char* call) const;
    Status load_ptx(CUmodule* module, const std::string& ptx) const;
};

namespace {

constexpr uint32_t kSharedWithoutOptIn =
    48 << 10;  // more dynamic shared memory needs a function attribute

constexpr size_t kLogBytes = 8 << 10;

template <typename F>
bool find(void* library, const char* name, F& out) {
    out = reinterpret_cast<F>(dlsym(library, name));
    return out != nullptr;
}

}  // namespace

Status Kernel::Driver::open() {
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == nullptr)
        return make_error(Code::kNotFound, fmt::format("no CUDA driver: {}", dlerror()));
    const bool all =
        find(library, "cuInit", init) && find(library, "cuGetErrorString", error_string) &&
        find(library, "cuDeviceGet", device_get) && find(library, "cuDeviceGetName", device_name) &&
        find(library, "cuDeviceGetAttribute", device_attribute) &&
        find(library, "cuDriverGetVersion", driver_version) &&
        find(library, "cuDevicePrimaryCtxRetain", primary_retain) &&
        find(library, "cuDevicePrimaryCtxRelease_v2", primary_release) &&
        find(library, "cuCtxSetCurrent", set_current) &&
        find(library, "cuModuleLoadData", module_load) &&
        find(library, "cuModuleLoadDataEx", module_load_ex) &&
        find(library, "cuModuleUnload", module_unload) &&
        find(library, "cuModuleGetFunction", get_function) &&
        find(library, "cuModuleGetGlobal_v2", get_global) &&
        find(library, "cuFuncSetAttribute", set_attribute) &&
        find(library, "cuMemAlloc_v2", alloc) && find(library, "cuMemFree_v2", free) &&
        find(library, "cuMemcpyHtoDAsync_v2", to_device) &&
        find(library, "cuMemcpyDtoHAsync_v2", to_host) &&
        find(library, "cuMemcpyDtoDAsync_v2", on_device) &&
        find(library, "cuStreamCreate", stream_create) &&
        find(library, "cuStreamDestroy_v2", stream_destroy) &&
        find(library, "cuStreamSynchronize", stream_synchronize) &&
        find(library, "cuLaunchKernel", launch);
    if (!all) return make_error(Code::kUnsupported, "libcuda.so.1 lacks functions of CUDA 12");
    return ok_status();
}

Status Kernel::Driver::check(CUresult rc, const char* call) const {
    if (rc == CUDA_SUCCESS) return ok_status();
    const char* text = nullptr;
    error_string(rc, &text);
    const bool too_old =
        rc == CUDA_ERROR_UNSUPPORTED_PTX_VERSION || rc == CUDA_ERROR_NO_BINARY_FOR_GPU;
    return make_error(too_old ? Code::kUnsupported : Code::kDriver,
                      fmt::format("{}: {} ({})", call, text != nullptr ? text : "unknown error",
                                  static_cast<int>(rc)));
}

Status Kernel::Driver::load_ptx(CUmodule* module, const std::string& ptx) const {
    const CUresult rc = module_load(module, ptx.c_str());
    if (rc == CUDA_SUCCESS) return ok_status();
    // A second time only to learn why: programs that load without options are what is tuned.
    std::string log(kLogBytes, '\0');
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void* values[] = {log.data(), reinterpret_cast<void*>(uintptr_t{kLogBytes - 1})};
    static_cast<void>(module_load_ex(module, ptx.c_str(), 2, options, values));
    Error error = check(rc, "cuModuleLoadData").error();
    log.resize(log.find('\0'));
    if (!log.empty()) error.message += ": " + log;
    return error;
}

Kernel::Kernel() : cu_(std::make_unique<Driver>()) {}

Kernel::~Kernel() {
    if (context_ == nullptr) return;
    for (CUdeviceptr p : buffers_) cu_->free(p);
    for (CUdeviceptr p : copies_)
        if (p != 0) cu_->free(p);
    if (module_ != nullptr) cu_->module_unload(module_);
    if (stream_ != nullptr) cu_->stream_destroy(stream_);
    cu_->primary_release(device_);
}

Result<Device> Kernel::device() {
    Driver cu;
    TTT_CHECK_OK(cu.open());
    TTT_CHECK_OK(cu.check(cu.init(0), "cuInit"));
    CUdevice device = 0;
    TTT_CHECK_OK(cu.check(cu.device_get(&device, 0), "cuDeviceGet"));
    char name[256] = "";
    TTT_CHECK_OK(cu.check(cu.device_name(name, sizeof name, device), "cuDeviceGetName"));
    int major = 0, minor = 0, version = 0;
    TTT_CHECK_OK(
        cu.check(cu.device_attribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device),
                 "cuDeviceGetAttribute"));
    TTT_CHECK_OK(
        cu.check(cu.device_attribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device),
                 "cuDeviceGetAttribute"));
    TTT_CHECK_OK(cu.check(cu.driver_version(&version), "cuDriverGetVersion"));
    return Device{name, static_cast<uint32_t>(major * 10 + minor), static_cast<uint32_t>(version)};
}

Result<std::unique_ptr<Kernel>> Kernel::create(const std::string& ptx,
                                               const spec::LaunchSpec& launch) {
    std::unique_ptr<Kernel> k(new Kernel);
    TTT_CHECK_OK(k->start(ptx, launch));
    return k;
}

Status Kernel::start(const std::string& ptx, const spec::LaunchSpec& launch) {
    launch_ = launch;
    TTT_CHECK_OK(cu_->open());
    TTT_CHECK_OK(cu_->check(cu_->init(0), "cuInit"));
    TTT_CHECK_OK(cu_->check(cu_->device_get(&device_, 0), "cuDeviceGet"));
    TTT_CHECK_OK(cu_->check(cu_->primary_retain(&context_, device_), "cuDevicePrimaryCtxRetain"));
    TTT_CHECK_OK(cu_->check(cu_->set_current(context_), "cuCtxSetCurrent"));
    TTT_CHECK_OK(
        cu_->check(cu_->stream_create(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate"));
    return load(ptx, launch);
}

Status Kernel::load(const std::string& ptx, const spec::LaunchSpec& launch) {
    TTT_TRY(const ptx::Module module, ptx::parse(ptx));
    TTT_CHECK_OK(cu_->load_ptx(&module_, ptx));
    TTT_CHECK_OK(cu_->check(cu_->get_function(&function_, module_, launch.entry.c_str()),
                            "cuModuleGetFunction"));
    if (launch.shared > kSharedWithoutOptIn)
        TTT_CHECK_OK(cu_->check(
            cu_->set_attribute(function_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                               static_cast<int>(launch.shared)),
            "cuFuncSetAttribute"));
    for (const auto& a : launch.args) {
        if (a.kind != spec::Argument::Kind::kBuffer) continue;
        TTT_TRY(auto data, spec::materialise(a));
        CUdeviceptr p = 0;
        TTT_CHECK_OK(cu_->check(cu_->alloc(&p, std::max<size_t>(data.size(), 1)), "cuMemAlloc"));
        buffers_.push_back(p);
        initial_.push_back(std::move(data));
    }
    TTT_CHECK_OK(set_variables(launch));
    return pack(module, launch);
}

Status Kernel::set_variables(const spec::LaunchSpec& launch) {
    for (const auto& [name, contents] : launch.variables) {
        TTT_TRY(const auto bytes, spec::materialise(contents));
        CUdeviceptr at = 0;
        size_t size = 0;
        TTT_CHECK_OK(cu_->check(cu_->get_global(&at, &size, module_, name.c_str()),
                                ("cuModuleGetGlobal of " + name).c_str()));
        if (bytes.size() > size)
            return make_error(
                Code::kInvalidArgument,
                fmt::format("launch spec: variables.{}: {} bytes, the module's has {}", name,
                            bytes.size(), size));
        TTT_CHECK_OK(cu_->check(cu_->to_device(at, bytes.data(), bytes.size(), stream_),
                                "cuMemcpyHtoDAsync"));
        TTT_CHECK_OK(synchronize());
    }
    return ok_status();
}

Status Kernel::pack(const ptx::Module& module, const spec::LaunchSpec& launch) {
    const ptx::Function* entry = module.find(launch.entry);
    if (entry == nullptr)
        return make_error(Code::kNotFound, "no entry '" + launch.entry + "' in the file");
    const std::vector<uint64_t> addresses(buffers_.begin(), buffers_.end());
    TTT_TRY(params_, spec::pack_params(module, *entry, launch, addresses));
    for (const auto& p : ptx::param_layout(module, *entry))
        pointers_.push_back(params_.data() + p.offset);
    return ok_status();
}

Status Kernel::refill() {
    for (size_t i = 0; i < buffers_.size(); ++i)
        if (!initial_[i].empty())
            TTT_CHECK_OK(cu_->check(
                cu_->to_device(buffers_[i], initial_[i].data(), initial_[i].size(), stream_),
                "cuMemcpyHtoDAsync"));
    return synchronize();
}

Status Kernel::keep_initial(const std::vector<bool>& changed) {
    copies_.assign(buffers_.size(), 0);
    for (size_t i = 0; i < buffers_.size(); ++i) {
        if (!changed[i]) continue;
        TTT_CHECK_OK(cu_->check(cu_->alloc(&copies_[i], initial_[i].size()), "cuMemAlloc"));
        TTT_CHECK_OK(
            cu_->check(cu_->on_device(copies_[i], buffers_[i], initial_[i].size(), stream_),
                       "cuMemcpyDtoDAsync"));
    }
    return synchronize();
}

Status Kernel::restore(const std::vector<bool>& changed) {
    for (size_t i = 0; i < buffers_.size(); ++i)
        if (changed[i] && copies_[i] != 0)
            TTT_CHECK_OK(
                cu_->check(cu_->on_device(buffers_[i], copies_[i], initial_[i].size(), stream_),
                           "cuMemcpyDtoDAsync"));
    return ok_status();
}

Status Kernel::launch() {
    const Dim3 &g = launch_.grid, &b = launch_.block;
    return cu_->check(cu_->launch(function_, g.x, g.y, g.z, b.x, b.y, b.z, launch_.shared, stream_,
                                  pointers_.data(), nullptr),
                      "cuLaunchKernel");
}

Status Kernel::synchronize() {
    return cu_->check(cu_->stream_synchronize(stream_), "cuStreamSynchronize");
}

Result<std::vector<std::vector<std::byte>>> Kernel::outputs() {
    std::vector<std::vector<std::byte>> out;
    for (size_t i = 0; i < buffers_.size(); ++i) {
        out.emplace_back(initial_[i].size());
        if (!out.back().empty())
            TTT_CHECK_OK(
                cu_->check(cu_->to_host(out.back().data(), buffers_[i], out.back().size(), stream_),
                           "cuMemcpyDtoHAsync"));
    }
    TTT_CHECK_OK(synchronize());
    return out;
}

}  // namespace ttt::kernel_loop
