// Modules, libraries, kernels, functions and their attributes, the linker.
#include <algorithm>
#include <fstream>
#include <iterator>

#include "emulator/api.h"

namespace ttt::emulator::api {
namespace {

using ModuleHandles = Handles<Module, CUmodule>;
using FunctionHandles = Handles<Function, CUfunction>;
using KernelHandles = Handles<Kernel, CUkernel>;

bool read_file(const char* path, std::string* bytes) {
    if (path == nullptr) return false;
    std::ifstream file(path, std::ios::binary);
    if (!file) return false;
    bytes->assign(std::istreambuf_iterator<char>(file), {});
    return true;
}

CUresult load(CUmodule* out, const void* image, const JitOptions& jit) {
    Context* context = nullptr;
    TTT_EMU_TRY(need_context(&context));
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    TTT_EMU_TRY(refuse_in_capture());
    std::vector<Source> sources;
    TTT_EMU_TRY(read_image(image, &sources, jit));
    Module* module = nullptr;
    TTT_EMU_TRY(load_module(context, sources, jit.max_registers, jit, &module));
    return give(out, ModuleHandles::handle_of(module));
}

CUresult find_module(CUmodule handle, Module** module) {
    *module = Gpu::get().modules.find(handle);
    return *module != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
CUresult find_library(CUlibrary handle, Library** library) {
    *library = Gpu::get().libraries.find(handle);
    return *library != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
CUresult find_kernel(CUkernel handle, Kernel** kernel) {
    *kernel = Gpu::get().kernels.find(handle);
    return *kernel != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult load_library(CUlibrary* out, const void* image, const JitOptions& jit) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto made = std::make_unique<Library>();
    TTT_EMU_TRY(read_image(image, &made->sources, jit));
    made->max_registers = jit.max_registers;
    for (const Source& source : made->sources) {
        ptx::Module code;
        TTT_EMU_TRY(parse_ptx(source.text, jit, &code));
        for (const auto& function : code.functions) {
            if (function.is_entry) made->entries.emplace_back(function.name);
        }
    }
    return give(out, Gpu::get().libraries.add(std::move(made)));
}

// Module of a library in the current context.
CUresult current_module(Library& library, Module** module) {
    Context* context = nullptr;
    TTT_EMU_TRY(need_context(&context));
    return module_of(library, context, module);
}

CUresult kernel_of(Library& library, const std::string& name, CUkernel* out) {
    if (const auto known = library.kernels.find(name); known != library.kernels.end()) {
        return give(out, KernelHandles::handle_of(known->second));
    }
    auto made = std::make_unique<Kernel>();
    made->library = &library;
    made->name = name;
    library.kernels[name] = made.get();
    return give(out, Gpu::get().kernels.add(std::move(made)));
}

CUresult param_info(const Function& function, size_t index, size_t* offset, size_t* size) {
    if (offset == nullptr || index >= function.params.size()) return CUDA_ERROR_INVALID_VALUE;
    *offset = function.params[index].offset;
    give_if(size, function.params[index].size);
    return CUDA_SUCCESS;
}

}  // namespace

CUresult cuModuleLoadData(CUmodule* out, const void* image) { return load(out, image, {}); }
CUresult cuModuleLoadFatBinary(CUmodule* out, const void* image) { return load(out, image, {}); }
CUresult cuModuleLoadDataEx(CUmodule* out, const void* image, unsigned int count,
                            CUjit_option* options, void** values) {
    return load(out, image, read_jit_options(count, options, values));
}
CUresult cuModuleLoad(CUmodule* out, const char* path) {
    std::string bytes;
    if (!read_file(path, &bytes)) return CUDA_ERROR_FILE_NOT_FOUND;
    return load(out, bytes.c_str(), {});
}
CUresult cuModuleUnload(CUmodule handle) {
    Module* module = nullptr;
    TTT_EMU_TRY(find_module(handle, &module));
    if (module->library != nullptr) return CUDA_ERROR_NOT_PERMITTED;
    unload_module(module);
    return CUDA_SUCCESS;
}
CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
    return give(mode, CU_MODULE_LAZY_LOADING);
}
CUresult cuModuleGetFunction(CUfunction* out, CUmodule handle, const char* name) {
    Module* module = nullptr;
    TTT_EMU_TRY(find_module(handle, &module));
    if (out == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Function* function = nullptr;
    TTT_EMU_TRY(get_function(*module, name, &function));
    return give(out, FunctionHandles::handle_of(function));
}
CUresult cuModuleGetFunctionCount(unsigned int* count, CUmodule handle) {
    Module* module = nullptr;
    TTT_EMU_TRY(find_module(handle, &module));
    return give(count, entry_names(*module).size());
}
CUresult cuModuleEnumerateFunctions(CUfunction* out, unsigned int count, CUmodule handle) {
    Module* module = nullptr;
    TTT_EMU_TRY(find_module(handle, &module));
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto names = entry_names(*module);
    for (size_t i = 0; i < std::min<size_t>(count, names.size()); ++i) {
        Function* function = nullptr;
        TTT_EMU_TRY(get_function(*module, names[i], &function));
        out[i] = FunctionHandles::handle_of(function);
    }
    return CUDA_SUCCESS;
}
CUresult cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* bytes, CUmodule handle,
                              const char* name) {
    Module* module = nullptr;
    TTT_EMU_TRY(find_module(handle, &module));
    if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return get_global(*module, name, address, bytes);
}

CUresult cuLibraryLoadData(CUlibrary* out, const void* image, CUjit_option* options, void** values,
                           unsigned int count, CUlibraryOption*, void**, unsigned int) {
    return load_library(out, image, read_jit_options(count, options, values));
}
CUresult cuLibraryLoadFromFile(CUlibrary* out, const char* path, CUjit_option* options,
                               void** values, unsigned int count, CUlibraryOption*, void**,
                               unsigned int) {
    std::string bytes;
    if (!read_file(path, &bytes)) return CUDA_ERROR_FILE_NOT_FOUND;
    return load_library(out, bytes.c_str(), read_jit_options(count, options, values));
}
CUresult cuLibraryUnload(CUlibrary handle) {
    Library* library = nullptr;
    TTT_EMU_TRY(find_library(handle, &library));
    Gpu& gpu = Gpu::get();
    const auto modules = library->modules;  // unloading edits the original
    for (const auto& [context, module] : modules) unload_module(module);
    gpu.kernels.remove_if([&](const Kernel& kernel) { return kernel.library == library; });
    gpu.libraries.remove(handle);
    return CUDA_SUCCESS;
}
CUresult cuLibraryGetKernel(CUkernel* out, CUlibrary handle, const char* name) {
    Library* library = nullptr;
    TTT_EMU_TRY(find_library(handle, &library));
    if (out == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto known = library->kernels.find(name);
    if (known == library->kernels.end()) {
        const auto& names = library->entries;
        if (std::find(names.begin(), names.end(), name) == names.end()) return CUDA_ERROR_NOT_FOUND;
    }
    return kernel_of(*library, name, out);
}
CUresult cuLibraryGetKernelCount(unsigned int* count, CUlibrary handle) {
    Library* library = nullptr;
    TTT_EMU_TRY(find_library(handle, &library));
    return give(count, library->entries.size());
}
CUresult cuLibraryEnumerateKernels(CUkernel* out, unsigned int count, CUlibrary handle) {
    Library* library = nullptr;
    TTT_EMU_TRY(find_library(handle, &library));
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto& names = library->entries;
    for (size_t i = 0; i < std::min<size_t>(count, names.size()); ++i) {
        TTT_EMU_TRY(kernel_of(*library, names[i], &out[i]));
    }
    return CUDA_SUCCESS;
}
CUresult cuLibraryGetModule(CUmodule* out, CUlibrary handle) {
    Library* library = nullptr;
    Module* module = nullptr;
    TTT_EMU_TRY(find_library(handle, &library));
    TTT_EMU_TRY(current_module(*library, &module));
    return give(out, ModuleHandles::handle_of(module));
}
CUresult cuLibraryGetGlobal(CUdeviceptr* address, size_t* bytes, CUlibrary handle,
                            const char* name) {
    Library* library = nullptr;
    Module* module = nullptr;
    TTT_EMU_TRY(find_library(handle, &library));
    if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    TTT_EMU_TRY(current_module(*library, &module));
    return get_global(*module, name, address, bytes);
}
CUresult cuKernelGetFunction(CUfunction* out, CUkernel handle) {
    Kernel* kernel = nullptr;
    TTT_EMU_TRY(find_kernel(handle, &kernel));
    Context* context = nullptr;
    TTT_EMU_TRY(need_context(&context));
    Function* function = nullptr;
    TTT_EMU_TRY(need_function(reinterpret_cast<CUfunction>(handle), &function));
    return give(out, FunctionHandles::handle_of(function));
}
CUresult cuKernelGetLibrary(CUlibrary* out, CUkernel handle) {
    Kernel* kernel = nullptr;
    TTT_EMU_TRY(find_kernel(handle, &kernel));
    return give(out, Handles<Library, CUlibrary>::handle_of(kernel->library));
}
CUresult cuKernelGetName(const char** name, CUkernel handle) {
    Kernel* kernel = nullptr;
    TTT_EMU_TRY(find_kernel(handle, &kernel));
    if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *name = kernel->name.c_str();
    return CUDA_SUCCESS;
}
CUresult cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel handle,
                              CUdevice device) {
    TTT_EMU_TRY(need_device(device));
    Kernel* kernel = nullptr;
    TTT_EMU_TRY(find_kernel(handle, &kernel));
    if (const auto set = kernel->attributes.find(attribute); set != kernel->attributes.end()) {
        return give(value, set->second);
    }
    Function* function = nullptr;
    TTT_EMU_TRY(need_function(reinterpret_cast<CUfunction>(handle), &function));
    return get_attribute(*function, attribute, value);
}
CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel handle,
                              CUdevice device) {
    TTT_EMU_TRY(need_device(device));
    Kernel* kernel = nullptr;
    TTT_EMU_TRY(find_kernel(handle, &kernel));
    Function* function = nullptr;
    TTT_EMU_TRY(need_function(reinterpret_cast<CUfunction>(handle), &function));
    TTT_EMU_TRY(set_attribute(*function, attribute, value));
    kernel->attributes[attribute] = value;
    return CUDA_SUCCESS;
}
CUresult cuKernelSetCacheConfig(CUkernel handle, CUfunc_cache, CUdevice device) {
    TTT_EMU_TRY(need_device(device));
    Kernel* kernel = nullptr;
    return find_kernel(handle, &kernel);
}
CUresult cuKernelGetParamInfo(CUkernel handle, size_t index, size_t* offset, size_t* size) {
    Kernel* kernel = nullptr;
    TTT_EMU_TRY(find_kernel(handle, &kernel));
    Function* function = nullptr;
    TTT_EMU_TRY(need_function(reinterpret_cast<CUfunction>(handle), &function));
    return param_info(*function, index, offset, size);
}

// These take a true CUfunction only: hardware refuses a CUkernel here.
CUresult cuFuncGetName(const char** name, CUfunction handle) {
    const Function* function = Gpu::get().functions.find(handle);
    if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *name = function->name.c_str();
    return CUDA_SUCCESS;
}
CUresult cuFuncGetModule(CUmodule* out, CUfunction handle) {
    const Function* function = Gpu::get().functions.find(handle);
    if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    return give(out, ModuleHandles::handle_of(function->module));
}
CUresult cuFuncGetParamInfo(CUfunction handle, size_t index, size_t* offset, size_t* size) {
    const Function* function = Gpu::get().functions.find(handle);
    if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    return param_info(*function, index, offset, size);
}
CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction handle) {
    Function* function = nullptr;
    TTT_EMU_TRY(need_function(handle, &function));
    return get_attribute(*function, attribute, value);
}
CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value) {
    Function* function = nullptr;
    TTT_EMU_TRY(need_function(handle, &function));
    return set_attribute(*function, attribute, value);
}
CUresult cuFuncSetCacheConfig(CUfunction handle, CUfunc_cache config) {
    Function* function = nullptr;
    TTT_EMU_TRY(need_function(handle, &function));
    function->cache = config;
    return CUDA_SUCCESS;
}
CUresult cuFuncSetSharedMemConfig(CUfunction handle, CUsharedconfig) {
    Function* function = nullptr;
    return need_function(handle, &function);
}
CUresult cuFuncLoad(CUfunction handle) {
    Function* function = nullptr;
    return need_function(handle, &function);
}
CUresult cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction handle) {
    Function* function = nullptr;
    TTT_EMU_TRY(need_function(handle, &function));
    return give(state, CU_FUNCTION_LOADING_STATE_LOADED);
}

}  // namespace ttt::emulator::api
