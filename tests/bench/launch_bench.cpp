// What libttt.so adds to a launch in the steady state, measured against the null driver: the same
// loop in two child processes, without and with the library, in alternating rounds. Prints JSON.
//
// ttt-bench-launch [--lib libttt.so] [--driver FOLDER of libcuda.so.1] [--threads 1,2,4] [--rounds
// N] Without options it looks beside itself: ../lib/libttt.so and ../null.
#include <cuda.h>
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int kBatch = 64;      // launches between two looks at the clock
constexpr int kBatches = 4000;  // per thread and round
constexpr char kPtx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)\n{\n ret;\n}\n";

struct Options {
    std::string lib, driver;
    std::vector<int> threads{1, 2, 4};
    int rounds = 5;
};

struct Api {
    decltype(&cuLaunchKernel) launch = nullptr;
    CUfunction function = nullptr;
};

template <typename Fn>
Fn look_up(void* handle, const char* name) {
    return reinterpret_cast<Fn>(dlsym(handle, name));
}

bool prepare(Api* api) {
    void* h = dlopen("libcuda.so.1", RTLD_NOW);
    if (h == nullptr) {
        std::fprintf(stderr, "ttt-bench-launch: no libcuda.so.1: %s\n", dlerror());
        return false;
    }
    CUdevice device = 0;
    CUcontext context = nullptr;
    CUmodule module = nullptr;
    const bool ok = look_up<decltype(&cuInit)>(h, "cuInit")(0) == CUDA_SUCCESS &&
                    look_up<decltype(&cuDeviceGet)>(h, "cuDeviceGet")(&device, 0) == CUDA_SUCCESS &&
                    look_up<CUresult (*)(CUcontext*, unsigned, CUdevice)>(h, "cuCtxCreate_v2")(
                        &context, 0, device) == CUDA_SUCCESS &&
                    look_up<decltype(&cuModuleLoadData)>(h, "cuModuleLoadData")(&module, kPtx) ==
                        CUDA_SUCCESS &&
                    look_up<decltype(&cuModuleGetFunction)>(h, "cuModuleGetFunction")(
                        &api->function, module, "k") == CUDA_SUCCESS;
    api->launch = look_up<decltype(&cuLaunchKernel)>(h, "cuLaunchKernel");
    return ok && api->launch != nullptr;
}

// One batch after the other; nanoseconds per launch of each.
void loop(const Api& api, std::vector<double>* out) {
    unsigned long long a = 0x1000, b = 0x2000, c = 0x3000;
    unsigned n = 16;
    void* params[] = {&a, &b, &c, &n};
    using Clock = std::chrono::steady_clock;
    for (double& ns : *out) {
        const auto start = Clock::now();
        for (int i = 0; i < kBatch; ++i)
            api.launch(api.function, 4, 1, 1, 128, 1, 1, 0, nullptr, params, nullptr);
        ns = std::chrono::duration<double, std::nano>(Clock::now() - start).count() / kBatch;
    }
}

// In the child: "p50 p99" of `threads` threads launching the same kernel.
int measure(int threads) {
    Api api;
    if (!prepare(&api)) return 1;
    std::vector<double> warm(200);
    loop(api, &warm);
    std::this_thread::sleep_for(
        std::chrono::milliseconds(120));  // registered by now, if anybody registers
    std::vector<std::vector<double>> all(static_cast<size_t>(threads),
                                         std::vector<double>(kBatches));
    std::vector<std::thread> workers;
    std::atomic<bool> go{false};
    for (auto& times : all)
        workers.emplace_back([&] {
            while (!go.load()) std::this_thread::yield();
            loop(api, &times);
        });
    go.store(true);
    for (auto& w : workers) w.join();
    std::vector<double> ns;
    for (const auto& times : all) ns.insert(ns.end(), times.begin(), times.end());
    std::sort(ns.begin(), ns.end());
    std::printf("%.3f %.3f\n", ns[ns.size() / 2], ns[ns.size() * 99 / 100]);
    std::fflush(stdout);
    _exit(0);  // exit handlers are no part of what is measured
}

struct Point {
    double p50 = 0, p99 = 0;
};

bool run_child(const Options& o, bool preload, int threads, Point* out) {
    int fds[2];
    if (pipe(fds) != 0) return false;
    const pid_t child = fork();
    if (child == 0) {
        dup2(fds[1], 1);
        setenv("LD_LIBRARY_PATH", o.driver.c_str(), 1);
        if (preload)
            setenv("LD_PRELOAD", o.lib.c_str(), 1);
        else
            unsetenv("LD_PRELOAD");
        setenv("TTT_TUNER", "/nonexistent",
               1);  // the steady state, without a process that competes for the cores
        execl("/proc/self/exe", "ttt-bench-launch", "--measure", std::to_string(threads).c_str(),
              nullptr);
        _exit(127);
    }
    close(fds[1]);
    std::array<char, 128> text{};
    const ssize_t n = read(fds[0], text.data(), text.size() - 1);
    close(fds[0]);
    int status = 0;
    waitpid(child, &status, 0);
    return n > 0 && status == 0 && std::sscanf(text.data(), "%lf %lf", &out->p50, &out->p99) == 2;
}

double median(std::vector<double> v) {
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
}

bool parse(int argc, char** argv, Options* o) {
    std::array<char, 4096> self{};
    const ssize_t n = readlink("/proc/self/exe", self.data(), self.size() - 1);
    const std::string path(self.data(), n > 0 ? static_cast<size_t>(n) : 0);
    const std::string root = path.substr(0, path.rfind('/')) + "/..";
    o->lib = root + "/lib/libttt.so";
    o->driver = root + "/null";
    for (int i = 1; i < argc; i += 2) {
        const std::string name = argv[i];
        if (i + 1 >= argc) {
            std::fprintf(stderr, "ttt-bench-launch: %s needs a value\n", argv[i]);
            return false;
        }
        if (name == "--lib")
            o->lib = argv[i + 1];
        else if (name == "--driver")
            o->driver = argv[i + 1];
        else if (name == "--rounds")
            o->rounds = std::max(1, std::atoi(argv[i + 1]));
        else if (name == "--threads") {
            o->threads.clear();
            for (char* p = argv[i + 1]; *p != 0;) {
                o->threads.push_back(std::clamp(static_cast<int>(std::strtol(p, &p, 10)), 1, 256));
                if (*p != 0) ++p;
            }
        } else {
            std::fprintf(stderr, "ttt-bench-launch: unknown option %s\n", argv[i]);
            return false;
        }
    }
    for (const std::string& file : {o->lib, o->driver + "/libcuda.so.1"})
        if (access(file.c_str(), R_OK) != 0) {
            std::fprintf(stderr, "ttt-bench-launch: %s is missing; build it first\n", file.c_str());
            return false;
        }
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 3 && std::strcmp(argv[1], "--measure") == 0) return measure(std::atoi(argv[2]));
    Options o;
    if (!parse(argc, argv, &o)) return 2;
    std::printf("{\"driver\":\"null\",\"batch\":%d,\"rounds\":%d,\"results\":[", kBatch, o.rounds);
    for (size_t t = 0; t < o.threads.size(); ++t) {
        std::vector<double> base50, base99, added50, added99;
        for (int r = 0; r < o.rounds; ++r) {
            Point without, with;
            if (!run_child(o, false, o.threads[t], &without) ||
                !run_child(o, true, o.threads[t], &with)) {
                std::fprintf(stderr, "ttt-bench-launch: a measuring process failed\n");
                return 1;
            }
            base50.push_back(without.p50);
            base99.push_back(without.p99);
            added50.push_back(with.p50 - without.p50);
            added99.push_back(with.p99 - without.p99);
        }
        std::printf(
            "%s{\"threads\":%d,\"base_ns_p50\":%.1f,\"base_ns_p99\":%.1f,\"added_ns_p50\":%.1f,"
            "\"added_ns_p99\":%.1f}",
            t == 0 ? "" : ",", o.threads[t], median(base50), median(base99), median(added50),
            median(added99));
    }
    std::printf("]}\n");
    return 0;
}
