// Images of the program's modules and what can be read from them. Event loop only, except where a
// ModuleCode is shared.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "ptx/ir.h"
#include "xform/transform.h"

namespace ttt::tuner {

// One module's PTX and machine code. Immutable; shared with the pipeline thread.
struct ModuleCode {
    std::vector<std::byte> image;  // as the program gave it
    int jit_max_registers = -1, jit_opt_level = -1;
    std::string jit_options;
    std::optional<ptx::Module> ptx;
    std::string no_ptx;             // why there is none
    std::string ptx_origin;         // where it came from, when not from the image itself
    bool has_machine_code = false;  // the program runs this cubin, not the driver's own compilation
    std::string cubin;              // ELF for the device's architecture, empty when absent
    uint32_t option_max_registers =
        0;  // from the fat binary's option string or the JIT options; 0 = none

    // Counts of the entry's fused, multiply and add instructions in the program's own machine code.
    std::optional<xform::Context::FusedCounts> fused_counts(const std::string& entry) const;
    // Machine code of the entry, empty when there is none.
    std::vector<std::byte> text(const std::string& entry) const;
};

class Modules {
  public:
    // Reads the descriptor now (nothing of the program's is held back), parses on first use.
    Status add(uint64_t id, const Fd& image, uint64_t size, int max_registers, int opt_level,
               std::string options);
    // The program unloaded it. Who holds its ModuleCode keeps it.
    void remove(uint64_t id);
    // PTX that a compiler in the program made these machine codes from. The oldest go when all
    // together pass 256 MiB.
    Status add_source(std::span<const uint64_t> codes, const Fd& text, uint64_t size,
                      std::string origin, std::string options);
    // Null when the module was never announced.
    std::shared_ptr<const ModuleCode> code(uint64_t id, uint32_t arch);

  private:
    struct Source {
        std::string ptx, origin, options;
    };
    void examine(ModuleCode& c, uint32_t arch) const;
    void find_source(ModuleCode& c) const;
    void forget_oldest();

    std::map<uint64_t, std::shared_ptr<const Source>> sources_;  // by identity of the machine code
    std::deque<std::vector<uint64_t>> told_;                     // keys of sources_, oldest first
    size_t source_bytes_ = 0;
    std::map<uint64_t, std::shared_ptr<ModuleCode>> codes_;
    std::map<uint64_t, bool> examined_;
};

}  // namespace ttt::tuner
