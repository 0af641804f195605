// Launches one kernel of a PTX file again and again with the inputs of a launch spec: the program
// that `ttt tune` runs under libttt.so. It knows nothing of libttt.
//   ttt-kernel-loop FILE SPEC [--seconds S] [--launches N] [--gap-ms MS] [--check] [--json]
// Ends after S seconds, N launches (0: no limit), or at SIGTERM. Prints a checksum of the buffers
// after the first and the last launch, each on freshly filled buffers; with --check a difference is
// exit code 1.
#include <fmt/format.h>
#include <signal.h>

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <thread>

#include "device.h"
#include "spec/sha256.h"

namespace ttt::kernel_loop {
namespace {

using Clock = std::chrono::steady_clock;
using Contents = std::vector<std::vector<std::byte>>;

constexpr int kBurst =
    16;  // launches between synchronisations, as an ordinary program queues several

volatile sig_atomic_t g_stop = 0;
void on_signal(int) { g_stop = 1; }

struct Options {
    std::string file, spec;
    double seconds = 10;
    double gap_ms = 4;  // idle time after each burst
    uint64_t launches = 0;
    bool check = false, json = false;
};

[[noreturn]] void usage_error(const std::string& what) {
    fmt::print(stderr, "ttt-kernel-loop: {}\n", what);
    std::exit(2);
}

template <typename T>
T number(const std::string& option, const char* text) {
    T v{};
    const char* end = text + std::char_traits<char>::length(text);
    const auto [stop, error] = std::from_chars(text, end, v);
    if (error != std::errc() || stop != end || v < T{0})
        usage_error(option + " '" + text + "': not a number");
    return v;
}

Options parse(int argc, char** argv) {
    Options o;
    std::vector<std::string> files;
    for (int i = 1; i < argc; ++i) {
        const std::string a = argv[i];
        const auto value = [&]() -> const char* {
            if (++i == argc) usage_error(a + " needs a value");
            return argv[i];
        };
        if (a == "--seconds")
            o.seconds = number<double>(a, value());
        else if (a == "--launches")
            o.launches = number<uint64_t>(a, value());
        else if (a == "--gap-ms")
            o.gap_ms = number<double>(a, value());
        else if (a == "--check")
            o.check = true;
        else if (a == "--json")
            o.json = true;
        else if (a.starts_with("--"))
            usage_error("unknown option '" + a + "'");
        else
            files.push_back(a);
    }
    if (files.size() != 2)
        usage_error(
            "usage: ttt-kernel-loop FILE SPEC [--seconds S] [--launches N] [--gap-ms MS] [--check] "
            "[--json]");
    o.file = files[0];
    o.spec = files[1];
    return o;
}

std::string checksum(const Contents& contents) {
    std::vector<std::byte> all;
    for (const auto& c : contents) all.insert(all.end(), c.begin(), c.end());
    return spec::sha256_hex(all);
}

Result<Contents> fresh_launch(Kernel& kernel) {
    TTT_CHECK_OK(kernel.refill());
    TTT_CHECK_OK(kernel.launch());
    return kernel.outputs();
}

// Launches until time or count is up. Written buffers are restored between bursts, so that a kernel
// that works in place sees the same kind of data all along instead of drifting to infinities.
Result<uint64_t> keep_launching(Kernel& kernel, const Options& o,
                                const std::vector<bool>& written) {
    const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double>(o.seconds));
    uint64_t done = 0;
    while (g_stop == 0 && Clock::now() < end && (o.launches == 0 || done < o.launches)) {
        TTT_CHECK_OK(kernel.restore(written));
        for (int i = 0; i < kBurst && g_stop == 0 && (o.launches == 0 || done < o.launches) &&
                        Clock::now() < end;
             ++i, ++done)
            TTT_CHECK_OK(kernel.launch());
        TTT_CHECK_OK(kernel.synchronize());
        std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(o.gap_ms));
    }
    return done;
}

struct Outcome {
    uint64_t launches = 0;
    std::string first, last;
    std::string difference;  // empty = none
};

Result<Outcome> loop(const Options& o) {
    TTT_TRY(const spec::LaunchSpec launch, spec::read_file(o.spec));
    std::ifstream in(o.file, std::ios::binary);
    if (!in) return make_error(Code::kIo, o.file + ": cannot be read");
    const std::string ptx((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    TTT_TRY(const std::unique_ptr<Kernel> kernel, Kernel::create(ptx, launch));
    TTT_TRY(const Contents first, fresh_launch(*kernel));
    std::vector<bool> written;
    for (size_t i = 0; i < first.size(); ++i) written.push_back(first[i] != kernel->initial()[i]);
    TTT_CHECK_OK(kernel->refill());
    TTT_CHECK_OK(kernel->keep_initial(written));
    Outcome out;
    TTT_TRY(out.launches, keep_launching(*kernel, o, written));
    TTT_TRY(const Contents last, fresh_launch(*kernel));
    out.launches += 2;
    out.first = checksum(first);
    out.last = checksum(last);
    for (size_t i = 0; i < first.size() && out.difference.empty(); ++i)
        for (size_t b = 0; b < first[i].size(); ++b)
            if (first[i][b] != last[i][b]) {
                out.difference = fmt::format("buffer {} differs first at byte {}", i, b);
                break;
            }
    return out;
}

int report(const Options& o, const Outcome& out) {
    const bool identical = out.difference.empty();
    if (o.json)
        fmt::print("{{\"launches\":{},\"first\":\"{}\",\"last\":\"{}\",\"identical\":{}}}\n",
                   out.launches, out.first, out.last, identical);
    else
        fmt::print("{} launches, outputs {}{}\n", out.launches, out.last,
                   identical ? ", the same as at first" : "; at first " + out.first);
    if (identical) return 0;
    fmt::print(stderr, "ttt-kernel-loop: {}\n", out.difference);
    return o.check ? 1 : 0;
}

}  // namespace
}  // namespace ttt::kernel_loop

int main(int argc, char** argv) {
    using namespace ttt::kernel_loop;
    const Options options = parse(argc, argv);
    struct sigaction action {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESETHAND;  // a second one ends it also in the middle of a launch
    sigaction(SIGTERM, &action, nullptr);
    sigaction(SIGINT, &action, nullptr);
    try {
        const auto out = loop(options);
        if (out.ok()) return report(options, *out);
        fmt::print(stderr, "ttt-kernel-loop: {}\n", out.error().str());
        return out.error().code == ttt::Code::kInvalidArgument || out.error().code == ttt::Code::kIo
                   ? 2
                   : 1;
    } catch (const std::bad_alloc&) {
        fmt::print(stderr, "ttt-kernel-loop: out of memory\n");
        return 1;
    }
}
