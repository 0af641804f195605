// Compares ptxas with nvJitLink on the same PTX: processor time, and whether the machine code of
// each function is the same, byte for byte. Needs a CUDA toolkit, no GPU.
//   ttt-bench-compilers SOURCE_DIR [SEED] [MODULES]
// Takes the suite, the committed modules of CUB, CuPy, Warp and Triton, and MODULES (60) drawn by
// SEED (1) from tests/corpus/corpus.txt. Prints Markdown.
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <span>

#include "base/hash.h"
#include "compile/backend.h"
#include "compile/toolkit.h"
#include "corpus/draw.h"
#include "image/elf.h"
#include "ptx/ir.h"

namespace ttt::bench {
namespace {

using corpus::Sample;
using Clock = std::chrono::steady_clock;
using Code = std::map<std::string, std::string>;  // .text.<entry> → bytes

struct Group {
    std::string name;
    std::vector<Sample> samples;
};

struct Way {  // to assemble PTX
    std::string name;
    std::unique_ptr<compile::Backend> backend;
    std::vector<std::string> options;
    std::string linker;  // empty: what the backend gives is a program image
};

struct Tally {  // of one way over one group
    size_t functions = 0, same_as_whole = 0, same_as_linked = 0;
    std::vector<double> cpu_ms, wall_ms;  // per module
};

double milliseconds(const timeval& t) {
    return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_usec) / 1e3;
}

// Of this process and of the children it has waited for: other programs on the machine do not
// count.
double cpu_now() {
    double total = 0;
    for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
        rusage usage{};
        ::getrusage(who, &usage);
        total += milliseconds(usage.ru_utime) + milliseconds(usage.ru_stime);
    }
    return total;
}

std::string target_of(const std::string& ptx) {
    const auto module = ptx::parse(ptx);
    const std::string target(module.ok() ? module->target : "");
    return target.substr(0, target.find_first_of(" ,"));
}

std::string read_file(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

// A relocatable object as a program image; "" when the linker refuses it.
std::string link(const std::string& nvlink, const std::string& object, const std::string& arch) {
    const auto folder = std::filesystem::temp_directory_path();
    const auto in = folder / fmt::format("ttt-compilers-{}.o", ::getpid()),
               out = folder / fmt::format("ttt-compilers-{}.cubin", ::getpid());
    std::ofstream(in, std::ios::binary) << object;
    const int status = std::system(fmt::format("'{}' -arch={} '{}' -o '{}' >/dev/null 2>&1", nvlink,
                                               arch, in.string(), out.string())
                                       .c_str());
    std::string linked = status == 0 ? read_file(out) : "";
    std::filesystem::remove(in);
    std::filesystem::remove(out);
    return linked;
}

Result<Code> assemble(const Way& way, const Sample& sample, Tally& tally) {
    const double cpu = cpu_now();
    const auto start = Clock::now();
    TTT_TRY(compile::Output made,
            way.backend->assemble({sample.text, target_of(sample.text), way.options}));
    if (!way.linker.empty()) made.cubin = link(way.linker, made.cubin, target_of(sample.text));
    tally.cpu_ms.push_back(cpu_now() - cpu);
    tally.wall_ms.push_back(
        std::chrono::duration<double, std::milli>(Clock::now() - start).count());
    TTT_TRY(const image::ElfFile elf, image::read_elf(std::as_bytes(std::span(made.cubin))));
    Code code;
    for (const image::Section& s : elf.sections)
        if (s.name.starts_with(".text."))
            code.emplace(std::string(s.name),
                         std::string(reinterpret_cast<const char*>(s.data.data()), s.data.size()));
    return code;
}

size_t same_functions(const Code& a, const Code& b) {
    size_t same = 0;
    for (const auto& [section, bytes] : a) {
        const auto it = b.find(section);
        same += it != b.end() && it->second == bytes ? 1 : 0;
    }
    return same;
}

// Ways 0 and 1 are those that the others are compared with.
void compare(const std::vector<Way>& ways, const Sample& sample, std::vector<Tally>& tallies,
             std::vector<std::string>& refused) {
    std::vector<Code> made;
    for (size_t w = 0; w < ways.size(); ++w) {
        auto code = assemble(ways[w], sample, tallies[w]);
        if (!code.ok())
            return refused.push_back(sample.name + ", " + ways[w].name + ": " +
                                     code.error().str().substr(0, 160));
        made.push_back(std::move(code).value());
    }
    for (size_t w = 0; w < ways.size(); ++w) {
        tallies[w].functions += made[w].size();
        tallies[w].same_as_whole += same_functions(made[w], made[0]);
        tallies[w].same_as_linked += same_functions(made[w], made[1]);
    }
}

std::string times(std::vector<double> ms) {
    if (ms.empty()) return "-";
    double sum = 0;
    for (double t : ms) sum += t;
    std::nth_element(ms.begin(), ms.begin() + static_cast<ptrdiff_t>(ms.size() / 2), ms.end());
    return fmt::format("{:.0f} ({:.1f} s)", ms[ms.size() / 2], sum / 1e3);
}

Sample read_sample(const std::filesystem::path& path) {
    return {path.filename().string(), read_file(path), 0};
}

Result<std::vector<Group>> collect(const std::filesystem::path& source, uint64_t seed,
                                   size_t count) {
    std::vector<Group> groups{{"suite", {}}, {"CUB, CuPy, Warp, Triton", {}}, {"toolkit", {}}};
    groups[0].samples.push_back(read_sample(source / "tests/data/suite/kernels.ptx"));
    for (const auto& e : std::filesystem::recursive_directory_iterator(source / "tests/data/ptx"))
        if (e.path().extension() == ".ptx") groups[1].samples.push_back(read_sample(e.path()));
    std::vector<corpus::Listed> rows =
        corpus::read_list((source / "tests/corpus/corpus.txt").string());
    for (size_t i = rows.size(); i > 1; --i) std::swap(rows[i - 1], rows[splitmix64(seed + i) % i]);
    rows.resize(std::min(rows.size(), count));
    size_t missing = 0;
    TTT_TRY(groups[2].samples, corpus::load(rows, missing));
    if (missing > 0) fmt::print("{} drawn entries are of libraries not installed\n\n", missing);
    return groups;
}

std::string first(const std::vector<std::string>& paths) {
    return paths.empty() ? std::string() : paths.front();
}

Result<std::vector<Way>> open_ways() {
    const std::string ptxas = first(compile::find_ptxas({})),
                      nvjitlink = first(compile::find_nvjitlink({})),
                      worker = compile::find_worker();
    std::vector<Way> ways(4);
    ways[0].name = "ptxas";
    TTT_TRY(ways[0].backend, compile::open_ptxas(ptxas));
    ways[1].name = "ptxas -c, nvlink";
    ways[1].options = {"-c"};
    ways[1].linker = std::filesystem::path(ptxas).replace_filename("nvlink").string();
    TTT_TRY(ways[1].backend, compile::open_ptxas(ptxas));
    ways[2].name = "nvJitLink";
    TTT_TRY(ways[2].backend, compile::open_nvjitlink(nvjitlink));
    ways[3].name = "nvJitLink in ttt-compile";
    TTT_TRY(ways[3].backend, compile::open_nvjitlink_worker(worker, nvjitlink));
    return ways;
}

Status run(const std::filesystem::path& source, uint64_t seed, size_t count) {
    TTT_TRY(const std::vector<Way> ways, open_ways());
    TTT_TRY(const std::vector<Group> groups, collect(source, seed, count));
    fmt::print("{} and {}; seed {}, {} toolkit modules\n\n", ways[0].backend->identity().name,
               ways[2].backend->identity().name, seed, groups[2].samples.size());
    fmt::print(
        "| modules | assembled by | functions | same code as ptxas | same code as ptxas -c, nvlink "
        "| CPU "
        "ms "
        "per module: median (total) | wall ms |\n|---|---|---|---|---|---|---|\n");
    std::vector<std::string> refused;
    for (const Group& group : groups) {
        std::vector<Tally> tallies(ways.size());
        for (const Sample& sample : group.samples) compare(ways, sample, tallies, refused);
        for (size_t w = 0; w < ways.size(); ++w) {
            const Tally& t = tallies[w];
            // The worker outlives its compiles: its processor time is not known here.
            fmt::print("| {} ({}) | {} | {} | {} | {} | {} | {} |\n", group.name,
                       group.samples.size(), ways[w].name, t.functions, t.same_as_whole,
                       t.same_as_linked, w == 3 ? "-" : times(t.cpu_ms), times(t.wall_ms));
        }
    }
    fmt::print("\nRefused: {}\n", refused.empty() ? "none" : "");
    for (const std::string& line : refused) fmt::print("* {}\n", line);
    return ok_status();
}

}  // namespace
}  // namespace ttt::bench

int main(int argc, char** argv) {
    if (argc < 2 || argc > 4) {
        fmt::print(stderr, "usage: ttt-bench-compilers SOURCE_DIR [SEED] [MODULES]\n");
        return 2;
    }
    const auto number = [&](int i, uint64_t otherwise) {
        return argc > i ? std::strtoull(argv[i], nullptr, 10) : otherwise;
    };
    const auto done = ttt::bench::run(argv[1], number(2, 1), number(3, 60));
    if (done.ok()) return 0;
    fmt::print(stderr, "ttt-bench-compilers: {}\n", done.error().str());
    return 1;
}
