#include "xform/transforms/registers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ptx/dataflow.h"
#include "xform/knobs.h"

namespace ttt::xform {
namespace {

constexpr std::array<std::string_view, 6> kPreconditions = {
    "max is from 24 to 255: the assembler raises less and ignores more",
    "max differs from the entry's own .maxnreg, and a block fits the register file with it",
    "reqntid: the entry does not already require this block size, and allows it",
    "reqntid: knowing the block size makes no operand of an approximate operation a constant",
    "minctas: the block size is known to the assembler (.maxntid or .reqntid)",
    "rounding is pinned where module variables are bound: the text is another one then",
};
constexpr std::array<uint32_t, 8> kLadder = {32, 40, 48, 64, 96, 128, 168, 255};
constexpr uint32_t kRegisterFile = 65536;

using ptx::Directive;
using ptx::Function;

const Directive* find(const Function& entry, std::string_view name) {
    for (const Directive& d : entry.directives) {
        if (d.name == name) return &d;
    }
    return nullptr;
}

void remove(Function& entry, std::string_view name) {
    std::erase_if(entry.directives, [&](const Directive& d) { return d.name == name; });
}

void add(ptx::Module& module, Function& entry, std::string_view name,
         std::vector<uint32_t> values) {
    Directive d;
    d.name = name;
    d.text = module.intern(fmt::format(".{} {}", name, fmt::join(values, ", ")));
    d.values = std::move(values);
    entry.directives.push_back(std::move(d));
}

Dim3 extents(const Directive& d) {
    const auto at = [&](size_t i) { return i < d.values.size() ? d.values[i] : 1; };
    return {at(0), at(1), at(2)};
}

bool fits_register_file(uint32_t registers, const Dim3& block) {
    return uint64_t{(registers + 7) / 8 * 8} * ((block.count() + 31) / 32 * 32) <= kRegisterFile;
}

// Approximate operations whose operand becomes a constant only because the block size is known.
bool block_size_reaches_approximation(const ptx::Module& module, const Function& entry,
                                      const Dim3& block) {
    ptx::KnownValues known;
    const size_t before = ptx::approx_risks(module, entry, known).size();
    known.block = block;
    return ptx::approx_risks(module, entry, known).size() > before;
}

Status check_block(const Context& context, const ptx::Module& module, const Function& entry) {
    const Dim3& block = context.facts.block;
    if (const Directive* d = find(entry, "reqntid"); d != nullptr) {
        return extents(*d) == block
                   ? make_error(Code::kUnsupported, "the entry already requires this block size")
                   : make_error(Code::kUnsupported, "the entry requires another block size");
    }
    if (block.count() == 0 || block.count() > 1024) {
        return make_error(Code::kUnsupported, "the block size is not a possible one");
    }
    if (const Directive* d = find(entry, "maxntid");
        d != nullptr && block.count() > extents(*d).count()) {
        return make_error(Code::kUnsupported, "the block is larger than the entry allows");
    }
    if (block_size_reaches_approximation(module, entry, block)) {
        return make_error(Code::kUnsupported,
                          "the block size would become a constant in an approximate operation");
    }
    return ok_status();
}

Status check_max(const Context& context, const Function& entry, uint32_t max) {
    const Directive* own = find(entry, "maxnreg");
    if (own != nullptr && !own->values.empty() && own->values[0] == max) {
        return make_error(Code::kUnsupported,
                          fmt::format("the entry already has .maxnreg {}", max));
    }
    if (!fits_register_file(max, context.facts.block)) {
        return make_error(Code::kUnsupported,
                          fmt::format("a block of {} threads does not fit with {} registers each",
                                      context.facts.block.count(), max));
    }
    return ok_status();
}

}  // namespace

std::string_view Registers::name() const { return "registers"; }
std::string_view Registers::family() const { return "registers"; }
std::span<const std::string_view> Registers::preconditions() const { return kPreconditions; }

std::vector<Step> Registers::propose(const ptx::Module& module, const Context& context,
                                     std::string* why) const {
    const Function* entry = module.find(context.facts.entry);
    std::vector<Step> out;
    if (entry == nullptr) {
        *why = "no such entry";
        return out;
    }
    const Status block = check_block(context, module, *entry);
    if (block.ok())
        out.push_back({std::string(name()), {{"reqntid", ""}}});
    else
        *why = "reqntid: " + block.error().message;
    for (uint32_t max : kLadder) {
        if (check_max(context, *entry, max).ok())
            out.push_back({std::string(name()), {{"max", std::to_string(max)}}});
    }
    return out;
}

Status Registers::apply(const Step& step, const Context& context, Applied& state) const {
    TTT_CHECK_OK(only_knobs(step, {"max", "reqntid", "minctas"}));
    TTT_TRY(const std::optional<uint32_t> max, integer_knob(step, "max", 24, 255));
    TTT_TRY(const std::optional<uint32_t> ctas, integer_knob(step, "minctas", 1, 32));
    Function* entry = state.module.find(context.facts.entry);
    if (!state.cells.empty() && !state.pinned)
        return make_error(Code::kUnsupported,
                          "module variables are bound, but rounding is not pinned");
    if (step.knobs.empty())
        return make_error(Code::kInvalidArgument, "registers needs max, reqntid or minctas");
    if (has_knob(step, "reqntid")) {
        TTT_CHECK_OK(check_block(context, state.module, *entry));
        remove(*entry, "maxntid");  // the assembler refuses both together
        const Dim3& b = context.facts.block;
        add(state.module, *entry, "reqntid", {b.x, b.y, b.z});
        state.guard.block = b;
    }
    if (max) {
        TTT_CHECK_OK(check_max(context, *entry, *max));
        remove(*entry, "maxnreg");
        add(state.module, *entry, "maxnreg", {*max});
        // A larger block would not launch with this many registers.
        state.guard.block = context.facts.block;
        state.controls.max_registers = *max;
    }
    if (ctas) {
        if (find(*entry, "maxntid") == nullptr && find(*entry, "reqntid") == nullptr) {
            return make_error(Code::kUnsupported,
                              "minctas means nothing without a known block size");
        }
        remove(*entry, "minnctapersm");
        add(state.module, *entry, "minnctapersm", {*ctas});
    }
    return ok_status();
}

}  // namespace ttt::xform
