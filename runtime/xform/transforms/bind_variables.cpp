#include "xform/transforms/bind_variables.h"

#include <fmt/format.h>

#include <array>

#include "xform/closure.h"
#include "xform/knobs.h"
#include "xform/variables.h"

namespace ttt::xform {
namespace {

constexpr std::array<std::string_view, 4> kPreconditions = {
    "the kernel names module variables that are not the compiler's own",
    "it only reads them, and uses their addresses for nothing else",
    "each is defined in the module, of known size, not managed, and holds no addresses",
    "no access to constant memory may reach both such a variable and something else",
};

}  // namespace

std::string_view BindVariables::name() const { return "bind_variables"; }
std::string_view BindVariables::family() const { return "variables"; }
std::span<const std::string_view> BindVariables::preconditions() const { return kPreconditions; }

std::vector<Step> BindVariables::propose(const ptx::Module& module, const Context& context,
                                         std::string* why) const {
    const ptx::Function* entry = module.find(context.facts.entry);
    const VariablePlan plan =
        entry == nullptr ? VariablePlan{{}, "no such entry"} : plan_variables(module, *entry);
    *why = plan.why;
    if (why->empty() && plan.variables.empty()) *why = "it names no module variable";
    if (!why->empty()) return {};
    return {Step{std::string(name()), {}}};
}

Status BindVariables::apply(const Step& step, const Context& context, Applied& state) const {
    TTT_CHECK_OK(only_knobs(step, {}));
    if (!state.cells.empty()) return make_error(Code::kInvalidArgument, "bound already");
    const ptx::Function& entry = *state.module.find(context.facts.entry);
    const VariablePlan plan = plan_variables(state.module, entry);
    if (!plan.why.empty()) return make_error(Code::kUnsupported, plan.why);
    if (plan.variables.empty())
        return make_error(Code::kUnsupported, "it names no module variable");
    state.cells = bind_in_place(state.module, entry, plan);
    // Without the variables that nothing names any more.
    TTT_TRY(state.module, extract(state.module, context.facts.entry));
    state.notes.push_back(fmt::format("bind_variables: {}", plan.variables.size()));
    return ok_status();
}

}  // namespace ttt::xform
