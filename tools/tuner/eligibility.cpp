#include "tuner/eligibility.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "xform/variables.h"

namespace ttt::tuner {
namespace {

std::string summary_reason(const ptx::KernelSummary& s) {
    if (!s.ineligible_reason.empty()) return s.ineligible_reason;
    if (!s.globals_written.empty())
        return fmt::format("it writes the module variable {}", s.globals_written.front());
    if (s.loaded_pointers) return "it follows pointers stored in memory";
    if (s.float_atomics)
        return "it adds floating-point numbers atomically: their order is not fixed";
    return {};
}

// The PTX must describe the very kernel that was loaded.
std::string foreign(const Site& site, const ptx::Module& module, const ptx::Function& entry) {
    const auto layout = ptx::param_layout(module, entry);
    const auto& loaded = site.kernel.params;
    if (layout.size() != loaded.size())
        return fmt::format("foreign PTX: {} parameters, the loaded kernel has {}", layout.size(),
                           loaded.size());
    for (size_t i = 0; i < layout.size(); ++i)
        if (layout[i].offset != loaded[i].first || layout[i].size != loaded[i].second)
            return fmt::format("foreign PTX: parameter {} differs from the loaded kernel's", i);
    return {};
}

uint64_t pointer_value(const measure::Launch& launch, uint32_t offset) {
    uint64_t v = 0;
    if (launch.params.size() >= sizeof v && offset <= launch.params.size() - sizeof v)
        std::memcpy(&v, launch.params.data() + offset, sizeof v);
    return v;
}

std::string add_region(const Site& site, const ptx::PointerUse& use,
                       std::vector<measure::Region>& regions) {
    const uint64_t value = pointer_value(site.launch, use.offset);
    if (value == 0) return {};  // an absent optional argument
    auto target = std::find_if(site.targets.begin(), site.targets.end(),
                               [&](const Target& t) { return t.offset == use.offset; });
    if (target == site.targets.end() || target->size == 0)
        return fmt::format("the pointer at parameter byte {} leads to no known allocation",
                           use.offset);
    if (!target->device_memory)
        return fmt::format("the pointer at parameter byte {} is not ordinary device memory",
                           use.offset);
    auto region = std::find_if(regions.begin(), regions.end(),
                               [&](const measure::Region& r) { return r.address == target->base; });
    if (region == regions.end()) {
        measure::Region r;
        r.address = target->base;
        r.bytes = target->size;
        r.read = r.written = false;
        region = regions.insert(regions.end(), r);
    } else if (region->bytes != target->size) {
        return "two of its pointers lead to overlapping allocations";
    }
    region->read |= use.read || use.atomic || !use.written;
    region->written |= use.written || use.atomic;
    region->pointers.push_back(use.offset);
    return {};
}

std::string overlap(std::vector<measure::Region> regions) {
    std::sort(regions.begin(), regions.end(),
              [](const auto& a, const auto& b) { return a.address < b.address; });
    for (size_t i = 1; i < regions.size(); ++i)
        if (regions[i - 1].address + regions[i - 1].bytes > regions[i].address)
            return "two of its pointers lead to overlapping allocations";
    return {};
}

// The program may change them between launches, so their bytes are inputs. Where they lie is the
// driver's to say.
std::string add_variables(const ptx::Module& module, const ptx::Function& entry,
                          std::vector<measure::Region>& regions) {
    const xform::VariablePlan plan = xform::plan_variables(module, entry);
    if (!plan.why.empty()) return plan.why;
    for (const xform::ModuleVariable& v : plan.variables) {
        measure::Region r;
        r.bytes = v.bytes;
        r.variable = v.name;
        regions.push_back(std::move(r));
    }
    return {};
}

}  // namespace

bool same_kinds(const std::vector<measure::Region>& asked,
                const std::vector<measure::Region>& taken) {
    return std::ranges::equal(asked, taken, [](const auto& a, const auto& t) {
        return a.bytes == t.bytes && a.variable == t.variable && a.written == t.written;
    });
}

Eligibility examine(const Site& site, const ModuleCode& code) {
    Eligibility e;
    if (!code.ptx) {
        e.reason = code.no_ptx;
        return e;
    }
    const ptx::Function* entry = code.ptx->find(site.kernel.name);
    if (entry == nullptr || !entry->is_entry) {
        e.reason = "its module's PTX does not hold the kernel";
        return e;
    }
    e.reason = foreign(site, *code.ptx, *entry);
    if (!e.reason.empty()) return e;
    e.summary = ptx::summarise(*code.ptx, *entry);
    e.reason = summary_reason(e.summary);
    for (const auto& use : e.summary.pointers) {
        if (!e.reason.empty()) return e;
        e.reason = add_region(site, use, e.regions);
    }
    if (e.reason.empty()) e.reason = overlap(e.regions);
    if (e.reason.empty()) e.reason = add_variables(*code.ptx, *entry, e.regions);
    const bool writes =
        std::any_of(e.regions.begin(), e.regions.end(), [](const auto& r) { return r.written; });
    if (e.reason.empty() && !writes) e.reason = "it writes nothing that could be compared";
    return e;
}

}  // namespace ttt::tuner
