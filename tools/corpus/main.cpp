// ttt-corpus: the PTX inside installed CUDA libraries, as the tests see it.
//   ttt-corpus list                      library, module, architecture, bytes, entries, hash of
//   every module ttt-corpus extract LIBRARY INDEX     one module to stdout ttt-corpus check parse,
//   print, parse again, verify everything; figures per library ttt-corpus draw SEED COUNT
//   tests/corpus/corpus.txt to stdout: modules drawn until COUNT entries
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "corpus/draw.h"
#include "corpus/modules.h"
#include "ptx/check.h"

namespace ttt::corpus {
namespace {

int complain(const Error& error) {
    std::fprintf(stderr, "ttt-corpus: %s\n", error.str().c_str());
    return 1;
}

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

int list() {
    for (const std::string& library : toolkit_libraries()) {
        const Status status = for_each_module(library, [&](FoundModule&& m) {
            const Listed row = describe(base_name(library), m);
            std::printf("%s\n", to_line(row).c_str());
            return true;
        });
        if (!status.ok()) return complain(status.error());
    }
    return 0;
}

int extract(const std::string& library, uint32_t index) {
    bool found = false;
    const Status status = for_each_module(library, [&](FoundModule&& m) {
        found = m.index == index;
        if (found) std::fwrite(m.text.data(), 1, m.text.size(), stdout);
        return !found;
    });
    if (!status.ok()) return complain(status.error());
    if (found) return 0;
    return complain(make_error(Code::kNotFound, "no PTX module " + std::to_string(index)));
}

void print_report(const char* name, const ptx::CheckReport& r) {
    std::printf("%-40s %6" PRIu64 " modules %7" PRIu64 " entries %10" PRIu64
                " instructions %8" PRIu64 " opaque %8.1f MB  %zu failures\n",
                name, r.files, r.entries, r.instructions, r.opaque,
                static_cast<double>(r.bytes) / 1e6, r.failures.size());
    for (size_t i = 0; i < r.failures.size() && i < 10; ++i)
        std::printf("    %s: %s\n", r.failures[i].file.c_str(), r.failures[i].error.str().c_str());
    std::fflush(stdout);
}

int check() {
    int failed = 0;
    for (const std::string& library : toolkit_libraries()) {
        ptx::CheckReport report;
        const Status status = for_each_module(library, [&](FoundModule&& m) {
            ptx::check_text(base_name(library) + " " + std::to_string(m.index), std::move(m.text),
                            report);
            return true;
        });
        print_report(base_name(library).c_str(), report);
        if (!status.ok()) return complain(status.error());
        if (!report.failures.empty()) failed = 1;
    }
    return failed;
}

int draw_list(uint64_t seed, uint64_t count) {
    auto drawn = draw(seed, count);
    if (!drawn.ok()) return complain(drawn.error());
    for (const Listed& row : *drawn) std::printf("%s\n", to_line(row).c_str());
    return 0;
}

int run(int argc, char** argv) {
    const std::string command = argc > 1 ? argv[1] : "";
    if (command == "list") return list();
    if (command == "check") return check();
    if (command == "extract" && argc == 4)
        return extract(argv[2], static_cast<uint32_t>(std::strtoul(argv[3], nullptr, 10)));
    if (command == "draw" && argc == 4)
        return draw_list(std::strtoull(argv[2], nullptr, 10), std::strtoull(argv[3], nullptr, 10));
    std::fprintf(stderr,
                 "usage: ttt-corpus list | extract LIBRARY INDEX | check | draw SEED COUNT\n");
    return 2;
}

}  // namespace
}  // namespace ttt::corpus

int main(int argc, char** argv) { return ttt::corpus::run(argc, argv); }
