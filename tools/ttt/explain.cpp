// `ttt explain FILE.ptx`: what the data-flow summary says about each kernel, and whether it may be
// tuned.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "commands.h"
#include "kernel_file.h"
#include "ptx/summary.h"

namespace ttt::cli {
namespace {

using Json = nlohmann::ordered_json;

Json features(const ptx::KernelSummary& s) {
    Json out = Json::array();
    const auto add = [&out](bool on, const char* name) {
        if (on) out.push_back(name);
    };
    add(s.barriers, "barriers");
    add(s.warp_ops, "warp operations");
    add(s.shared, "shared memory");
    add(s.local, "local memory");
    add(s.calls, "calls");
    add(s.indirect_calls, "indirect calls");
    add(s.textures, "textures");
    add(s.matrix, "matrix operations");
    add(s.fences, "fences");
    add(s.volatile_access, "volatile accesses");
    add(s.opaque, "instructions not understood");
    add(s.device_launch, "device-side launch");
    add(s.approx, "approximate operations");
    add(s.float_unrounded, "rounding left to the assembler");
    add(s.atomics, "atomics");
    add(s.float_atomics, "floating-point atomics");
    add(s.spins, "waits for other blocks");
    add(s.special_ids, "placement or time");
    add(s.partial_warp, "partial-warp operations");
    add(s.pointer_value_leaks, "a pointer's value used as data");
    add(s.loaded_pointers, "pointers loaded from memory");
    return out;
}

std::string kind_of(const ptx::ParamUse& p) {
    if (p.pointer) return p.scalar ? "pointer, also used as a value" : "pointer";
    if (p.scalar) return p.reaches_approx ? "scalar, reaches an approximate operation" : "scalar";
    return "unused";
}

Json explain_entry(const ptx::Module& module, const ptx::Function& entry) {
    const auto s = ptx::summarise(module, entry);
    Json params = Json::array(), pointers = Json::array();
    for (const auto& p : s.params)
        params.push_back({{"offset", p.offset}, {"size", p.size}, {"use", kind_of(p)}});
    for (const auto& p : s.pointers)
        pointers.push_back({{"offset", p.offset},
                            {"read", p.read},
                            {"written", p.written},
                            {"atomic", p.atomic},
                            {"element_bytes", p.element_bytes}});
    return {{"name", entry.name},
            {"eligible", s.ineligible_reason.empty()},
            {"reason", s.ineligible_reason},
            {"instructions", s.instructions},
            {"loops", s.loops},
            {"features", features(s)},
            {"params", params},
            {"pointers", pointers},
            {"globals_read", s.globals_read},
            {"globals_written", s.globals_written}};
}

void print_entry(const Json& e) {
    fmt::print("{}: {}\n", e["name"].get<std::string>(),
               e["eligible"].get<bool>() ? "may be tuned"
                                         : "left alone: " + e["reason"].get<std::string>());
    fmt::print("  {} instructions, {} loops\n", e["instructions"].get<uint32_t>(),
               e["loops"].get<uint32_t>());
    for (const auto& p : e["params"])
        fmt::print("  parameter at {}: {} bytes, {}\n", p["offset"].get<uint32_t>(),
                   p["size"].get<uint32_t>(), p["use"].get<std::string>());
    for (const auto& p : e["pointers"])
        fmt::print("  pointer at {}:{}{}{}, widest access {} bytes\n", p["offset"].get<uint32_t>(),
                   p["read"].get<bool>() ? " read" : "", p["written"].get<bool>() ? " written" : "",
                   p["atomic"].get<bool>() ? " atomic" : "", p["element_bytes"].get<uint32_t>());
    std::string all;
    for (const auto& f : e["features"]) all += (all.empty() ? "" : ", ") + f.get<std::string>();
    if (!all.empty()) fmt::print("  uses {}\n", all);
}

}  // namespace

int explain_file(const KernelOptions& o) {
    std::string only;
    if (!o.spec.empty()) {
        const auto launch = spec::read_file(o.spec);
        if (!launch.ok()) return complain(kUsage, launch.error().str());
        only = launch->entry;
    }
    const auto module = read_module(o.file);
    if (!module.ok()) {
        const Error& e = module.error();
        if (e.code == Code::kIo) return complain(kUsage, e.str());
        return complain(
            kFailed, e.line != 0 ? fmt::format("{} (line {}, column {})", e.str(), e.line, e.column)
                                 : e.str());
    }
    if (!only.empty())
        if (const auto found = find_entry(*module, only); !found.ok())
            return complain(kUsage, found.error().str());
    Json entries = Json::array();
    for (const auto& f : module->functions)
        if (f.is_entry && f.has_body && (only.empty() || f.name == only))
            entries.push_back(explain_entry(*module, f));
    if (o.json)
        fmt::print("{}\n", Json{{"file", o.file}, {"entries", entries}}.dump(
                               -1, ' ', false, Json::error_handler_t::replace));
    else
        for (const auto& e : entries) print_entry(e);
    if (!o.json && !o.spec.empty()) {
        fmt::print("recipes:\n");
        return variants(o);
    }
    return kOk;
}

}  // namespace ttt::cli
