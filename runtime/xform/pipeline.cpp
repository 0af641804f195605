#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "xform/closure.h"
#include "xform/pinning.h"
#include "xform/transform.h"
#include "xform/transforms/bind_variables.h"
#include "xform/transforms/fold.h"
#include "xform/transforms/memory_nc.h"
#include "xform/transforms/pin_rounding.h"
#include "xform/transforms/registers.h"
#include "xform/transforms/specialise.h"

namespace ttt::xform {
namespace {

Error at_step(Error error, size_t index, const Step& step) {
    Recipe one;
    one.steps.push_back(step);
    return std::move(error).with(fmt::format("step {} ({})", index + 1, one.str()));
}

}  // namespace

std::span<const Transform* const> all_transforms() {
#define TTT_TRANSFORM(type) static const type k##type;
#include "xform/transforms.def"
#undef TTT_TRANSFORM
    static const Transform* const kAll[] = {
#define TTT_TRANSFORM(type) &k##type,
#include "xform/transforms.def"
#undef TTT_TRANSFORM
    };
    return kAll;
}

const Transform* find_transform(std::string_view name) {
    for (const Transform* t : all_transforms()) {
        if (t->name() == name) return t;
    }
    return nullptr;
}

Result<Applied> apply(const Recipe& recipe, const ptx::Module& module, const Context& context) {
    Applied state;
    TTT_TRY(state.module, extract(module, context.facts.entry));
    state.grid = context.facts.grid;
    state.block = context.facts.block;
    state.dynamic_shared = context.facts.dynamic_shared;
    state.pinned = !has_unrounded(state.module, *state.module.find(context.facts.entry));
    for (size_t i = 0; i < recipe.steps.size(); ++i) {
        const Step& step = recipe.steps[i];
        const Transform* transform = find_transform(step.transform);
        if (transform == nullptr) {
            return at_step(make_error(Code::kInvalidArgument, "no such transform"), i, step);
        }
        if (Status done = transform->apply(step, context, state); !done.ok()) {
            return at_step(std::move(done).error(), i, step);
        }
        if (Status sound = ptx::verify(state.module); !sound.ok()) {
            return at_step(std::move(sound).error().with("broke the module"), i, step);
        }
    }
    return state;
}

}  // namespace ttt::xform
