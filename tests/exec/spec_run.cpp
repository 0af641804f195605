#include "spec_run.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "ptx/float_soft.h"

namespace ttt::test {
namespace {

constexpr uint64_t kFirstAddress = 0x700000000000ull, kApart = 16 << 20,
                   kModuleAddress = 0x600000000000ull;

// Distance in units of the last place, from a total order of the bits.
uint64_t ulps_apart(ptx::soft::Format f, uint64_t a, uint64_t b) {
    if (f.is_nan(a) && f.is_nan(b)) return 0;
    const auto order = [&](uint64_t x) {
        const auto magnitude = static_cast<int64_t>(x & (f.sign_bit() - 1));
        return f.negative(x) ? -magnitude : magnitude;
    };
    return static_cast<uint64_t>(std::llabs(order(a) - order(b)));
}

struct Tolerance {
    ptx::soft::Format format;
    uint32_t bytes;
    uint64_t ulps;
};

bool tolerance_of(const std::vector<std::string>& lines, size_t arg, Tolerance& out) {
    for (const std::string& line : lines) {
        std::istringstream in(line);
        size_t which = 0;
        std::string type;
        uint64_t ulps = 0;
        if (!(in >> which >> type >> ulps) || which != arg) continue;
        if (type == "f16") out = {ptx::soft::kF16, 2, ulps};
        if (type == "bf16") out = {ptx::soft::kBF16, 2, ulps};
        if (type == "f32") out = {ptx::soft::kF32, 4, ulps};
        if (type == "f64") out = {ptx::soft::kF64, 8, ulps};
        return true;
    }
    return false;
}

std::string compare(size_t arg, std::span<const std::byte> got, std::span<const std::byte> want,
                    size_t offset, const Tolerance* tolerance) {
    const uint32_t step = tolerance != nullptr ? tolerance->bytes : 1;
    for (size_t i = 0; i + step <= want.size(); i += step) {
        uint64_t a = 0, b = 0;
        std::memcpy(&a, got.data() + offset + i, step);
        std::memcpy(&b, want.data() + i, step);
        if (a == b ||
            (tolerance != nullptr && ulps_apart(tolerance->format, a, b) <= tolerance->ulps))
            continue;
        const size_t word = i / 4 * 4, size = std::min<size_t>(8, want.size() - word);
        return fmt::format("argument {} differs at byte {}: {} instead of {}", arg, offset + i,
                           spec::to_hex(got.subspan(offset + word, size)),
                           spec::to_hex(want.subspan(word, size)));
    }
    return "";
}

}  // namespace

std::string read_text(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
}

Result<std::unique_ptr<SpecRun>> SpecRun::make(const std::string& ptx,
                                               const spec::LaunchSpec& spec) {
    std::unique_ptr<SpecRun> run(new SpecRun);
    TTT_TRY(run->module_, ptx::parse(ptx));
    run->spec_ = spec;
    std::vector<uint64_t> pointers;
    uint64_t next = kFirstAddress;
    for (const spec::Argument& arg : spec.args) {
        run->buffers_.emplace_back();
        run->addresses_.push_back(0);
        if (arg.kind != spec::Argument::Kind::kBuffer) continue;
        TTT_TRY(run->buffers_.back(), spec::materialise(arg));
        const uint64_t address = next;
        run->addresses_.back() = address;
        pointers.push_back(address);
        next = (address + arg.buffer_bytes) / kApart * kApart + 2 * kApart;
        const auto& data = run->buffers_.back();
        if (!data.empty())
            // The vector's heap bytes stay where they are when the vectors themselves move.
            TTT_CHECK_OK(run->space_.add(
                {address, data.size(), const_cast<std::byte*>(data.data()), true, true}));
    }
    const ptx::Function* entry = run->module_.find(spec.entry);
    if (entry == nullptr) return make_error(Code::kNotFound, "no entry " + spec.entry);
    TTT_TRY(run->params_, spec::pack_params(run->module_, *entry, spec, pointers));
    TTT_TRY(run->loaded_, ptx::LoadedModule::load(run->module_, run->space_, kModuleAddress));
    TTT_TRY(run->program_, ptx::Program::decode(*run->loaded_, spec.entry));
    return run;
}

Result<ptx::LaunchResult> SpecRun::launch(unsigned host_threads, bool footprint, uint64_t budget) {
    ptx::LaunchRequest request;
    request.grid = spec_.grid;
    request.block = spec_.block;
    request.dynamic_shared = spec_.shared;
    request.params = params_;
    request.host_threads = host_threads;
    request.want_footprint = footprint;
    request.max_thread_instructions = budget;
    return program_->run(space_, request);
}

std::string check_expectations(SpecRun& run, const std::string& expect,
                               const std::vector<std::string>& approx) {
    const auto list = nlohmann::json::parse(expect, nullptr, false);
    if (!list.is_array() || list.empty()) return "the expectation is no list";
    for (const auto& item : list) {
        const auto arg = item.at("arg").get<size_t>();
        const size_t offset = item.value("offset", size_t{0});
        auto want = spec::from_hex(item.at("hex").get<std::string>());
        if (!want) return "the expectation's hex is malformed";
        const auto& got = run.buffer(arg);
        if (offset + want->size() > got.size()) return "the expectation is longer than the buffer";
        Tolerance t{ptx::soft::kF32, 4, 0};
        const bool relaxed = tolerance_of(approx, arg, t);
        const std::string difference = compare(arg, got, *want, offset, relaxed ? &t : nullptr);
        if (!difference.empty()) return difference;
    }
    return "";
}

}  // namespace ttt::test
