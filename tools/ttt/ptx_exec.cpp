// `ttt ptx exec`: one launch in the interpreter, each buffer its own bounds-checked allocation.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "commands.h"
#include "kernel_file.h"
#include "ptx/interpreter.h"
#include "spec/sha256.h"

namespace ttt::cli {
namespace {

constexpr uint64_t kPrintedWhole = uint64_t{1} << 20;  // bytes; larger buffers print as sha256
constexpr uint64_t kFirstVariable = 0x10000000ull;     // below every buffer

struct Buffers {
    std::vector<uint64_t> addresses;
    std::vector<std::vector<std::byte>> bytes;
    std::vector<size_t> args;  // argument index of each
};

Result<Buffers> make_buffers(const spec::LaunchSpec& launch, ptx::AddressSpace& space) {
    Buffers b;
    b.addresses = place_buffers(launch);
    for (size_t i = 0; i < launch.args.size(); ++i) {
        if (launch.args[i].kind != spec::Argument::Kind::kBuffer) continue;
        TTT_TRY(auto data, spec::materialise(launch.args[i]));
        b.bytes.push_back(std::move(data));
        b.args.push_back(i);
    }
    for (size_t i = 0; i < b.bytes.size(); ++i)
        if (!b.bytes[i].empty())
            TTT_CHECK_OK(
                space.add({b.addresses[i], b.bytes[i].size(), b.bytes[i].data(), true, true}));
    return b;
}

struct Execution {
    std::string error;  // empty = none
    ptx::LaunchResult result;
};

Execution execute(const ptx::Module& module, const spec::LaunchSpec& launch,
                  std::span<const std::byte> params, ptx::AddressSpace& space) {
    Execution e;
    auto loaded = ptx::LoadedModule::load(module, space, kFirstVariable);
    if (!loaded.ok()) return {loaded.error().str(), {}};
    for (const auto& [name, contents] : launch.variables) {
        const auto bytes = spec::materialise(contents);
        if (!bytes.ok()) return {bytes.error().str(), {}};
        if (const Status s = ptx::set_variable(**loaded, space, name, *bytes); !s.ok())
            return {s.error().str(), {}};
    }
    auto program = ptx::Program::decode(**loaded, launch.entry);
    if (!program.ok()) return {program.error().str(), {}};
    ptx::LaunchRequest request;
    request.grid = launch.grid;
    request.block = launch.block;
    request.dynamic_shared = launch.shared;
    request.params = params;
    request.host_threads = std::max(1u, std::thread::hardware_concurrency());
    e.result = (*program)->run(space, request);
    if (e.result.fault) e.error = e.result.fault->message;
    return e;
}

nlohmann::ordered_json as_json(const Execution& e, const Buffers& buffers) {
    nlohmann::ordered_json out;
    out["error"] =
        e.error.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(e.error);
    out["buffers"] = nlohmann::ordered_json::array();
    for (size_t i = 0; i < buffers.bytes.size(); ++i) {
        nlohmann::ordered_json one{{"arg", buffers.args[i]}};
        if (buffers.bytes[i].size() > kPrintedWhole)
            one["sha256"] = spec::sha256_hex(buffers.bytes[i]);
        else
            one["hex"] = spec::to_hex(buffers.bytes[i]);
        out["buffers"].push_back(std::move(one));
    }
    const auto& c = e.result.counters;
    out["counters"] = {{"thread_instructions", c.thread_instructions},
                       {"global_sectors_read", c.global_sectors_read},
                       {"global_sectors_written", c.global_sectors_written}};
    return out;
}

void print_text(const nlohmann::ordered_json& out, const std::string& printed) {
    if (!out["error"].is_null()) fmt::print("error: {}\n", out["error"].get<std::string>());
    for (const auto& b : out["buffers"]) {
        std::string shown = b.contains("hex") ? b["hex"].get<std::string>()
                                              : "sha256 " + b["sha256"].get<std::string>();
        if (b.contains("hex") && shown.size() > 128)
            shown = shown.substr(0, 128) + fmt::format("… ({} bytes)", shown.size() / 2);
        fmt::print("arg {}: {}\n", b["arg"].get<size_t>(), shown);
    }
    for (const auto& [key, value] : out["counters"].items())
        fmt::print("{}: {}\n", key, value.get<uint64_t>());
    if (!printed.empty()) fmt::print("printf output:\n{}", printed);
}

}  // namespace

int ptx_exec(const KernelOptions& options) {
    auto launch = spec::read_file(options.spec);
    if (!launch.ok()) return complain(kUsage, launch.error().str());
    auto text = read_text_file(options.file);
    if (!text.ok()) return complain(kUsage, text.error().str());
    ptx::AddressSpace space;
    auto buffers = make_buffers(*launch, space);
    if (!buffers.ok()) return complain(kUsage, buffers.error().str());
    Execution e;
    auto module = read_module(options.file);
    if (!module.ok()) {
        // A module the driver would refuse is a kernel error, as it is for a program.
        const Error& bad = module.error();
        e.error = bad.line != 0
                      ? fmt::format("{} (line {}, column {})", bad.str(), bad.line, bad.column)
                      : bad.str();
    } else {
        auto entry = find_entry(*module, launch->entry);
        if (!entry.ok()) return complain(kUsage, entry.error().str());
        auto params = spec::pack_params(*module, **entry, *launch, buffers->addresses);
        if (!params.ok()) return complain(kUsage, params.error().str());
        e = execute(*module, *launch, *params, space);
    }
    const auto out = as_json(e, *buffers);
    if (options.json)
        fmt::print("{}\n", out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    else
        print_text(out, e.result.printf_output);
    return e.error.empty() ? kOk : kFailed;
}

}  // namespace ttt::cli
