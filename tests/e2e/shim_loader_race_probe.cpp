// Two threads that load libraries: one looks compiler functions up in two small libraries that it
// loads and unloads again and again (TTT_RACE_LIBRARY is their source, below), the other loads a
// library whose constructor does such a look-up, under the loader's lock. Prints "stuck=1" when
// both stand still. Usage: PROBE SECONDS FAKE_A FAKE_B CTOR
#ifdef TTT_RACE_LIBRARY
#include <dlfcn.h>
#include <unistd.h>

extern "C" {
#if TTT_RACE_LIBRARY == 0  // the library with the constructor
__attribute__((constructor)) static void look_up() {
    auto** compiler = static_cast<void**>(dlsym(RTLD_DEFAULT, "ttt_race_compiler"));
    usleep(50);
    if (compiler != nullptr) dlsym(*compiler, "nvrtcCompileProgram");
}
#else
__attribute__((visibility("default"))) int nvrtcCompileProgram(void*, int, const char* const*) {
    return TTT_RACE_LIBRARY;
}
#endif
}

#else
#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

extern "C" {
__attribute__((visibility("default"))) void* ttt_race_compiler = nullptr;
}

namespace {

std::atomic<long> g_reloads{0}, g_constructed{0};

void* load(const char* file) {
    void* handle = dlopen(file, RTLD_NOW);
    if (handle == nullptr) std::_Exit(3);
    return handle;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 5) return 2;
    ttt_race_compiler = load(argv[2]);
    std::thread([&] {
        for (;; ++g_reloads)
            for (int i = 2; i < 4; ++i) {
                void* handle = load(argv[i]);
                dlsym(handle, "nvrtcCompileProgram");
                dlclose(handle);
            }
    }).detach();
    std::thread([&] {
        for (;; ++g_constructed) dlclose(load(argv[4]));
    }).detach();
    for (int second = 0; second < std::atoi(argv[1]); ++second) {
        const long reloads = g_reloads, constructed = g_constructed;
        std::this_thread::sleep_for(std::chrono::seconds(1));
        if (g_reloads != reloads || g_constructed != constructed) continue;
        std::printf("stuck=1\n");
        std::fflush(stdout);
        std::_Exit(9);
    }
    std::printf("stuck=0\nreloads=%ld\nconstructed=%ld\n", g_reloads.load(), g_constructed.load());
    std::fflush(stdout);
    std::_Exit(0);
}
#endif
