// Modules under trial: loaded from bytes, one entry each.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "base/result.h"
#include "sandbox/driver.h"

namespace ttt::sandbox {

struct Loaded {
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    uint32_t registers = 0, local_bytes = 0, shared_bytes = 0;
};

class Modules {
  public:
    explicit Modules(const Driver& driver) : driver_(driver) {}
    // Cubin, fat binary or PTX text; the JIT options matter for PTX only, negative = driver's
    // default. Replaces a module of the same id.
    Result<Loaded> load(uint64_t id, std::span<const std::byte> image, const std::string& entry,
                        int max_registers, int opt_level);
    const Loaded* find(uint64_t id) const;
    void drop(uint64_t id);

  private:
    const Driver& driver_;
    std::map<uint64_t, Loaded> loaded_;
};

}  // namespace ttt::sandbox
