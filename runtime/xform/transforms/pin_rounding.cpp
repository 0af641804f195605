#include "xform/transforms/pin_rounding.h"

#include <fmt/format.h>

#include <array>

#include "xform/knobs.h"
#include "xform/pinning.h"

namespace ttt::xform {
namespace {

constexpr std::array<std::string_view, 3> kPreconditions = {
    "the kernel has a mul, add or sub without explicit rounding",
    "every such operation has a form with explicit rounding",
    "a prediction of fused operations matches the program's machine code, where that is known",
};

}  // namespace

std::string_view PinRounding::name() const { return "pin_rounding"; }
std::string_view PinRounding::family() const { return "rounding"; }
std::span<const std::string_view> PinRounding::preconditions() const { return kPreconditions; }

std::vector<Step> PinRounding::propose(const ptx::Module& module, const Context& context,
                                       std::string* why) const {
    const ptx::Function* entry = module.find(context.facts.entry);
    if (entry == nullptr || !has_unrounded(module, *entry)) {
        *why = "every operation has explicit rounding already";
        return {};
    }
    if (context.pinning && !context.pinning->possible) {
        *why = context.pinning->evidence;
        return {};
    }
    Step step{std::string(name()), {}};
    if (context.pinning && !context.pinning->rule.empty())
        step.knobs["rule"] = context.pinning->rule;
    return {step};
}

Status PinRounding::apply(const Step& step, const Context& context, Applied& state) const {
    TTT_CHECK_OK(only_knobs(step, {"rule"}));
    const auto knob = step.knobs.find("rule");
    const std::string wanted = knob == step.knobs.end() ? "" : knob->second;
    const std::optional<PinRule> rule = find_pin_rule(wanted);
    if (!rule)
        return make_error(Code::kInvalidArgument,
                          fmt::format("pin_rounding: unknown rule '{}'", wanted));
    if (context.pinning && !context.pinning->possible) {
        return make_error(Code::kUnsupported,
                          "rounding cannot be pinned: " + context.pinning->evidence);
    }
    const PinCounts counts =
        pin_in_place(state.module, *state.module.find(context.facts.entry), *rule);
    if (counts.impossible > 0) {
        return make_error(Code::kUnsupported, "an operation has no form with explicit rounding");
    }
    state.pinned = true;
    const bool checked = context.pinning && context.pinning->rule == wanted;
    state.notes.push_back(
        fmt::format("pin_rounding: {} fused, {} rounded, {}", counts.fused, counts.rounded,
                    checked ? context.pinning->evidence : "unchecked against machine code"));
    return ok_status();
}

}  // namespace ttt::xform
