// Kernels of tests/data/suite with their launch specs, run in the interpreter.
#pragma once

#include <array>

#include "kernel_case.h"
#include "ptx/interpreter.h"
#include "spec/launch_spec.h"

namespace ttt::xform::test {

inline constexpr std::array kSuite = {"saxpy_h",    "gemm_naive", "permute4",  "softmax_row",
                                      "conv_naive", "nbody",      "stencil27", "heavy",
                                      "gemv",       "transpose",  "relu_u8",   "tiny"};

inline std::string suite_dir() { return std::string(TTT_SOURCE_DIR) + "/tests/data/suite/"; }

// The kernel with its launch; `size` is "" (as on the GPU) or ".small" (for the interpreter).
struct SuiteCase {
    SuiteCase(const std::string& entry, const std::string& size)
        : kernel(read_file(suite_dir() + "kernels.ptx"), entry) {
        auto parsed = spec::read_file(suite_dir() + entry + size + ".json");
        if (!parsed.ok()) {
            ADD_FAILURE() << parsed.error().str();
            return;
        }
        spec = std::move(parsed).value();
        kernel.facts.grid = spec.grid;
        kernel.facts.block = spec.block;
        kernel.facts.dynamic_shared = spec.shared;
        for (const spec::Argument& a : spec.args) {
            if (a.kind == spec::Argument::Kind::kBuffer)
                addresses.push_back(0x10000000 + 0x10000000 * addresses.size());
        }
        auto params =
            spec::pack_params(kernel.module(), *kernel.module().find(entry), spec, addresses);
        if (!params.ok()) {
            ADD_FAILURE() << params.error().str();
            return;
        }
        kernel.facts.params = std::move(params).value();
    }

    KernelCase kernel;
    spec::LaunchSpec spec;
    std::vector<uint64_t> addresses;
};

struct Executed {
    std::vector<std::vector<std::byte>> buffers;
    std::vector<ptx::Footprint::Range> written, read;
    ptx::Counters counters;
    std::string error;
};

inline Executed execute(const ptx::Module& module, const SuiteCase& c) {
    Executed out;
    ptx::AddressSpace space;
    for (const spec::Argument& a : c.spec.args) {
        if (a.kind != spec::Argument::Kind::kBuffer) continue;
        auto bytes = spec::materialise(a);
        if (!bytes.ok()) return out.error = bytes.error().str(), out;
        out.buffers.push_back(std::move(bytes).value());
    }
    for (size_t i = 0; i < out.buffers.size(); ++i) {
        const Status added =
            space.add({c.addresses[i], out.buffers[i].size(), out.buffers[i].data(), true, true});
        if (!added.ok()) return out.error = added.error().str(), out;
    }
    auto loaded = ptx::LoadedModule::load(module, space, 0x700000000);
    if (!loaded.ok()) return out.error = loaded.error().str(), out;
    auto program = ptx::Program::decode(**loaded, c.spec.entry);
    if (!program.ok()) return out.error = program.error().str(), out;
    ptx::LaunchRequest request;
    request.grid = c.spec.grid;
    request.block = c.spec.block;
    request.dynamic_shared = c.spec.shared;
    request.params = c.kernel.facts.params;
    request.want_footprint = true;
    ptx::LaunchResult result = (*program)->run(space, request);
    if (result.fault) out.error = result.fault->message;
    out.written = std::move(result.footprint.written);
    out.read = std::move(result.footprint.read);
    out.counters = result.counters;
    return out;
}

}  // namespace ttt::xform::test
