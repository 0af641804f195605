// Chooses a compiler for this machine.
#include <cstdlib>

#include "compile/assembler.h"
#include "compile/compiler.h"
#include "compile/toolkit.h"

namespace ttt::compile {
namespace {

// The first candidate that opens and, with `max_major` != 0, is not newer than the driver
// understands.
template <typename Open>
Result<std::unique_ptr<Compiler>> first_of(const std::vector<std::string>& paths, const char* what,
                                           uint32_t max_major, Open open) {
    std::string why;
    for (const std::string& path : paths) {
        Result<std::unique_ptr<Backend>> backend = open(path);
        if (!backend.ok()) {
            why += (why.empty() ? "" : "; ") + path + ": " + backend.error().str();
            continue;
        }
        const Identity& id = (*backend)->identity();
        if (max_major != 0 && id.major > max_major) {
            why += (why.empty() ? "" : "; ") + path + ": " + id.name +
                   " is newer than the driver (CUDA " + std::to_string(max_major) + ")";
            continue;
        }
        return std::unique_ptr<Compiler>(std::make_unique<Assembler>(std::move(backend).value()));
    }
    return make_error(
        Code::kNotFound,
        std::string("no usable ") + what + " on this machine" +
            (why.empty() ? std::string("; install a CUDA toolkit or set TTT_CUDA_HOME")
                         : " (" + why + ")"));
}

Result<std::unique_ptr<Compiler>> nvjitlink(std::string_view cuda_home, bool isolated,
                                            uint32_t max_major) {
    const std::string worker = isolated ? find_worker() : std::string();
    return first_of(
        find_nvjitlink(cuda_home), "nvJitLink", max_major, [&](const std::string& path) {
            return worker.empty() ? open_nvjitlink(path) : open_nvjitlink_worker(worker, path);
        });
}

Result<std::unique_ptr<Compiler>> ptxas(std::string_view cuda_home, uint32_t max_major) {
    return first_of(find_ptxas(cuda_home), "ptxas", max_major,
                    [](const std::string& path) { return open_ptxas(path); });
}

}  // namespace

Result<std::unique_ptr<Compiler>> make_nvjitlink(std::string_view cuda_home, bool isolated) {
    return nvjitlink(cuda_home, isolated, 0);
}

Result<std::unique_ptr<Compiler>> make_ptxas(std::string_view cuda_home) {
    return ptxas(cuda_home, 0);
}

Result<std::unique_ptr<Compiler>> make_compiler(bool emulated, int driver_cuda_version,
                                                std::string_view cuda_home) {
    if (emulated) return make_passthrough(cuda_home);
    if (driver_cuda_version < 1000)
        return make_error(Code::kInvalidArgument, "the driver's CUDA version is unknown");
    const auto major = static_cast<uint32_t>(driver_cuda_version / 1000);
    // ptxas first: it compiles whole programs, as nvcc and the driver do. nvJitLink always
    // assembles relocatable code (the same bytes as ptxas -c), so helpers such as the slow path of
    // a division become calls: softmax_row of the suite then needs 24 registers instead of 20, and
    // no kernel's code equals that of the program's own.
    auto assembler = ptxas(cuda_home, major);
    if (assembler.ok()) return assembler;
    auto linker = nvjitlink(cuda_home, true, major);
    if (linker.ok()) return linker;
    return std::move(linker).error().with(assembler.error().message);
}

}  // namespace ttt::compile
