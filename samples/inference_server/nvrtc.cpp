#include "nvrtc.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <vector>

namespace digits {
namespace {

// NVRTC's C interface as far as it is used here; declared so that the sample builds without its
// header.
using Program = void*;
struct Nvrtc {
    int (*create)(Program*, const char*, const char*, int, const char* const*, const char* const*);
    int (*compile)(Program, int, const char* const*);
    int (*destroy)(Program*);
    int (*ptx_size)(Program, size_t*);
    int (*ptx)(Program, char*);
    int (*log_size)(Program, size_t*);
    int (*log)(Program, char*);
    int (*arch_count)(int*);
    int (*archs)(int*);
};

void* open_library() {
    std::vector<std::string> folders{""};
    for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
        if (const char* home = std::getenv(variable); home != nullptr && *home != 0) {
            folders.push_back(std::string(home) + "/lib64/");
            folders.push_back(std::string(home) + "/lib/");
        }
    folders.push_back("/usr/local/cuda/lib64/");
    for (const auto& folder : folders)
        for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"})
            if (void* library = dlopen((folder + name).c_str(), RTLD_NOW)) return library;
    return nullptr;
}

template <typename F>
bool find(void* library, const char* name, F& out) {
    out = reinterpret_cast<F>(dlsym(library, name));
    return out != nullptr;
}

std::optional<Nvrtc> load(std::string& why) {
    void* library = open_library();
    if (library == nullptr) {
        why = "libnvrtc.so not found (CUDA_HOME, /usr/local/cuda)";
        return std::nullopt;
    }
    Nvrtc n{};
    const bool all = find(library, "nvrtcCreateProgram", n.create) &&
                     find(library, "nvrtcCompileProgram", n.compile) &&
                     find(library, "nvrtcDestroyProgram", n.destroy) &&
                     find(library, "nvrtcGetPTXSize", n.ptx_size) &&
                     find(library, "nvrtcGetPTX", n.ptx) &&
                     find(library, "nvrtcGetProgramLogSize", n.log_size) &&
                     find(library, "nvrtcGetProgramLog", n.log) &&
                     find(library, "nvrtcGetNumSupportedArchs", n.arch_count) &&
                     find(library, "nvrtcGetSupportedArchs", n.archs);
    if (all) return n;
    why = "this libnvrtc.so lacks functions of CUDA 12";
    return std::nullopt;
}

int newest_up_to(const Nvrtc& n, int arch) {
    int count = 0;
    if (n.arch_count(&count) != 0 || count <= 0) return arch;
    std::vector<int> known(static_cast<size_t>(count));
    if (n.archs(known.data()) != 0) return arch;
    int best = 0;
    for (int a : known)
        if (a <= arch) best = std::max(best, a);
    return best == 0 ? arch : best;
}

std::string text_of(Program p, int (*size_of)(Program, size_t*), int (*get)(Program, char*)) {
    size_t bytes = 0;
    if (size_of(p, &bytes) != 0 || bytes == 0) return {};
    std::string text(bytes, '\0');
    if (get(p, text.data()) != 0) return {};
    text.resize(bytes - 1);
    return text;
}

}  // namespace

std::optional<std::string> compile_with_nvrtc(const std::string& source, int arch,
                                              std::string& why) {
    const auto n = load(why);
    if (!n) return std::nullopt;
    Program program = nullptr;
    if (n->create(&program, source.c_str(), "dense.cu", 0, nullptr, nullptr) != 0)
        throw std::runtime_error("nvrtcCreateProgram failed");
    const std::string option =
        "--gpu-architecture=compute_" + std::to_string(newest_up_to(*n, arch));
    const char* options[] = {option.c_str()};
    const int rc = n->compile(program, 1, options);
    const std::string log = text_of(program, n->log_size, n->log);
    std::string ptx = rc == 0 ? text_of(program, n->ptx_size, n->ptx) : std::string{};
    n->destroy(&program);
    if (rc != 0 || ptx.empty())
        throw std::runtime_error("NVRTC: dense.cu does not compile:\n" + log);
    return ptx;
}

}  // namespace digits
