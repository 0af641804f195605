#include <algorithm>
#include <set>

#include "xform/closure.h"
#include "xform/pinning.h"
#include "xform/transform.h"

namespace ttt::xform {
namespace {

// Builds the list of recipes from what each transform proposes on its own and the pairings that
// pay: constants, folded or not, with the block size and a register target, and non-coherent loads
// with constants.
class Ladder {
  public:
    Ladder(const ptx::Module& module, const Context& context, std::vector<Skipped>* skipped)
        : module_(module), context_(context), skipped_(skipped) {}

    std::vector<Recipe> run() {
        if (!bind()) return {};
        const std::vector<Step> registers = propose("registers");
        const bool pinnable = pin();
        if (!pinnable && bound_) {  // bound text may fuse in other places
            skip("all", "it reads module variables, and rounding cannot be pinned");
            return {};
        }
        for (const Step& step : registers) bound_ ? add_pinned({step}) : add({step});
        if (!pinnable) {
            for (const char* name : {"specialise", "memory.nc"})
                skip(name, "rounding cannot be pinned");
            with_block_size(registers, {});
            return std::move(out_);
        }
        const std::vector<Step> constants = propose("specialise");
        const std::vector<Step> noncoherent = propose("memory.nc");
        for (const Step& step : constants) add_pinned({step});
        if (!noncoherent.empty()) add_pinned({noncoherent.front()});
        if (!constants.empty()) {
            with_constants(constants.back(), registers);
            for (const Step& target : targets(registers)) add_pinned({constants.front(), target});
            if (!noncoherent.empty()) add_pinned({constants.back(), noncoherent.front()});
        }
        if (!noncoherent.empty()) {
            for (const Step& target : targets(registers)) add_pinned({noncoherent.front(), target});
        }
        if (constants.empty()) with_block_size(registers, {});
        return std::move(out_);
    }

  private:
    std::vector<Step> propose(std::string_view name) {
        std::string why;
        std::vector<Step> steps = find_transform(name)->propose(module_, context_, &why);
        if (!why.empty()) skip(name, why);
        return steps;
    }

    void skip(std::string_view name, std::string_view why) {
        if (skipped_ != nullptr) skipped_->push_back({std::string(name), std::string(why)});
    }

    // False when the kernel's module variables cannot be bound. The step is where every recipe
    // starts.
    bool bind() {
        const auto plan = plan_variables(module_, *module_.find(context_.facts.entry));
        if (plan.why.empty() && plan.variables.empty()) return true;
        prefix_ = propose("bind_variables");
        bound_ = !prefix_.empty();
        return bound_;
    }

    // True when recipes beyond `registers` are allowed; remembers the step they start with.
    bool pin() {
        std::string why;
        const std::vector<Step> steps =
            find_transform("pin_rounding")->propose(module_, context_, &why);
        if (!steps.empty()) {
            prefix_.insert(prefix_.end(), steps.begin(), steps.end());
            return true;
        }
        skip("pin_rounding", why);
        return !has_unrounded(module_, *module_.find(context_.facts.entry));
    }

    static std::vector<Step> targets(const std::vector<Step>& registers) {
        std::vector<Step> out;
        for (const Step& step : registers) {
            if (step.knobs.contains("max")) out.push_back(step);
        }
        return out;
    }

    // `head` with the block size as a directive, alone and with each register target.
    void with_block_size(const std::vector<Step>& registers, std::vector<Step> head) {
        const auto sized = std::find_if(registers.begin(), registers.end(),
                                        [](const Step& s) { return s.knobs.contains("reqntid"); });
        const bool pinned = !head.empty() || bound_;
        head.emplace_back();
        const auto emit = [&](const Step& last) {
            head.back() = last;
            pinned ? add_pinned(head) : add(head);
        };
        if (sized != registers.end()) emit(*sized);
        for (Step target : targets(registers)) {
            if (sized != registers.end()) target.knobs["reqntid"] = "";
            emit(target);
        }
    }

    // The most that fold can do after `constants`; nullopt when there is nothing to fold.
    // `beyond_assembler`: it divides or decides what the assembler would leave.
    std::optional<Step> best_fold(const Step& constants, bool* beyond_assembler) const {
        const auto text = [&](const Step& fold) -> std::string {
            Recipe recipe{prefix_};
            recipe.steps.insert(recipe.steps.end(), {constants, fold});
            const auto applied = apply(recipe, module_, context_);
            return applied.ok() ? ptx::print(applied->module) : std::string();
        };
        const Step plain{"fold", {}};
        const std::string plainly = text(plain);
        for (const Step& more :
             {Step{"fold", {{"divide", ""}, {"ranges", ""}}}, Step{"fold", {{"divide", ""}}}}) {
            const std::string got = text(more);
            *beyond_assembler = !got.empty() && got != plainly;
            if (*beyond_assembler) return more;
        }
        return plainly.empty() ? std::nullopt : std::optional(plain);
    }

    // Constants with the block size and register targets. Folded ones where the assembler would
    // not do it; else folding is other text only, a gain where that itself runs.
    void with_constants(const Step& constants, const std::vector<Step>& registers) {
        bool beyond_assembler = false;
        const auto fold = best_fold(constants, &beyond_assembler);
        with_block_size(registers,
                        beyond_assembler ? std::vector{constants, *fold} : std::vector{constants});
        if (!fold) return skip("fold", "nothing to fold");
        add_pinned({constants, *fold});
        if (!registers.empty() && registers.front().knobs.contains("reqntid"))
            add_pinned({constants, *fold, registers.front()});
    }

    void add_pinned(std::vector<Step> steps) {
        steps.insert(steps.begin(), prefix_.begin(), prefix_.end());
        add(std::move(steps));
    }

    void add(std::vector<Step> steps) {
        Recipe recipe{std::move(steps)};
        if (seen_.insert(recipe.str()).second) out_.push_back(std::move(recipe));
    }

    const ptx::Module& module_;
    const Context& context_;
    std::vector<Skipped>* skipped_;
    std::vector<Step> prefix_;
    bool bound_ = false;  // recipes begin with bind_variables
    std::set<std::string> seen_;
    std::vector<Recipe> out_;
};

}  // namespace

std::vector<Step> required_steps(const ptx::Module& module, const Context& context) {
    std::string why;
    return find_transform("bind_variables")->propose(module, context, &why);
}

std::vector<Recipe> candidates(const ptx::Module& module, const Context& context,
                               std::vector<Skipped>* skipped) {
    if (module.find(context.facts.entry) == nullptr) {
        if (skipped != nullptr) skipped->push_back({"all", "the module has no such entry"});
        return {};
    }
    return Ladder(module, context, skipped).run();
}

}  // namespace ttt::xform
