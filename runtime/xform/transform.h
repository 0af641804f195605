// The transform interface. A transform is small, immutable, deterministic; it edits a clone of the
// module and adds to the guard every assumption it makes. Preconditions are English bullets, each
// with a "does not apply" test.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ptx/ir.h"
#include "ptx/launch.h"
#include "ptx/summary.h"
#include "xform/guard.h"
#include "xform/recipe.h"
#include "xform/variables.h"

namespace ttt::xform {

struct CompileControls {         // what a recipe asks of the assembler beside the text
    uint32_t max_registers = 0;  // 0 = none
    std::vector<std::string> ptxas_options;
};

struct Context {  // inputs of apply(); no ownership
    const ptx::LaunchFacts& facts;
    const ptx::KernelSummary& summary;
    // Machine code of the program's own kernel, if known: pin_rounding checks its counts against
    // it.
    struct FusedCounts {
        uint32_t ffma, fmul, fadd, dfma, dmul, dadd;
    };
    std::optional<FusedCounts> program_code;
    // What decide_pinning() (xform/pinning.h) found for this kernel; without it pin_rounding
    // predicts, unchecked.
    struct Pinning {
        bool possible = true;  // false: only `registers` may be tried
        std::string rule;      // knob `rule` of pin_rounding; empty = the default rule
        std::string evidence;  // one line
    };
    std::optional<Pinning> pinning;
};

struct Applied {
    ptx::Module module;
    Guard guard;
    Dim3 grid, block;  // of the variant's launch
    uint32_t dynamic_shared = 0;
    CompileControls controls;
    bool pinned = false;              // rounding is explicit everywhere in the entry
    std::vector<VariableCell> cells;  // to be filled when the variant is loaded
    std::vector<std::string> notes;
};

class Transform {
  public:
    virtual ~Transform() = default;
    virtual std::string_view name() const = 0;    // "registers", "memory.nc"
    virtual std::string_view family() const = 0;  // design.md §6
    virtual std::span<const std::string_view> preconditions() const = 0;
    // Steps worth trying on this kernel; empty with `why` set when the transform does not apply.
    virtual std::vector<Step> propose(const ptx::Module& module, const Context& context,
                                      std::string* why) const = 0;
    // Edits `state`; an error leaves the whole recipe not applicable.
    virtual Status apply(const Step& step, const Context& context, Applied& state) const = 0;
};

std::span<const Transform* const> all_transforms();  // from transforms.def
const Transform* find_transform(std::string_view name);

// Pure: the module with only `facts.entry` and what it needs, transformed step by step, verified
// after each step (the culprit is named). The same recipe and module always give the same text.
Result<Applied> apply(const Recipe& recipe, const ptx::Module& module, const Context& context);

// The steps that every recipe of the kernel must begin with: bind_variables where it names module
// variables, otherwise none.
std::vector<Step> required_steps(const ptx::Module& module, const Context& context);

// Every recipe to try for one kernel in this "try all" search, cheapest first; `skipped`
// explains the rest.
struct Skipped {
    std::string transform, reason;
};
std::vector<Recipe> candidates(const ptx::Module& module, const Context& context,
                               std::vector<Skipped>* skipped);

}  // namespace ttt::xform
