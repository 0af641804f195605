// One interface over nvJitLink, ptxas and "no machine code" (emulated GPU: the module is the PTX
// itself). Toolkit libraries are found at run time (Config::cuda_home, CUDA_HOME, /usr/local/cuda,
// wheels), never linked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "image/image.h"
#include "xform/transform.h"

namespace ttt::compile {

// Limits of sm_75 – sm_121: a register target below the first is raised to it, one above the second
// is ignored.
inline constexpr uint32_t kFewestRegisters = 24;
inline constexpr uint32_t kMostRegisters = 255;
// What an assembler makes of a register target: 0 = none. Two recipes with equal results here are
// duplicates.
uint32_t effective_registers(uint32_t max_registers);

// code.text points into `image`: moving keeps it right, copies must not use it.
struct Compiled {
    std::vector<std::byte> image;  // cubin, or PTX text (with NUL) for the emulated GPU
    std::string entry;
    uint32_t registers = 0, local_bytes = 0, shared_bytes = 0;
    image::KernelCode code;  // counts; code.text empty when there is no machine code
    std::string log;
    double milliseconds = 0;  // 0 when the result came from the cache
};

class Compiler {
  public:
    virtual ~Compiler() = default;
    virtual std::string identity()
        const = 0;  // "nvJitLink 13.0", "ptxas 13.0.88": part of the store key
    virtual uint32_t major() const = 0;
    // Highest PTX ISA it takes, as major * 10 + minor (90 for 9.0).
    virtual uint32_t max_ptx_version() const = 0;
    // kCompile with the assembler's log; kUnsupported naming both versions when .version is too new
    // (hazard r22).
    virtual Result<Compiled> compile(std::string_view ptx, std::string_view entry,
                                     std::string_view arch,
                                     const xform::CompileControls& controls) = 0;
};

// Thread-safe compilers. Each compile runs in a killable child with time and memory limits
// (`isolated`), or in process.
Result<std::unique_ptr<Compiler>> make_nvjitlink(std::string_view cuda_home = {},
                                                 bool isolated = true);
Result<std::unique_ptr<Compiler>> make_ptxas(std::string_view cuda_home = {});
// PTX passes through; resources come from ptxas when there is one, else from a register-pressure
// estimate.
std::unique_ptr<Compiler> make_passthrough(std::string_view cuda_home = {});
// Best for a device: passthrough when `emulated`, else ptxas if its major ≤ driver_cuda_version /
// 1000, else nvJitLink likewise (ptxas gives the whole-program code that nvcc and the driver's JIT
// give, nvJitLink does not).
Result<std::unique_ptr<Compiler>> make_compiler(bool emulated, int driver_cuda_version,
                                                std::string_view cuda_home = {});

}  // namespace ttt::compile
