// Modules under trial: loaded from bytes, one entry each.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "base/result.h"
#include "sandbox/binding.h"
#include "sandbox/driver.h"

namespace ttt::sandbox {

struct Loaded {
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    uint32_t registers = 0, local_bytes = 0, shared_bytes = 0;
    uint64_t original = 0;  // module whose variables the cells lead to; 0: there are none
    std::map<std::string, CUdeviceptr> bound;  // variable → its storage, through a cell
};

class Modules {
  public:
    explicit Modules(const Driver& driver) : driver_(driver) {}
    // Cubin, fat binary or PTX text; the JIT options matter for PTX only, negative = driver's
    // default. Replaces a module of the same id. kNotFound when a cell cannot be filled.
    Result<Loaded> load(uint64_t id, std::span<const std::byte> image, const std::string& entry,
                        int max_registers, int opt_level, const Binding& binding = {});
    const Loaded* find(uint64_t id) const;
    // Also every module with cells that lead to its variables.
    void drop(uint64_t id);
    // Where the module's launches find a variable: behind its cell, else in the module itself.
    // kNotFound when there is no such variable of that size.
    Result<CUdeviceptr> storage(const Loaded& module, const std::string& variable,
                                uint64_t bytes) const;

  private:
    Result<CUdeviceptr> global(CUmodule module, const std::string& name, uint64_t bytes) const;
    Status bind(Loaded& module, const Binding& binding) const;

    const Driver& driver_;
    std::map<uint64_t, Loaded> loaded_;
};

}  // namespace ttt::sandbox
