// A small driver-API program for the shim's tests: does what its first argument says and prints
// "key=value" lines. Knows nothing of libttt but for asking, where it is there, for ttt_status.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#define __CUDA_API_VERSION_INTERNAL 1
#include <cuda.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "ttt/ttt.h"

namespace {

constexpr char kPtx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)\n{\n ret;\n}\n";

std::atomic<uint64_t> g_allocations{0};
std::atomic<bool> g_count{false};

void* g_cuda = nullptr;

template <typename Fn>
Fn sym(const char* name) {
    auto f = reinterpret_cast<Fn>(dlsym(g_cuda, name));
    if (f == nullptr) {
        std::printf("missing=%s\n", name);
        std::exit(3);
    }
    return f;
}
#define CU(name) sym<decltype(&::name)>(#name)

std::string home_of(const void* address) {
    Dl_info info{};
    if (address == nullptr) return "null";
    if (dladdr(address, &info) == 0) return "?";
    const std::string path = info.dli_fname;
    return path.substr(path.rfind('/') + 1);
}
void show(const char* key, const void* address) {
    std::printf("%s=%s\n", key, home_of(address).c_str());
}
void show(const char* key, uint64_t v) {
    std::printf("%s=%llu\n", key, static_cast<unsigned long long>(v));
}

// The null driver's own counters; behind the build that is named libcuda.so.1 it has another path.
void* null_driver() {
    const char* path = std::getenv("TTT_REAL_LIBCUDA");
    return path != nullptr ? dlopen(path, RTLD_NOW) : g_cuda;
}
uint64_t null_calls(const char* name) {
    return reinterpret_cast<uint64_t (*)(const char*)>(dlsym(null_driver(), "ttt_null_calls"))(
        name);
}
uint64_t null_launches() {
    return reinterpret_cast<uint64_t (*)()>(dlsym(null_driver(), "ttt_null_launches"))();
}

ttt_status_info status() {
    ttt_status_info info{};
    info.size = sizeof info;
    auto* f = reinterpret_cast<int (*)(ttt_status_info*)>(dlsym(RTLD_DEFAULT, "ttt_status"));
    if (f != nullptr) f(&info);
    return info;
}

void settle(int ms = 150) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

struct Program {
    CUcontext context = nullptr;
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    CUdeviceptr buffers[3] = {};
    unsigned n = 16;

    void open() {
        if (CU(cuInit)(0) != CUDA_SUCCESS) std::exit(4);
        CUdevice device = 0;
        CU(cuDeviceGet)(&device, 0);
        CU(cuCtxCreate_v2)(&context, 0, device);
        for (auto& b : buffers) CU(cuMemAlloc_v2)(&b, 4096);
        load();
    }
    void load() {
        if (CU(cuModuleLoadData)(&module, kPtx) != CUDA_SUCCESS) std::exit(5);
        if (CU(cuModuleGetFunction)(&function, module, "k") != CUDA_SUCCESS) std::exit(6);
    }
    CUresult launch(CUstream stream = nullptr) {
        static auto real = CU(cuLaunchKernel);
        void* params[] = {&buffers[0], &buffers[1], &buffers[2], &n};
        return real(function, 4, 1, 1, 128, 1, 1, 0, stream, params, nullptr);
    }
};

int routes() {
    show("default_before", dlsym(RTLD_DEFAULT, "cuLaunchKernel"));
    show("next_of_caller", dlsym(RTLD_NEXT, "ttt_version"));
    g_cuda = dlopen("libcuda.so.1", RTLD_NOW);
    show("dlsym", dlsym(g_cuda, "cuLaunchKernel"));
    show("dlsym_unhooked", dlsym(g_cuda, "cuDeviceGetName"));
    show("dlsym_prefix", dlsym(g_cuda, "cuLaunchKernelNot"));
    show("dlsym_short", dlsym(g_cuda, "cu"));
    show("dlsym_empty", dlsym(g_cuda, ""));
    show("dlsym_c", dlsym(g_cuda, "c"));
    show("other_library", dlsym(dlopen("libm.so.6", RTLD_NOW), "cuLaunchKernel"));
    auto get = CU(cuGetProcAddress_v2);
    show("dlsym_get", reinterpret_cast<const void*>(get));
    auto ask = [&](const char* key, const char* name, int version, cuuint64_t flags) {
        void* p = nullptr;
        CUdriverProcAddressQueryResult q = CU_GET_PROC_ADDRESS_SUCCESS;
        const CUresult r = get(name, &p, version, flags, &q);
        Dl_info info{};
        std::printf(
            "%s=%s %d %d %s\n", key, home_of(p).c_str(), static_cast<int>(r), static_cast<int>(q),
            p != nullptr && dladdr(p, &info) != 0 && info.dli_sname != nullptr ? info.dli_sname
                                                                               : "-");
        return p;
    };
    ask("get_launch", "cuLaunchKernel", 12000, 0);
    ask("get_launch_ptsz", "cuLaunchKernel", 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
    ask("get_old_alloc", "cuMemAlloc", 2000, 0);
    ask("get_alloc", "cuMemAlloc", 12000, 0);
    ask("get_unhooked", "cuDeviceGetName", 12000, 0);
    ask("get_empty", "", 12000, 0);
    ask("get_unknown", "cuNoSuchThing", 12000, 0);
    void* again = ask("get_self", "cuGetProcAddress", 12000, 0);
    show("get_self_is_ours", again == reinterpret_cast<void*>(get) ? 1 : 0);
    const CUresult null_out = get("cuLaunchKernel", nullptr, 12000, 0, nullptr);
    show("get_null_out", static_cast<uint64_t>(null_out));
    g_cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    show("default_after", dlsym(RTLD_DEFAULT, "cuLaunchKernel"));
    return 0;
}

int launches(int count, int pause_us) {
    Program p;
    p.open();
    CUresult worst = CUDA_SUCCESS;
    for (int i = 0; i < count; ++i) {
        if (i == 1) settle();
        if (const CUresult r = p.launch()) worst = r;
        if (pause_us > 0) std::this_thread::sleep_for(std::chrono::microseconds(pause_us));
    }
    settle(400);
    const ttt_status_info s = status();
    show("result", worst);
    show("driver_launches", null_launches());
    show("state", static_cast<uint64_t>(s.state));
    show("kernels", s.kernels);
    show("counted", s.launches);
    show("samples", null_calls("cuEventRecord"));
    show("tuner", static_cast<uint64_t>(s.tuner_connected));
    show("variant_launches", s.variant_launches);
    return 0;
}

// Each driver result, in order, as the program sees it: compared with and without the library.
int results() {
    Program p;
    auto line = [](const char* what, CUresult r) {
        std::printf("%s=%d\n", what, static_cast<int>(r));
    };
    line("init", CU(cuInit)(0));
    CUdevice device = 0;
    CU(cuDeviceGet)(&device, 0);
    line("context", CU(cuCtxCreate_v2)(&p.context, 0, device));
    for (int i = 0; i < 3; ++i) line("alloc", CU(cuMemAlloc_v2)(&p.buffers[i], 4096));
    line("alloc_zero", CU(cuMemAlloc_v2)(&p.buffers[0], 0));
    line("alloc_null", CU(cuMemAlloc_v2)(nullptr, 16));
    line("load", CU(cuModuleLoadData)(&p.module, kPtx));
    line("function", CU(cuModuleGetFunction)(&p.function, p.module, "k"));
    line("function_null", CU(cuModuleGetFunction)(nullptr, p.module, "k"));
    for (int i = 0; i < 50; ++i) {
        line("launch", p.launch());
        if (i == 5) settle();
    }
    line("sync", CU(cuCtxSynchronize)());
    line("attribute",
         CU(cuFuncSetAttribute)(p.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 4096));
    line("free", CU(cuMemFree_v2)(p.buffers[1]));
    line("unload", CU(cuModuleUnload)(p.module));
    line("destroy", CU(cuCtxDestroy_v2)(p.context));
    return 0;
}

int garbage() {
    Program p;
    p.open();
    std::vector<unsigned char> bytes(64);
    auto load = [&](const char* what) {
        CUmodule m = nullptr;
        std::printf("%s=%d\n", what, static_cast<int>(CU(cuModuleLoadData)(&m, bytes.data())));
    };
    load("zeros");
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(i * 37 + 11);
    load("noise");
    const uint32_t fatbin[4] = {0xBA55ED50u, 0x00100001u, 0xFFFFFFFFu,
                                0x7FFFFFFFu};  // lies about its size
    std::memcpy(bytes.data(), fatbin, sizeof fatbin);
    load("lying_fatbin");
    struct {
        uint32_t magic, version;
        const void* data;
        const void* file;
    } wrapper{0x466243B1u, 1, reinterpret_cast<void*>(8), nullptr};
    bytes.resize(sizeof wrapper);
    std::memcpy(bytes.data(), &wrapper, sizeof wrapper);
    load("wrapper_to_nowhere");
    wrapper.version = 2;
    std::memcpy(bytes.data(), &wrapper, sizeof wrapper);
    load("wrapper_array_to_nowhere");
    const unsigned char elf[16] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
    bytes.assign(elf, elf + 16);
    load("cut_elf");
    show("loads", null_calls("cuModuleLoadData"));
    settle();
    show("alive", 1);
    return 0;
}

int fork_child() {
    Program p;
    p.open();
    for (int i = 0; i < 10; ++i) p.launch();
    settle();
    const pid_t child = fork();
    if (child == 0) {
        const bool disabled = status().state == 2;
        const CUresult r = p.launch();  // the null driver does not mind
        _exit(disabled && r == CUDA_SUCCESS ? 7 : 8);
    }
    int code = 0;
    waitpid(child, &code, 0);
    show("child", static_cast<uint64_t>(WEXITSTATUS(code)));
    p.launch();
    show("parent_state", static_cast<uint64_t>(status().state));
    // Our helper process must not be the program's to reap.
    const pid_t any = waitpid(-1, &code, WNOHANG);
    show("no_child", any == -1 && errno == ECHILD ? 1 : 0);
    return 0;
}

std::atomic<int> g_sigchld{0};

int quiet_child() {
    std::signal(SIGCHLD, [](int) { g_sigchld.fetch_add(1); });
    Program p;
    p.open();
    for (int i = 0; i < 20; ++i) p.launch();
    settle(400);
    show("tuner", static_cast<uint64_t>(status().tuner_connected));
    show("sigchld", static_cast<uint64_t>(g_sigchld.load()));
    int code = 0;
    const pid_t any = waitpid(-1, &code, WNOHANG);
    show("no_child", any == -1 && errno == ECHILD ? 1 : 0);
    return 0;
}

// Allocations made on this thread by a long run of launches in the steady state.
int steady() {
    Program p;
    p.open();
    for (int i = 0; i < 100; ++i) p.launch();
    settle();
    for (int i = 0; i < 1000; ++i) p.launch();
    const uint64_t before = g_allocations.load();
    g_count.store(true);
    for (int i = 0; i < 200000; ++i) p.launch();
    g_count.store(false);
    show("allocations", g_allocations.load() - before);
    show("driver_launches", null_launches());
    return 0;
}

// Between begin and end of a capture nothing of ours may reach the driver on the captured stream.
int capture() {
    Program p;
    p.open();
    for (int i = 0; i < 50; ++i) p.launch();
    settle();
    CUstream stream = nullptr;
    CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING);
    const uint64_t records = null_calls("cuEventRecord"), syncs = null_calls("cuStreamSynchronize"),
                   copies = null_calls("cuMemcpyDtoDAsync_v2");
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
    CU(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    uint64_t n = 0;
    for (; std::chrono::steady_clock::now() < until; ++n) p.launch(stream);
    CUgraph graph = nullptr;
    CU(cuStreamEndCapture)(stream, &graph);
    show("captured_launches", n);
    show("records", null_calls("cuEventRecord") - records);
    show("syncs", null_calls("cuStreamSynchronize") - syncs);
    show("copies", null_calls("cuMemcpyDtoDAsync_v2") - copies);
    show("asked", null_calls("cuStreamIsCapturing"));
    return 0;
}

// A handle of an unloaded module must not keep its old meaning.
int reload() {
    Program p;
    p.open();
    for (int round = 0; round < 20; ++round) {
        for (int i = 0; i < 100; ++i) p.launch();
        settle(5);
        CU(cuModuleUnload)(p.module);
        p.load();
    }
    settle(400);
    show("driver_launches", null_launches());
    show("state", static_cast<uint64_t>(status().state));
    return 0;
}

int threads() {
    Program p;
    p.open();
    p.launch();
    settle();
    std::vector<std::thread> all;
    for (int t = 0; t < 8; ++t)
        all.emplace_back([&p] {
            CU(cuCtxSetCurrent)(p.context);
            Program mine = p;
            for (int round = 0; round < 20; ++round) {
                mine.load();
                for (int i = 0; i < 500; ++i) mine.launch();
                CUdeviceptr b = 0;
                CU(cuMemAlloc_v2)(&b, 64);
                CU(cuMemFree_v2)(b);
                CU(cuStreamSynchronize)(nullptr);
                CU(cuModuleUnload)(mine.module);
            }
        });
    for (auto& t : all) t.join();
    show("driver_launches", null_launches());
    return 0;
}

// Resident memory with many kernels registered.
int many(int count) {
    Program p;
    p.open();
    for (int i = 0; i < count; ++i) {
        if (CU(cuModuleGetFunction)(&p.function, p.module,
                                    ("kernel_number_" + std::to_string(i)).c_str()) != CUDA_SUCCESS)
            return 1;
        p.launch();
        if (i % 100 == 99) settle(30);
    }
    settle(600);
    show("kernels", status().kernels);
    FILE* f = std::fopen("/proc/self/statm", "r");
    unsigned long size = 0, resident = 0;
    if (f == nullptr || std::fscanf(f, "%lu %lu", &size, &resident) != 2) return 1;
    std::fclose(f);
    show("resident_kib", resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) / 1024);
    return 0;
}

// Launches, asks for more memory in a way that nothing else here does (TTT_EMU_FAULT refuses it),
// launches on.
int out_of_memory() {
    Program p;
    p.open();
    const auto launch_for = [&](int ms) {
        const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
        while (std::chrono::steady_clock::now() < until) {
            for (int i = 0; i < 20; ++i) p.launch();
            CU(cuCtxSynchronize)();
            std::this_thread::sleep_for(std::chrono::milliseconds(4));
        }
    };
    launch_for(700);
    CUdeviceptr more = 0;
    size_t pitch = 0;
    const auto before = std::chrono::steady_clock::now();
    show("alloc", CU(cuMemAllocPitch_v2)(&more, &pitch, 4096, 4, 4));
    show("alloc_ms", static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(
                                               std::chrono::steady_clock::now() - before)
                                               .count()));
    show("alloc_calls", null_calls("cuMemAllocPitch_v2"));
    launch_for(300);
    show("launch", p.launch());
    return 0;
}

// Launches for `ms`, resting between bursts so that trials find the GPU idle.
int serve(int ms) {
    Program p;
    p.open();
    CUresult worst = CUDA_SUCCESS;
    uint64_t made = 0;
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
    while (std::chrono::steady_clock::now() < until) {
        for (int i = 0; i < 20; ++i, ++made) {
            if (const CUresult r = p.launch()) worst = r;
            std::this_thread::sleep_for(std::chrono::microseconds(200));
        }
        CU(cuCtxSynchronize)();
        std::this_thread::sleep_for(std::chrono::milliseconds(4));
    }
    const ttt_status_info s = status();
    show("result", worst);
    show("launches", made);
    show("driver_launches", null_launches());
    show("variants_live", s.variants_live);
    show("variant_launches", s.variant_launches);
    show("tuner", static_cast<uint64_t>(s.tuner_connected));
    return 0;
}

// Puts sockets of its own on every number that it did not open, as programs do that place their
// files at fixed numbers, and goes on. Each socket holds four bytes for us; nothing may come out of
// its other end.
int takes_numbers() {
    Program p;
    p.open();
    const auto serve_for = [&](int ms) {
        const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
        while (std::chrono::steady_clock::now() < until) {
            for (int i = 0; i < 20; ++i) p.launch();
            CU(cuCtxSynchronize)();
            std::this_thread::sleep_for(std::chrono::milliseconds(4));
        }
    };
    serve_for(400);
    struct Taken {
        int number, peer;
    };
    std::vector<Taken> taken;
    uint64_t found = 0, wrong = 0;
    for (int number = 3; number < 1024 && taken.size() < 60; ++number) {
        if (fcntl(number, F_GETFD) == -1) continue;
        ++found;
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) return 7;
        const int peer = fcntl(pair[1], F_DUPFD, 1100);
        if (send(pair[1], "MINE", 4, 0) != 4 || peer < 0 || dup2(pair[0], number) < 0) return 8;
        close(pair[0]);
        close(pair[1]);
        taken.push_back({number, peer});
    }
    serve_for(600);
    for (const Taken& t : taken) {
        char text[64] = {};
        if (recv(t.number, text, sizeof text, MSG_DONTWAIT) != 4 || std::strcmp(text, "MINE") != 0)
            ++wrong;
        if (recv(t.peer, text, sizeof text, MSG_DONTWAIT) != -1 || errno != EAGAIN) ++wrong;
    }
    show("found", found);
    show("wrong", wrong);
    show("result", static_cast<uint64_t>(p.launch()));
    return 0;
}

// Libraries with PTX, loaded before there is a context, under a small limit on descriptors.
int libraries(int number) {
    const struct rlimit limit { 256, 256 };
    setrlimit(RLIMIT_NOFILE, &limit);
    if (CU(cuInit)(0) != CUDA_SUCCESS) return 4;
    uint64_t failed = 0;
    for (int i = 0; i < number; ++i) {
        CUlibrary library = nullptr;
        CU(cuLibraryLoadData)(&library, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0);
        const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        failed += fd < 0 ? 1 : 0;
        if (fd >= 0) close(fd);
        if (i % 50 == 0) settle(20);
    }
    settle();
    const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    show("opens_failed", failed + (fd < 0 ? 1 : 0));
    return 0;
}

// Requests of several launches, 20 ms apart: the kernel of interest comes last in each.
int bursts(int ms) {
    Program p;
    p.open();
    const char* other =
        ".version 7.0\n.target sm_70\n.address_size 64\n"
        ".visible .entry other()\n{\n ret;\n}\n";
    CUmodule module = nullptr;
    CUfunction first = nullptr;
    CU(cuModuleLoadData)(&module, other);
    CU(cuModuleGetFunction)(&first, module, "other");
    uint64_t made = 0;
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
    while (std::chrono::steady_clock::now() < until) {
        for (int i = 0; i < 5; ++i)
            CU(cuLaunchKernel)(first, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr);
        p.launch();
        ++made;
        CU(cuCtxSynchronize)();
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    show("launches", made);
    show("variant_launches", status().variant_launches);
    return 0;
}

}  // namespace

#if !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)  // those bring an allocator of their own
// Counts allocations without taking the allocator's place: only while asked, only on the asking
// thread's watch.
extern "C" void* __libc_malloc(size_t);
static const pid_t g_main = getpid();
extern "C" void* malloc(size_t n) {
    if (g_count.load(std::memory_order_relaxed) && syscall(SYS_gettid) == g_main)
        g_allocations.fetch_add(1);
    return __libc_malloc(n);
}
#endif

int main(int argc, char** argv) {
    const std::string what = argc > 1 ? argv[1] : "";
    const int number = argc > 2 ? std::atoi(argv[2]) : 100;
    setvbuf(stdout, nullptr, _IOLBF, 0);
    if (what == "routes") return routes();
    g_cuda = dlopen("libcuda.so.1", RTLD_NOW);
    if (g_cuda == nullptr) {
        std::printf("no_driver=1\n");
        return 2;
    }
    if (what == "launches") return launches(number, argc > 3 ? std::atoi(argv[3]) : 0);
    if (what == "results") return results();
    if (what == "garbage") return garbage();
    if (what == "fork") return fork_child();
    if (what == "quiet_child") return quiet_child();
    if (what == "steady") return steady();
    if (what == "capture") return capture();
    if (what == "reload") return reload();
    if (what == "threads") return threads();
    if (what == "many") return many(number);
    if (what == "serve") return serve(number);
    if (what == "takes_numbers") return takes_numbers();
    if (what == "libraries") return libraries(number);
    if (what == "bursts") return bursts(number);
    if (what == "out_of_memory") return out_of_memory();
    std::printf(
        "usage: shim-probe "
        "routes|launches|results|garbage|fork|quiet_child|steady|capture|reload|threads|serve|"
        "bursts|out_"
        "of_memory "
        "[N]\n");
    return 2;
}
