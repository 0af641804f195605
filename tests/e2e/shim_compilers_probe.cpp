// A program that opens its compilers itself, as CuPy and numba do: NVRTC, nvJitLink and the
// driver's linker each make machine code that it then loads and launches. Prints "key=value" lines.
// Usage: shim-compilers-probe TOOLKIT_LIB_DIR DRIVER
// The driver is opened by path and last: NVRTC asks one that it finds, and does not survive the
// null driver's answers.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#define __CUDA_API_VERSION_INTERNAL 1
#include <cuda.h>
#include <dlfcn.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace {

std::string home_of(const void* address) {
    Dl_info info{};
    if (address == nullptr || dladdr(address, &info) == 0) return "null";
    const std::string path = info.dli_fname;
    return path.substr(path.rfind('/') + 1, 9);  // without the version
}

void* open_library(const std::string& folder, const std::string& name) {
    for (const char* suffix : {"", ".13", ".12"})
        if (void* h = dlopen((folder + "/" + name + suffix).c_str(), RTLD_NOW | RTLD_LOCAL))
            return h;
    std::printf("missing=%s\n", name.c_str());
    std::exit(77);
}

template <typename Fn>
Fn sym(void* library, const char* name) {
    auto f = reinterpret_cast<Fn>(dlsym(library, name));
    if (f == nullptr) {
        std::printf("missing=%s\n", name);
        std::exit(3);
    }
    return f;
}

void check(const char* what, int result) {
    if (result == 0) return;
    std::printf("failed=%s %d\n", what, result);
    std::exit(4);
}

std::string kernel_ptx(const char* name) {
    return std::string(".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry ") + name +
           "(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)\n{\n ret;\n}\n";
}

std::vector<char> by_nvrtc(void* nvrtc) {
    using Program = void*;
    Program program = nullptr;
    const char* source =
        "extern \"C\" __global__ void k(float* a, float* b, float* c, int n) { if (threadIdx.x < "
        "n) c[threadIdx.x] = a[threadIdx.x] * b[0]; }";
    const char* options[] = {"-arch=sm_80", "--maxrregcount=40"};
    check("create",
          sym<int (*)(Program*, const char*, const char*, int, const char**, const char**)>(
              nvrtc, "nvrtcCreateProgram")(&program, source, "k.cu", 0, nullptr, nullptr));
    check("compile", sym<int (*)(Program, int, const char**)>(nvrtc, "nvrtcCompileProgram")(
                         program, 2, options));
    size_t size = 0;
    check("size", sym<int (*)(Program, size_t*)>(nvrtc, "nvrtcGetCUBINSize")(program, &size));
    std::vector<char> cubin(size);
    check("cubin", sym<int (*)(Program, char*)>(nvrtc, "nvrtcGetCUBIN")(program, cubin.data()));
    check("destroy", sym<int (*)(Program*)>(nvrtc, "nvrtcDestroyProgram")(&program));
    return cubin;
}

std::vector<char> by_nvjitlink(void* library, int inputs) {
    using Link = void*;
    Link link = nullptr;
    const char* options[] = {"-arch=sm_80"};
    const auto add =
        sym<int (*)(Link, int, const void*, size_t, const char*)>(library, "nvJitLinkAddData");
    // The library has its functions under a versioned name too: looking one up changes nothing for
    // the other.
    for (const int minor : {0, 1, 2, 3, 4})
        for (const int major : {12, 13})
            dlsym(library,
                  ("__nvJitLinkCreate_" + std::to_string(major) + "_" + std::to_string(minor))
                      .c_str());
    check("link create", sym<int (*)(Link*, uint32_t, const char**)>(library, "nvJitLinkCreate")(
                             &link, 1, options));
    for (int i = 0; i < inputs; ++i) {
        const std::string ptx =
            kernel_ptx(i == 0 ? "k" : "other") + "// " + std::to_string(inputs) + "\n";
        check("link add", add(link, 2, ptx.c_str(), ptx.size() + 1, "k.ptx"));
    }
    check("link", sym<int (*)(Link)>(library, "nvJitLinkComplete")(link));
    size_t size = 0;
    check("link size",
          sym<int (*)(Link, size_t*)>(library, "nvJitLinkGetLinkedCubinSize")(link, &size));
    std::vector<char> cubin(size);
    check("link cubin",
          sym<int (*)(Link, void*)>(library, "nvJitLinkGetLinkedCubin")(link, cubin.data()));
    check("link destroy", sym<int (*)(Link*)>(library, "nvJitLinkDestroy")(&link));
    return cubin;
}

// The null driver "links" to the bytes of $TTT_NULL_LINKED.
void by_driver(void* cuda, std::vector<char> cubin) {
    cubin.back() ^= 1;  // other code than nvJitLink's
    std::ofstream(std::getenv("TTT_NULL_LINKED"), std::ios::binary)
        .write(cubin.data(), static_cast<std::streamsize>(cubin.size()));
    CUlinkState link = nullptr;
    CUjit_option names[] = {CU_JIT_MAX_REGISTERS};
    void* values[] = {reinterpret_cast<void*>(32)};
    std::string ptx = kernel_ptx("k") + "// driver\n";
    check("cuLinkCreate",
          sym<decltype(&::cuLinkCreate_v2)>(cuda, "cuLinkCreate_v2")(1, names, values, &link));
    check("cuLinkAddData",
          sym<decltype(&::cuLinkAddData_v2)>(cuda, "cuLinkAddData_v2")(
              link, CU_JIT_INPUT_PTX, ptx.data(), ptx.size() + 1, "k.ptx", 0, nullptr, nullptr));
    void* out = nullptr;
    size_t size = 0;
    check("cuLinkComplete",
          sym<decltype(&::cuLinkComplete)>(cuda, "cuLinkComplete")(link, &out, &size));
    CUmodule module = nullptr;
    check("load linked",
          sym<decltype(&::cuModuleLoadData)>(cuda, "cuModuleLoadData")(&module, out));
    check("cuLinkDestroy", sym<decltype(&::cuLinkDestroy)>(cuda, "cuLinkDestroy")(link));
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    setvbuf(stdout, nullptr, _IOLBF, 0);
    std::printf("probe=%s\n", home_of(dlsym(RTLD_DEFAULT, "nvrtcGetCUBIN")).c_str());
    void* nvrtc = open_library(argv[1], "libnvrtc.so");
    void* linker = open_library(argv[1], "libnvJitLink.so");
    std::printf("get_cubin=%s\n", home_of(dlsym(nvrtc, "nvrtcGetCUBIN")).c_str());
    std::printf("version=%s\n", home_of(dlsym(nvrtc, "nvrtcVersion")).c_str());
    std::printf("absent=%s\n", home_of(dlsym(linker, "nvrtcGetCUBIN")).c_str());
    const auto compiled = by_nvrtc(nvrtc), linked = by_nvjitlink(linker, 1),
               merged = by_nvjitlink(linker, 2);
    void* cuda = dlopen(argv[2], RTLD_NOW);
    if (cuda == nullptr) return 5;
    check("cuInit", sym<decltype(&::cuInit)>(cuda, "cuInit")(0));
    CUcontext context = nullptr;
    check("context", sym<decltype(&::cuCtxCreate_v2)>(cuda, "cuCtxCreate_v2")(&context, 0, 0));
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    for (const auto* image : {&linked, &merged, &compiled}) {
        check("load",
              sym<decltype(&::cuModuleLoadData)>(cuda, "cuModuleLoadData")(&module, image->data()));
        check("function", sym<decltype(&::cuModuleGetFunction)>(cuda, "cuModuleGetFunction")(
                              &function, module, "k"));
    }
    by_driver(cuda, linked);
    CUdeviceptr buffer = 0;
    check("alloc", sym<decltype(&::cuMemAlloc_v2)>(cuda, "cuMemAlloc_v2")(&buffer, 4096));
    unsigned n = 16;
    void* params[] = {&buffer, &buffer, &buffer, &n};
    for (int i = 0; i < 200; ++i) {
        check("launch", sym<decltype(&::cuLaunchKernel)>(cuda, "cuLaunchKernel")(
                            function, 1, 1, 1, 32, 1, 1, 0, nullptr, params, nullptr));
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    std::printf("code=%zu %zu\n", compiled.size(), linked.size());
    return 0;
}
