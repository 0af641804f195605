#include "compile/assembler.h"

#include <chrono>
#include <cstring>
#include <new>

#include "compile/controls.h"
#include "image/ptx_target.h"

namespace ttt::compile {
namespace {

std::string dotted(uint32_t version) {
    return std::to_string(version / 10) + "." + std::to_string(version % 10);
}

uint32_t arch_number(std::string_view arch) {
    uint32_t out = 0;
    for (const char c : arch)
        if (c >= '0' && c <= '9') out = out * 10 + static_cast<uint32_t>(c - '0');
    return out;
}

Result<Compiled> finish(Output output, std::string_view entry) {
    Compiled out;
    out.image.resize(output.cubin.size());
    std::memcpy(out.image.data(), output.cubin.data(), output.cubin.size());
    out.entry = std::string(entry);
    out.log = std::move(output.log);
    auto cubin = image::read_cubin(out.image);
    if (!cubin.ok()) return std::move(cubin).error().with("the assembler's result");
    for (image::KernelCode& kernel : cubin->kernels) {
        if (kernel.name != entry) continue;
        out.registers = kernel.registers;
        out.local_bytes = kernel.local_bytes;
        out.shared_bytes = kernel.shared_bytes;
        out.code = std::move(kernel);
        return out;
    }
    return make_error(Code::kNotFound,
                      "the compiled PTX has no kernel \"" + std::string(entry) + "\"");
}

}  // namespace

Status check_ptx(std::string_view ptx, std::string_view arch, const std::string& compiler,
                 uint32_t max_ptx_version) {
    TTT_CHECK_OK(check_arch(arch));
    if (ptx.find('\0') != std::string_view::npos)
        return make_error(Code::kParse, "PTX with a NUL inside");
    const image::PtxTarget target = image::ptx_target(ptx);
    if (target.version == 0) return make_error(Code::kParse, "PTX without a .version directive");
    if (target.version > max_ptx_version)
        return make_error(Code::kUnsupported, "PTX ISA " + dotted(target.version) +
                                                  " is newer than " + compiler + " takes (" +
                                                  dotted(max_ptx_version) +
                                                  "); a newer CUDA toolkit is needed");
    if (target.arch > arch_number(arch))
        return make_error(Code::kUnsupported, "PTX for sm_" + std::to_string(target.arch) +
                                                  " cannot be compiled for " + std::string(arch));
    return ok_status();
}

Result<Compiled> Assembler::compile(std::string_view ptx, std::string_view entry,
                                    std::string_view arch, const xform::CompileControls& controls) {
    try {
        TTT_CHECK_OK(check_ptx(ptx, arch, identity(), max_ptx_version()));
        TTT_TRY(auto options, assembler_options(controls));
        const Hash128 key = cache_key(ptx, entry, arch, controls);
        if (auto known = x_cache.find(key)) {
            known->milliseconds = 0;
            return std::move(*known);
        }
        const auto start = std::chrono::steady_clock::now();
        TTT_TRY(Output output, x_backend->assemble({ptx, std::string(arch), std::move(options)}));
        TTT_TRY(Compiled out, finish(std::move(output), entry));
        out.milliseconds =
            std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
                .count();
        x_cache.add(key, out);
        return out;
    } catch (const std::bad_alloc&) {
        return make_error(Code::kExhausted, "no memory to compile a variant");
    }
}

}  // namespace ttt::compile
