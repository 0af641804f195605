// Programs' code: images, modules, libraries, functions. A module's PTX is parsed when it is
// loaded; each entry is pinned (its rounding fixed as the assembler fuses it) and decoded at its
// first launch.
#pragma once

#include <cuda.h>

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/model.h"
#include "ptx/interpreter.h"

namespace ttt::emulator {

struct Context;
struct Module;
struct KernelWork;

struct JitOptions {
    unsigned max_registers = 0;
    char* info_log = nullptr;
    size_t info_log_bytes = 0;
    char* error_log = nullptr;
    size_t error_log_bytes = 0;
    void** error_log_size = nullptr;  // where the driver reports the bytes written
    void** info_log_size = nullptr;
};
JitOptions read_jit_options(unsigned count, CUjit_option* options, void** values);

struct Source {  // one PTX text of an image
    std::string text;
    unsigned max_registers = 0;  // from the fat binary's option string; 0 = none
};
// PTX of an image that suits the device; each text is one module part. Errors as the driver gives
// them, with the reason in the error log.
CUresult read_image(const void* image, std::vector<Source>* sources, const JitOptions& jit);
// Checks version, syntax and target. `out` may be nullptr.
CUresult parse_ptx(const std::string& text, const JitOptions& jit, ptx::Module* out);

struct Part {  // one PTX text
    Part() = default;
    ~Part();  // its variables' addresses become free
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;

    ptx::Module code;
    std::unique_ptr<ptx::LoadedModule> loaded;
    Source source;
    uint64_t variables = 0;
};

struct Function {
    Module* module = nullptr;
    Part* part = nullptr;
    std::string name;
    std::vector<ptx::ParamLayout> params;
    uint32_t param_bytes = 0;
    std::unordered_map<int, int> attributes;  // set by the program
    CUfunc_cache cache = CU_FUNC_CACHE_PREFER_NONE;
    std::optional<model::Resources> resources;
    std::unique_ptr<ptx::Program> program;
    CUresult decode_error = CUDA_SUCCESS;
    uint32_t max_threads = 1024;
    struct Legacy {  // set by cuFuncSetBlockShape, cuParamSet*
        Dim3 block;
        uint32_t shared = 0;
        std::vector<std::byte> params;
    } legacy;
};

struct Module {
    Context* context = nullptr;
    struct Library* library = nullptr;
    unsigned max_registers = 0;
    std::vector<std::unique_ptr<Part>> parts;
    std::unordered_map<std::string, Function*> functions;
};

struct Library {
    std::vector<Source> sources;
    unsigned max_registers = 0;
    std::vector<std::string> entries;  // of all sources
    std::unordered_map<Context*, Module*> modules;
    std::unordered_map<std::string, struct Kernel*> kernels;
};

struct Kernel {
    Library* library = nullptr;
    std::string name;
    std::unordered_map<int, int> attributes;
};

CUresult load_module(Context* context, const std::vector<Source>& sources, unsigned max_registers,
                     const JitOptions& jit, Module** out);
void unload_module(Module* module);
CUresult module_of(Library& library, Context* context, Module** out);
// The entry `name`, or CUDA_ERROR_NOT_FOUND.
CUresult get_function(Module& module, const std::string& name, Function** out);
std::vector<std::string> entry_names(const Module& module);
CUresult get_global(const Module& module, const std::string& name, CUdeviceptr* address,
                    size_t* bytes);

// Registers, static shared and local bytes; computed once.
const model::Resources& resources_of(Function& function);
CUresult get_attribute(Function& function, CUfunction_attribute attribute, int* value);
CUresult set_attribute(Function& function, CUfunction_attribute attribute, int value);
// Decodes if that has not happened. CUDA_ERROR_NOT_SUPPORTED when the PTX holds something not
// executable here.
CUresult prepare(Function& function);
CUresult check_launch(Function& function, const KernelWork& work);
CUresult run_kernel(const KernelWork& work, bool in_graph, uint64_t* nanoseconds);

}  // namespace ttt::emulator
