#include "sandbox/modules.h"

#include <fmt/format.h>

#include <array>
#include <vector>

namespace ttt::sandbox {
namespace {

void* option(intptr_t value) { return reinterpret_cast<void*>(value); }

uint32_t attribute(const Driver& d, CUfunction f, CUfunction_attribute a) {
    int v = 0;
    return d.cuFuncGetAttribute(&v, a, f) == CUDA_SUCCESS && v > 0 ? static_cast<uint32_t>(v) : 0;
}

std::string first_line(const char* text) {
    const std::string s(text);
    return s.substr(0, s.find('\n'));
}

}  // namespace

Result<Loaded> Modules::load(uint64_t id, std::span<const std::byte> image,
                             const std::string& entry, int max_registers, int opt_level,
                             const Binding& binding) {
    drop(id);
    std::vector<std::byte> bytes(image.begin(), image.end());
    bytes.push_back(std::byte{0});  // PTX text must end in NUL
    std::array<char, 1024> log{};
    std::vector<CUjit_option> names{CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    std::vector<void*> values{log.data(), option(static_cast<intptr_t>(log.size() - 1))};
    if (max_registers > 0) {
        names.push_back(CU_JIT_MAX_REGISTERS);
        values.push_back(option(max_registers));
    }
    if (opt_level >= 0) {
        names.push_back(CU_JIT_OPTIMIZATION_LEVEL);
        values.push_back(option(opt_level));
    }
    Loaded l;
    auto status = driver_.check(
        driver_.cuModuleLoadDataEx(&l.module, bytes.data(), static_cast<unsigned>(names.size()),
                                   names.data(), values.data()),
        "loading the module");
    if (!status.ok()) {
        Error e = std::move(status).error();
        if (log[0] != 0) e.message += ": " + first_line(log.data());
        return e;
    }
    loaded_[id] = l;
    status = driver_.check(driver_.cuModuleGetFunction(&l.function, l.module, entry.c_str()),
                           "finding the entry");
    if (!status.ok()) {
        drop(id);
        return std::move(status).error().with(entry);
    }
    if (!binding.cells.empty()) {
        if (Status bound = bind(l, binding); !bound.ok()) {
            drop(id);
            return std::move(bound).error();
        }
    }
    l.registers = attribute(driver_, l.function, CU_FUNC_ATTRIBUTE_NUM_REGS);
    l.local_bytes = attribute(driver_, l.function, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
    l.shared_bytes = attribute(driver_, l.function, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
    loaded_[id] = l;
    return l;
}

const Loaded* Modules::find(uint64_t id) const {
    auto it = loaded_.find(id);
    return it == loaded_.end() || it->second.function == nullptr ? nullptr : &it->second;
}

void Modules::drop(uint64_t id) {
    auto it = loaded_.find(id);
    if (it == loaded_.end()) return;
    driver_.cuModuleUnload(it->second.module);
    loaded_.erase(it);
    std::vector<uint64_t> dangling;
    for (const auto& [other, l] : loaded_)
        if (l.original == id) dangling.push_back(other);
    for (const uint64_t other : dangling) drop(other);
}

Result<CUdeviceptr> Modules::global(CUmodule module, const std::string& name,
                                    uint64_t bytes) const {
    CUdeviceptr at = 0;
    size_t size = 0;
    if (driver_.cuModuleGetGlobal_v2(&at, &size, module, name.c_str()) != CUDA_SUCCESS || at == 0)
        return make_error(Code::kNotFound,
                          fmt::format("the driver finds no module variable {}", name));
    if (size != bytes)
        return make_error(
            Code::kNotFound,
            fmt::format("the module variable {} has {} bytes, not {}", name, size, bytes));
    return at;
}

Status Modules::bind(Loaded& l, const Binding& binding) const {
    const Loaded* original = find(binding.original);
    if (original == nullptr)
        return make_error(Code::kNotFound, "the module whose variables it reads is not loaded");
    l.original = binding.original;
    for (const VariableCell& c : binding.cells) {
        TTT_TRY(const CUdeviceptr cell, global(l.module, c.cell, sizeof(uint64_t)));
        TTT_TRY(const CUdeviceptr at, storage(*original, c.variable, c.bytes));
        const uint64_t value = at;
        TTT_CHECK_OK(driver_.check(driver_.cuMemcpyHtoD_v2(cell, &value, sizeof value),
                                   "filling an address cell"));
        l.bound[c.variable] = at;
    }
    return ok_status();
}

Result<CUdeviceptr> Modules::storage(const Loaded& l, const std::string& variable,
                                     uint64_t bytes) const {
    if (const auto it = l.bound.find(variable); it != l.bound.end()) return it->second;
    return global(l.module, variable, bytes);
}

}  // namespace ttt::sandbox
