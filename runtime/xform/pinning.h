// Rounding made explicit. PTX leaves to the assembler whether mul and add fuse; every recipe but
// `registers` starts from PTX in which that is written out as the program's own machine code has
// it.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ptx/ir.h"
#include "xform/transform.h"

namespace ttt::xform {

// How fusing is predicted. kDefault: a product with one definition and one use, used in the same
// basic block by an un-rounded add or sub of its kind, is fused; the others vary one condition
// each.
enum class PinRule : uint8_t {
    kDefault,
    kRounded /* nothing fuses */,
    kSecond /* sums of two products: the second */,
    kUses /* several uses, all of them sums */,
    kAcross /* across basic blocks */
};
std::span<const PinRule> pin_rules();  // in the order worth trying
std::string_view name(PinRule rule);   // "" for kDefault
std::optional<PinRule> find_pin_rule(std::string_view name);

struct PinCounts {
    uint32_t fused = 0, rounded = 0, impossible = 0;
};
// Edits the functions reachable from `entry` in place. `impossible`: un-rounded operations without
// a rounded form.
PinCounts pin_in_place(ptx::Module& module, const ptx::Function& entry,
                       PinRule rule = PinRule::kDefault);

// The entry and what it needs, pinned by the default rule. Error when the entry is missing or
// cannot be pinned.
Result<ptx::Module> pin(const ptx::Module& module, std::string_view entry);

bool has_unrounded(const ptx::Module& module, const ptx::Function& entry);

struct AssembledCode {
    Context::FusedCounts counts{};
    std::vector<std::byte> text;  // machine code of the entry
};
using Assemble = std::function<Result<AssembledCode>(const std::string& ptx)>;

// Finds the rule under which pinned PTX assembles to the same machine code as the original ("equal
// machine code"), else one with the same operation counts as `program` (the original's where not
// given). possible = false, with the reason as evidence, when no rule does.
Context::Pinning decide_pinning(const ptx::Module& module, std::string_view entry,
                                const Assemble& assemble,
                                const std::optional<Context::FusedCounts>& program = std::nullopt);

}  // namespace ttt::xform
