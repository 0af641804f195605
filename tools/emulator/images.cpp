// What programs hand to cuModuleLoadData and its relatives, turned into PTX texts, with the
// driver's error codes.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "emulator/code.h"
#include "emulator/emu_log.h"
#include "emulator/gpu.h"
#include "image/image.h"
#include "image/ptx_target.h"
#include "ptx/ir.h"

namespace ttt::emulator {
namespace {

constexpr unsigned kMaxPtxVersion = CUDA_VERSION / 1000 * 10 - 40 + CUDA_VERSION % 1000 / 10;

CUresult refuse(CUresult code, const JitOptions& jit, const std::string& message) {
    note("image refused ({}): {}", static_cast<int>(code), message);
    if (jit.error_log != nullptr && jit.error_log_bytes > 0) {
        const size_t n = std::min(jit.error_log_bytes - 1, message.size());
        std::memcpy(jit.error_log, message.data(), n);
        jit.error_log[n] = '\0';
        if (jit.error_log_size != nullptr) *jit.error_log_size = reinterpret_cast<void*>(n);
    }
    return code;
}

CUresult check_target(const image::PtxTarget& target, const JitOptions& jit) {
    const uint32_t arch = Gpu::get().device->arch;
    if (target.arch <= arch && (target.suffix != 'a' || target.arch == arch)) return CUDA_SUCCESS;
    const std::string suffix(target.suffix != 0 ? 1 : 0, target.suffix);
    return refuse(
        CUDA_ERROR_INVALID_PTX, jit,
        fmt::format("PTX of target sm_{}{} does not run on sm_{}", target.arch, suffix, arch));
}

// "--maxrregcount 40" or "-maxrregcount=40" among a fat binary's options.
unsigned register_limit(std::string_view options) {
    constexpr std::string_view kName = "maxrregcount";
    const size_t at = options.find(kName);
    if (at == std::string_view::npos) return 0;
    const size_t digits = options.find_first_not_of(" =", at + kName.size());
    unsigned value = 0;
    if (digits != std::string_view::npos) {
        std::from_chars(options.data() + digits, options.data() + options.size(), value);
    }
    return value;
}

CUresult add_entries(std::span<const std::byte> blob, std::vector<Source>* sources,
                     const JitOptions& jit) {
    auto entries = image::entries(blob);
    if (!entries.ok()) return refuse(CUDA_ERROR_INVALID_IMAGE, jit, entries.error().str());
    const image::Entry* best = image::best_ptx(*entries, Gpu::get().device->arch);
    if (best == nullptr) {
        return refuse(
            CUDA_ERROR_NO_BINARY_FOR_GPU, jit,
            fmt::format("no PTX for sm_{} or older in the image; the emulated GPU does not "
                        "execute machine code",
                        Gpu::get().device->arch));
    }
    auto text = image::contents(*best);
    if (!text.ok()) return refuse(CUDA_ERROR_INVALID_IMAGE, jit, text.error().str());
    sources->push_back({std::move(*text), register_limit(best->options)});
    return CUDA_SUCCESS;
}

}  // namespace

JitOptions read_jit_options(unsigned count, CUjit_option* options, void** values) {
    JitOptions jit;
    if (options == nullptr || values == nullptr) return jit;
    for (unsigned i = 0; i < count; ++i) {
        const auto value = reinterpret_cast<uintptr_t>(values[i]);
        switch (options[i]) {
            case CU_JIT_MAX_REGISTERS:
                jit.max_registers = static_cast<unsigned>(value);
                break;
            case CU_JIT_ERROR_LOG_BUFFER:
                jit.error_log = static_cast<char*>(values[i]);
                break;
            case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
                jit.error_log_bytes = static_cast<unsigned>(value);
                jit.error_log_size = &values[i];
                break;
            case CU_JIT_INFO_LOG_BUFFER:
                jit.info_log = static_cast<char*>(values[i]);
                break;
            case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
                jit.info_log_bytes = static_cast<unsigned>(value);
                jit.info_log_size = &values[i];
                break;
            default:
                break;  // the others change speed or debug data only
        }
    }
    if (jit.error_log_size != nullptr) *jit.error_log_size = nullptr;
    if (jit.info_log_size != nullptr) *jit.info_log_size = nullptr;
    if (jit.error_log != nullptr && jit.error_log_bytes > 0) jit.error_log[0] = '\0';
    if (jit.info_log != nullptr && jit.info_log_bytes > 0) jit.info_log[0] = '\0';
    return jit;
}

CUresult parse_ptx(const std::string& text, const JitOptions& jit, ptx::Module* out) {
    const image::PtxTarget target = image::ptx_target(text);
    const unsigned version = target.version;  // before parsing: newer PTX may not parse at all
    if (version > kMaxPtxVersion) {
        return refuse(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, jit,
                      fmt::format("PTX version {}.{} is newer than {}.{}", version / 10,
                                  version % 10, kMaxPtxVersion / 10, kMaxPtxVersion % 10));
    }
    auto parsed = ptx::parse(text);
    if (!parsed.ok()) {
        return refuse(CUDA_ERROR_INVALID_PTX, jit,
                      fmt::format("ptxas application ptx input, line {}; error : {}",
                                  parsed.error().line, parsed.error().str()));
    }
    const CUresult result = check_target(target, jit);
    if (result == CUDA_SUCCESS && out != nullptr) *out = std::move(*parsed);
    return result;
}

CUresult read_image(const void* image, std::vector<Source>* sources, const JitOptions& jit) {
    if (image == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto blobs = image::copy_foreign(image);
    if (!blobs.ok()) return refuse(CUDA_ERROR_INVALID_IMAGE, jit, blobs.error().str());
    for (const auto& blob : *blobs) {
        const std::span<const std::byte> bytes(blob);
        const image::Kind kind = image::classify(bytes.first(std::min<size_t>(24, bytes.size())));
        CUresult result = CUDA_SUCCESS;
        if (kind == image::Kind::kElf) {
            result = refuse(CUDA_ERROR_NO_BINARY_FOR_GPU, jit,
                            "machine code: the emulated GPU executes PTX only");
        } else if (kind == image::Kind::kPtx) {
            std::string text(reinterpret_cast<const char*>(blob.data()), blob.size());
            while (!text.empty() && text.back() == '\0') text.pop_back();
            sources->push_back({std::move(text), 0});
        } else if (kind == image::Kind::kFatbin) {
            result = add_entries(bytes, sources, jit);
        } else {
            result = refuse(CUDA_ERROR_INVALID_IMAGE, jit, "neither PTX nor a fat binary");
        }
        if (result != CUDA_SUCCESS) return result;
    }
    return sources->empty() ? refuse(CUDA_ERROR_INVALID_IMAGE, jit, "empty image") : CUDA_SUCCESS;
}

}  // namespace ttt::emulator
