#include "emulator/code.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "compile/compiler.h"
#include "driver_table/fault_plan.h"
#include "emulator/emu_log.h"
#include "emulator/gpu.h"
#include "xform/pinning.h"

namespace ttt::emulator {
namespace {

constexpr uint32_t kDefaultMaxThreads = 1024;
// A graph node costs about a quarter of a stream launch (0.97 against 3.9 µs for tiny kernels on an
// H200).
constexpr double kGraphLaunchShare = 0.25;

std::string arch_name() { return fmt::format("sm_{}", Gpu::get().device->arch); }

compile::Compiler* assembler() {
    static auto* made = [] {
        auto found = compile::make_ptxas();
        if (!found.ok())
            note("no ptxas: rounding is predicted, not checked ({})", found.error().str());
        return found.ok() ? std::move(found).value().release() : nullptr;
    }();
    return made;
}

compile::Compiler& estimator() {
    static auto* made = compile::make_passthrough().release();
    return *made;
}

// Fixes the rounding of one entry as the assembler fuses it (the emulated GPU has no machine code
// to read it from).
void pin(Part& part, const std::string& entry) {
    const ptx::Function* function = part.code.find(entry);
    if (function == nullptr || !xform::has_unrounded(part.code, *function)) return;
    xform::PinRule rule = xform::PinRule::kDefault;
    if (compile::Compiler* ptxas = assembler()) {
        const auto assemble = [&](const std::string& text) -> Result<xform::AssembledCode> {
            TTT_TRY(auto compiled, ptxas->compile(text, entry, arch_name(), {}));
            const auto& code = compiled.code;
            return xform::AssembledCode{
                {code.ffma, code.fmul, code.fadd, code.dfma, code.dmul, code.dadd},
                {code.text.begin(), code.text.end()}};
        };
        const auto decided = xform::decide_pinning(part.code, entry, assemble);
        rule = xform::find_pin_rule(decided.rule).value_or(xform::PinRule::kDefault);
        note("{}: rounding {} ({})", entry, decided.possible ? "pinned" : "predicted only",
             decided.evidence);
    }
    xform::pin_in_place(part.code, *part.code.find(entry), rule);
}

uint32_t directive(const ptx::Function& function, std::string_view name) {
    for (const auto& d : function.directives) {
        if (d.name != name || d.values.empty()) continue;
        uint64_t product = 1;
        for (const uint32_t v : d.values) product *= v;
        return static_cast<uint32_t>(std::min<uint64_t>(product, kDefaultMaxThreads));
    }
    return 0;
}

CUresult sticky_error(const ptx::Fault& fault) {
    using Kind = ptx::Fault::Kind;
    switch (fault.kind) {
        case Kind::kIllegalAddress:
            return CUDA_ERROR_ILLEGAL_ADDRESS;
        case Kind::kMisaligned:
            return CUDA_ERROR_MISALIGNED_ADDRESS;
        case Kind::kIllegalInstruction:
            return CUDA_ERROR_ILLEGAL_INSTRUCTION;
        case Kind::kBudget:
            return CUDA_ERROR_LAUNCH_TIMEOUT;
        case Kind::kTrap:
        case Kind::kBarrier:
        case Kind::kDivergence:
            return CUDA_ERROR_LAUNCH_FAILED;
    }
    return CUDA_ERROR_LAUNCH_FAILED;
}

CUresult load_part(const Source& source, const JitOptions& jit, std::unique_ptr<Part>* out) {
    auto part = std::make_unique<Part>();
    const CUresult bad = parse_ptx(source.text, jit, &part->code);
    if (bad != CUDA_SUCCESS) return bad;
    part->source = source;
    uint64_t bytes = 0;
    for (const auto& variable : part->code.variables) {
        const auto& symbol = part->code.at(variable.sym);
        bytes += symbol.bytes() + std::max<uint64_t>(symbol.align, 512) * 2;
    }
    DeviceMemory& memory = *Gpu::get().memory;
    part->variables = memory.variable_base(std::max<uint64_t>(bytes, 1) * 2);
    auto loaded = ptx::LoadedModule::load(part->code, memory.space(), part->variables);
    if (!loaded.ok()) {
        note("module not loaded: {}", loaded.error().str());
        return loaded.error().code == Code::kUnsupported ? CUDA_ERROR_NOT_SUPPORTED
                                                         : CUDA_ERROR_INVALID_PTX;
    }
    part->loaded = std::move(*loaded);
    *out = std::move(part);
    return CUDA_SUCCESS;
}

}  // namespace

Part::~Part() {
    loaded.reset();
    if (variables != 0) Gpu::get().memory->release_variables(variables);
}

CUresult load_module(Context* context, const std::vector<Source>& sources, unsigned max_registers,
                     const JitOptions& jit, Module** out) {
    auto made = std::make_unique<Module>();
    made->context = context;
    made->max_registers = max_registers;
    for (const Source& source : sources) {
        std::unique_ptr<Part> part;
        if (const CUresult bad = load_part(source, jit, &part); bad != CUDA_SUCCESS) return bad;
        made->parts.push_back(std::move(part));
    }
    *out = made.get();
    Gpu::get().modules.add(std::move(made));
    return CUDA_SUCCESS;
}

void unload_module(Module* module) {
    Gpu& gpu = Gpu::get();
    gpu.functions.remove_if([&](const Function& f) { return f.module == module; });
    if (module->library != nullptr) module->library->modules.erase(module->context);
    gpu.modules.remove(Handles<Module, CUmodule>::handle_of(module));
}

CUresult module_of(Library& library, Context* context, Module** out) {
    if (const auto found = library.modules.find(context); found != library.modules.end()) {
        *out = found->second;
        return CUDA_SUCCESS;
    }
    const CUresult bad = load_module(context, library.sources, library.max_registers, {}, out);
    if (bad != CUDA_SUCCESS) return bad;
    (*out)->library = &library;
    library.modules[context] = *out;
    return CUDA_SUCCESS;
}

CUresult get_function(Module& module, const std::string& name, Function** out) {
    if (const auto known = module.functions.find(name); known != module.functions.end()) {
        *out = known->second;
        return CUDA_SUCCESS;
    }
    for (auto& part : module.parts) {
        const ptx::Function* entry = part->code.find(name);
        if (entry == nullptr || !entry->is_entry) continue;
        auto made = std::make_unique<Function>();
        made->module = &module;
        made->part = part.get();
        made->name = name;
        made->params = ptx::param_layout(part->code, *entry);
        for (const auto& p : made->params)
            made->param_bytes = std::max(made->param_bytes, p.offset + p.size);
        uint32_t threads = directive(*entry, "reqntid");
        if (threads == 0) threads = directive(*entry, "maxntid");
        made->max_threads = threads != 0 ? threads : kDefaultMaxThreads;
        *out = module.functions[name] = made.get();
        Gpu::get().functions.add(std::move(made));
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_NOT_FOUND;
}

std::vector<std::string> entry_names(const Module& module) {
    std::vector<std::string> names;
    for (const auto& part : module.parts) {
        for (const auto& function : part->code.functions) {
            if (function.is_entry) names.emplace_back(function.name);
        }
    }
    return names;
}

CUresult get_global(const Module& module, const std::string& name, CUdeviceptr* address,
                    size_t* bytes) {
    for (const auto& part : module.parts) {
        for (const auto& global : part->loaded->globals()) {
            if (global.name != name) continue;
            if (address != nullptr) *address = global.address;
            if (bytes != nullptr) *bytes = global.bytes;
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_NOT_FOUND;
}

const model::Resources& resources_of(Function& function) {
    if (function.resources) return *function.resources;
    model::Resources resources;
    xform::CompileControls controls;
    const unsigned asked =
        function.module->max_registers;  // by the program: before the image's own
    controls.max_registers = asked != 0 ? asked : function.part->source.max_registers;
    const auto compiled =
        estimator().compile(function.part->source.text, function.name, arch_name(), controls);
    if (compiled.ok()) {
        resources.registers = compiled->registers;
        resources.shared_bytes = compiled->shared_bytes;
        resources.local_bytes = compiled->local_bytes;
    } else {
        note("{}: resources unknown, defaults used ({})", function.name, compiled.error().str());
    }
    function.resources = resources;
    return *function.resources;
}

CUresult get_attribute(Function& function, CUfunction_attribute attribute, int* value) {
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (const auto set = function.attributes.find(attribute); set != function.attributes.end()) {
        *value = set->second;
        return CUDA_SUCCESS;
    }
    const int arch = static_cast<int>(Gpu::get().device->arch);
    const ptx::Module& code = function.part->code;
    switch (attribute) {
        case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
            *value = static_cast<int>(function.max_threads);
            break;
        case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
            *value = static_cast<int>(resources_of(function).shared_bytes);
            break;
        case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
            *value = static_cast<int>(resources_of(function).local_bytes);
            break;
        case CU_FUNC_ATTRIBUTE_NUM_REGS:
            *value = static_cast<int>(resources_of(function).registers);
            break;
        case CU_FUNC_ATTRIBUTE_PTX_VERSION: {
            const std::string_view target = code.target;
            *value =
                target.starts_with("sm_") ? std::atoi(std::string(target.substr(3)).c_str()) : arch;
            break;
        }
        case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
            *value = arch;
            break;
        case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
            *value = static_cast<int>(
                Gpu::get().device->shared_per_block -
                std::min(Gpu::get().device->shared_per_block, resources_of(function).shared_bytes));
            break;
        case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
            *value = -1;
            break;
        case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
        case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
        case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
        case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
        case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
        case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
        case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
            *value = 0;
            break;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

CUresult set_attribute(Function& function, CUfunction_attribute attribute, int value) {
    switch (attribute) {
        case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: {
            const auto limit = Gpu::get().device->shared_per_block_optin;
            const auto taken = resources_of(function).shared_bytes;
            if (value < 0 || static_cast<uint64_t>(value) + taken > limit)
                return CUDA_ERROR_INVALID_VALUE;
            break;
        }
        case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
            if (value < -1 || value > 100) return CUDA_ERROR_INVALID_VALUE;
            break;
        case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
        case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
        case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
        case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
            break;
        default:
            return CUDA_ERROR_INVALID_VALUE;
    }
    function.attributes[attribute] = value;
    return CUDA_SUCCESS;
}

CUresult prepare(Function& function) {
    if (function.program != nullptr || function.decode_error != CUDA_SUCCESS)
        return function.decode_error;
    pin(*function.part, function.name);
    auto decoded = ptx::Program::decode(*function.part->loaded, function.name);
    if (decoded.ok()) {
        function.program = std::move(*decoded);
    } else {
        note("{}: {}", function.name, decoded.error().str());
        function.decode_error = CUDA_ERROR_NOT_SUPPORTED;
    }
    return function.decode_error;
}

CUresult check_launch(Function& function, const KernelWork& work) {
    const uint64_t threads = work.block.count();
    constexpr uint32_t kMaxGridX = 0x7FFFFFFF, kMaxGridYZ = 65535, kMaxBlockZ = 64;
    if (threads == 0 || work.grid.count() == 0 || work.grid.x > kMaxGridX ||
        work.grid.y > kMaxGridYZ || work.grid.z > kMaxGridYZ || work.block.z > kMaxBlockZ ||
        threads > kDefaultMaxThreads) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (threads > function.max_threads) return CUDA_ERROR_INVALID_VALUE;
    int dynamic_limit = 0;
    if (work.dynamic_shared > 0) {
        get_attribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, &dynamic_limit);
        if (work.dynamic_shared > static_cast<uint64_t>(dynamic_limit))
            return CUDA_ERROR_INVALID_VALUE;
    }
    return prepare(function);
}

CUresult run_kernel(const KernelWork& work, bool in_graph, uint64_t* nanoseconds) {
    Gpu& gpu = Gpu::get();
    Function& function = *work.function;
    if (const CUresult bad = prepare(function); bad != CUDA_SUCCESS) return bad;
    Context& context = *function.module->context;
    const int injected = driver_table::process_fault_plan().on_launch();
    if (injected == driver_table::FaultPlan::kFault) {
        note("{}: injected fault", function.name);
        context.sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
        return CUDA_SUCCESS;
    }
    if (injected != 0) return static_cast<CUresult>(injected);

    ptx::LaunchRequest request;
    request.grid = work.grid;
    request.block = work.block;
    request.dynamic_shared = work.dynamic_shared;
    request.params = work.params;
    request.host_threads = gpu.host_threads;
    request.device.sm_count = gpu.device->sm_count;
    request.device.warps_per_sm = gpu.device->max_warps_per_sm;
    request.device.clock_mhz = gpu.device->clock_mhz;
    request.device.arch = gpu.device->arch;
    const auto result = function.program->run(gpu.memory->space(), request);
    if (!result.printf_output.empty()) {
        std::fwrite(result.printf_output.data(), 1, result.printf_output.size(), stdout);
    }
    model::Resources resources = resources_of(function);
    resources.shared_bytes += work.dynamic_shared;
    double ns = model::predict_ns(*gpu.device, work.grid, work.block, resources, result.counters);
    if (in_graph) ns -= gpu.device->launch_ns * (1 - kGraphLaunchShare);
    ns *= driver_table::process_fault_plan().launch_slowdown();
    *nanoseconds = static_cast<uint64_t>(std::llround(std::max(ns, 1.0)));
    if (result.fault) {
        note("{}: {}", function.name, result.fault->message);
        context.sticky = sticky_error(*result.fault);
    }
    return CUDA_SUCCESS;
}

}  // namespace ttt::emulator
