#include "xform/transforms/memory_nc.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "ptx/dataflow.h"
#include "ptx/loops.h"
#include "xform/knobs.h"

namespace ttt::xform {
namespace {

using ptx::Mod;
using ptx::Opcode;
using ptx::Source;
using ptx::Stmt;

constexpr std::array<std::string_view, 6> kPreconditions = {
    "rounding is pinned",
    "the kernel does not wait for the launch before it (griddepcontrol)",
    "the kernel writes, and only through pointers among its parameters",
    "a plain ld.global reads through a pointer that nothing is written through",
    "no access goes through a pointer loaded from memory or one that cannot be traced",
    "the kernel has no fences and no volatile or ordered accesses",
};

// Buffers and the loads that may become non-coherent, by (function, statement).
struct Plan {
    std::set<std::pair<uint32_t, uint32_t>> loads;
    std::set<uint32_t> read, written;  // parameter buffer offsets
    std::string why;
};

bool is_plain_load(const Stmt& stmt) {
    if (!stmt.is(Opcode::kLd) || stmt.mod_count >= std::size(stmt.mods) || ptx::is_strong(stmt))
        return false;
    if (stmt.space() != ptx::Space::kGlobal) return false;
    for (Mod m : {Mod::kNc, Mod::kWeak, Mod::kLu, Mod::kCv, Mod::kUnified}) {
        if (stmt.has(m)) return false;
    }
    return true;
}

Plan refused(std::string why) {
    Plan plan;
    plan.why = std::move(why);
    return plan;
}

bool holds(const ptx::Module& module, const std::vector<uint32_t>& functions, auto&& predicate) {
    for (uint32_t f : functions) {
        for (const Stmt& stmt : module.functions[f].body) {
            if (stmt.kind == Stmt::Kind::kInstruction && predicate(stmt)) return true;
        }
    }
    return false;
}

Plan make_plan(const ptx::Module& module, const ptx::Function& entry) {
    const ptx::ValueFlow flow(module, entry);
    if (holds(module, flow.functions(),
              [](const Stmt& s) { return s.op == Opcode::kGriddepcontrol; })) {
        return refused("the kernel waits for the launch before it");
    }
    if (holds(module, flow.functions(), [](const Stmt& s) {
            return s.op == Opcode::kOpaque || ptx::is_strong(s) || s.op == Opcode::kFence ||
                   s.op == Opcode::kMembar;
        })) {
        return refused("the kernel orders its memory accesses with those of others");
    }
    Plan plan;
    std::set<uint32_t> written_sources;
    for (const ptx::Access& access : flow.accesses()) {
        for (uint32_t b : access.bases) {
            const Source& s = flow.sources()[b];
            const bool pointer = s.kind == Source::Kind::kParam && s.size == 8;
            if (access.written && s.kind == Source::Kind::kVariable)
                return refused("the kernel writes a module variable");
            if (!pointer && s.kind != Source::Kind::kVariable)
                return refused("an address cannot be traced to a parameter");
            if (access.written) {
                written_sources.insert(b);
                plan.written.insert(s.offset);
            }
        }
    }
    if (plan.written.empty()) return refused("the kernel writes nothing through its parameters");
    for (const ptx::Access& access : flow.accesses()) {
        if (!access.read || access.written) continue;
        if (!is_plain_load(module.functions[access.function].body[access.stmt])) continue;
        const bool safe = std::all_of(access.bases.begin(), access.bases.end(), [&](uint32_t b) {
            return flow.sources()[b].kind == Source::Kind::kParam && !written_sources.contains(b);
        });
        if (!safe) continue;
        plan.loads.insert({access.function, access.stmt});
        for (uint32_t b : access.bases) plan.read.insert(flow.sources()[b].offset);
    }
    if (plan.loads.empty()) plan.why = "no plain global load reads a buffer that is only read";
    return plan;
}

// ld.global{.cop}.nc…: after the space and a cache operator.
void make_noncoherent(Stmt& stmt) {
    uint8_t at = 0;
    for (uint8_t i = 0; i < stmt.mod_count; ++i) {
        const Mod m = stmt.mods[i];
        if (m == Mod::kGlobal || m == Mod::kCa || m == Mod::kCg || m == Mod::kCs)
            at = static_cast<uint8_t>(i + 1);
    }
    for (uint8_t i = stmt.mod_count; i > at; --i) stmt.mods[i] = stmt.mods[i - 1];
    stmt.mods[at] = Mod::kNc;
    ++stmt.mod_count;
    stmt.offset = 0xFFFFFFFFu;
}

}  // namespace

std::string_view MemoryNc::name() const { return "memory.nc"; }
std::string_view MemoryNc::family() const { return "memory"; }
std::span<const std::string_view> MemoryNc::preconditions() const { return kPreconditions; }

std::vector<Step> MemoryNc::propose(const ptx::Module& module, const Context& context,
                                    std::string* why) const {
    const ptx::Function* entry = module.find(context.facts.entry);
    const Plan plan = entry == nullptr ? refused("no such entry") : make_plan(module, *entry);
    *why = plan.why;
    if (!plan.why.empty()) return {};
    return {Step{std::string(name()), {}}};
}

Status MemoryNc::apply(const Step& step, const Context& context, Applied& state) const {
    TTT_CHECK_OK(only_knobs(step, {}));
    if (!state.pinned) return make_error(Code::kUnsupported, "rounding is not pinned");
    const Plan plan = make_plan(state.module, *state.module.find(context.facts.entry));
    if (!plan.why.empty()) return make_error(Code::kUnsupported, plan.why);
    for (const auto& [function, stmt] : plan.loads) {
        make_noncoherent(state.module.functions[function].body[stmt]);
    }
    Guard guard;
    for (uint32_t r : plan.read) {
        for (uint32_t w : plan.written) guard.no_overlap.push_back({r, w});
    }
    state.guard.merge(guard);
    state.notes.push_back(fmt::format("memory.nc: {} loads", plan.loads.size()));
    return ok_status();
}

}  // namespace ttt::xform
