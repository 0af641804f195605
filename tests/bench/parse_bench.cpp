// Bytes per second of the PTX front end on real text: MB/s is the figure to read (20 MB/s is the
// floor).
#include <benchmark/benchmark.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "ptx/cfg.h"
#include "ptx/ir.h"

namespace {

using Text = std::shared_ptr<const std::string>;

const std::vector<Text>& texts() {
    static const std::vector<Text> all = [] {
        std::vector<Text> read;
        for (const auto& entry :
             std::filesystem::directory_iterator(TTT_SOURCE_DIR "/tests/data/ptx")) {
            if (entry.path().extension() != ".ptx") continue;
            std::ifstream in(entry.path(), std::ios::binary);
            read.push_back(std::make_shared<const std::string>(std::istreambuf_iterator<char>(in),
                                                               std::istreambuf_iterator<char>()));
        }
        return read;
    }();
    return all;
}

int64_t total_bytes() {
    int64_t bytes = 0;
    for (const Text& text : texts()) bytes += static_cast<int64_t>(text->size());
    return bytes;
}

// A fault in the corpus would make a figure of nothing.
std::vector<ttt::ptx::Module> modules(benchmark::State& state) {
    std::vector<ttt::ptx::Module> parsed;
    for (const Text& text : texts()) {
        auto module = ttt::ptx::parse(text);
        if (module.ok()) parsed.push_back(std::move(module).value());
    }
    if (parsed.empty() || parsed.size() != texts().size())
        state.SkipWithError("corpus does not parse");
    return parsed;
}

void count_bytes(benchmark::State& state) {
    state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * total_bytes());
}

void parse(benchmark::State& state) {
    modules(state);
    for (auto _ : state)
        for (const Text& text : texts()) benchmark::DoNotOptimize(ttt::ptx::parse(text));
    count_bytes(state);
}
BENCHMARK(parse)->Unit(benchmark::kMillisecond);

void print(benchmark::State& state) {
    const auto parsed = modules(state);
    for (auto _ : state)
        for (const auto& module : parsed) benchmark::DoNotOptimize(ttt::ptx::print(module));
    count_bytes(state);
}
BENCHMARK(print)->Unit(benchmark::kMillisecond);

void verify(benchmark::State& state) {
    const auto parsed = modules(state);
    for (auto _ : state)
        for (const auto& module : parsed) benchmark::DoNotOptimize(ttt::ptx::verify(module));
    count_bytes(state);
}
BENCHMARK(verify)->Unit(benchmark::kMillisecond);

void clone(benchmark::State& state) {
    const auto parsed = modules(state);
    for (auto _ : state)
        for (const auto& module : parsed) benchmark::DoNotOptimize(module.clone());
    count_bytes(state);
}
BENCHMARK(clone)->Unit(benchmark::kMillisecond);

void flow_graph(benchmark::State& state) {
    const auto parsed = modules(state);
    for (auto _ : state)
        for (const auto& module : parsed)
            for (const auto& function : module.functions)
                if (function.has_body)
                    benchmark::DoNotOptimize(ttt::ptx::build_cfg(module, function));
    count_bytes(state);
}
BENCHMARK(flow_graph)->Unit(benchmark::kMillisecond);

}  // namespace
