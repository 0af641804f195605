// `ttt ptx apply` and `ttt variants`: what the transforms make of one kernel, without running
// anything.
#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "kernel_file.h"
#include "referee/referee.h"
#include "xform/transform.h"

namespace ttt::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Kernel {
    ptx::Module module;
    ptx::LaunchFacts facts;
    ptx::KernelSummary summary;
    bool launched = false;  // a launch spec was given
    xform::Context context() const {
        return {.facts = facts, .summary = summary, .program_code = {}, .pinning = {}};
    }
};

Result<Kernel> read_kernel(const KernelOptions& o) {
    spec::LaunchSpec launch;
    launch.entry = o.entry;
    if (!o.spec.empty()) {
        TTT_TRY(launch, spec::read_file(o.spec));
        if (!o.entry.empty() && o.entry != launch.entry)
            return make_error(
                Code::kInvalidArgument,
                fmt::format("--entry {} but the launch spec names {}", o.entry, launch.entry));
    }
    TTT_TRY(ptx::Module module, read_module(o.file));
    TTT_TRY(const ptx::Function* entry, find_entry(module, launch.entry));
    ptx::LaunchFacts facts;
    if (o.spec.empty()) {
        facts = facts_without_launch(module, *entry, o.arch);
    } else {
        TTT_TRY(facts, facts_of(module, *entry, launch, place_buffers(launch), o.arch));
    }
    auto summary = ptx::summarise(module, *entry);
    return Kernel{std::move(module), std::move(facts), std::move(summary), !o.spec.empty()};
}

Json dims(const Dim3& d) { return Json::array({d.x, d.y, d.z}); }

Json describe(const xform::Recipe& recipe, const xform::Applied& a) {
    return {{"recipe", recipe.str()},     {"guard", a.guard.str()},
            {"grid", dims(a.grid)},       {"block", dims(a.block)},
            {"shared", a.dynamic_shared}, {"max_registers", a.controls.max_registers},
            {"pinned", a.pinned},         {"notes", a.notes}};
}

// Exit code of a failure: what the user typed or gave is 2, what the file holds is 1.
int exit_code(const Error& e) {
    switch (e.code) {
        case Code::kInvalidArgument:
        case Code::kNotFound:
        case Code::kIo:
            return kUsage;
        default:
            return kFailed;
    }
}

int complain_about(const Error& e) {
    return complain(
        exit_code(e),
        e.line != 0 ? fmt::format("{} (line {}, column {})", e.str(), e.line, e.column) : e.str());
}

bool write_out(const std::string& path, const std::string& text) {
    if (path == "-") return std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    out << text;
    out.flush();
    return out.good();
}

std::string dump(const Json& j) { return j.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

int ptx_apply(const KernelOptions& o) {
    if (o.json && o.out == "-") return complain(kUsage, "--json and -o - both want stdout");
    const auto recipe = xform::Recipe::parse(o.recipe);
    if (!recipe.ok()) return complain(kUsage, "--recipe: " + recipe.error().str());
    if (recipe->steps.empty()) return complain(kUsage, "--recipe: no transform named");
    for (const auto& step : recipe->steps)
        if (xform::find_transform(step.transform) == nullptr)
            return complain(kUsage, "--recipe: no transform '" + step.transform + "'");
    const auto kernel = read_kernel(o);
    if (!kernel.ok()) return complain_about(kernel.error());
    const auto applied = xform::apply(*recipe, kernel->module, kernel->context());
    if (!applied.ok())
        return complain(kFailed, "the recipe does not apply: " + applied.error().str());
    if (!write_out(o.out, ptx::print(applied->module)))
        return complain(kUsage, o.out + ": cannot be written");
    if (o.json) {
        Json j{{"entry", kernel->facts.entry}, {"out", o.out}};
        j.update(describe(*recipe, *applied));
        fmt::print("{}\n", dump(j));
    } else if (!applied->guard.str().empty()) {
        fmt::print(stderr, "guard: {}\n", applied->guard.str());
    }
    return kOk;
}

int variants(const KernelOptions& o) {
    const auto kernel = read_kernel(o);
    if (!kernel.ok()) return complain_about(kernel.error());
    Json list = Json::array(), skipped = Json::array();
    const auto& why_not = kernel->summary.ineligible_reason;
    if (why_not.empty()) {
        std::vector<xform::Skipped> skips;
        for (const auto& recipe : xform::candidates(kernel->module, kernel->context(), &skips)) {
            const auto applied = xform::apply(recipe, kernel->module, kernel->context());
            if (!applied.ok()) {
                skips.push_back({recipe.str(), applied.error().str()});
                continue;
            }
            const auto verdict =
                referee::check_static(kernel->module, applied->module, kernel->facts.entry);
            if (verdict.outcome == referee::Outcome::kReject)
                skips.push_back({recipe.str(), verdict.evidence});
            else
                list.push_back(describe(recipe, *applied));
        }
        for (const auto& s : skips)
            skipped.push_back({{"transform", s.transform}, {"reason", s.reason}});
    }
    if (o.json) {
        fmt::print("{}\n", dump({{"entry", kernel->facts.entry},
                                 {"eligible", why_not.empty()},
                                 {"reason", why_not},
                                 {"variants", list},
                                 {"skipped", skipped}}));
        return kOk;
    }
    if (!why_not.empty()) fmt::print("{}: not eligible: {}\n", kernel->facts.entry, why_not);
    for (const auto& v : list)
        fmt::print("{:<60} {}\n", v["recipe"].get<std::string>(), v["guard"].get<std::string>());
    for (const auto& s : skipped)
        fmt::print("skipped {}: {}\n", s["transform"].get<std::string>(),
                   s["reason"].get<std::string>());
    return kOk;
}

}  // namespace ttt::cli
