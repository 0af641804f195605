// Trials: publishing a variant, its canary, its withdrawal.
#include "base/log.h"
#include "measure/canary.h"
#include "session/driver_section.h"
#include "session/head_start.h"
#include "session/trials.h"

namespace ttt::session {
namespace {

// Replaces the set of every handle of the kernel. Old sets and dispatches stay for ever: a launch
// may be reading them.
void install(Kernel& k, const Dispatch* add, const Dispatch* remove) {
    for (Function* f : k.functions) {
        auto* next = new DispatchSet;
        if (add != nullptr) next->variants.push_back(add);
        if (const DispatchSet* old = f->dispatch.load(std::memory_order_relaxed))
            for (const Dispatch* d : old->variants)
                if (d != remove && d != add && d->mode.load() != DispatchMode::kRetired)
                    next->variants.push_back(d);
        const bool any = !next->variants.empty();
        f->dispatch.store(next, std::memory_order_release);
        if (any)
            f->attention.fetch_or(kHasDispatch, std::memory_order_release);
        else
            f->attention.fetch_and(~uint32_t{kHasDispatch}, std::memory_order_release);
    }
}

}  // namespace

void Trials::swap(Trial& t, const Action& a) {
    std::string problem;
    bool published = false;
    auto it = t.variants.find(a.variant);
    if (shared_.config.mode != "apply")
        problem = "mode is " + shared_.config.mode;
    else if (it == t.variants.end())
        problem = "no such variant";
    else
        published = publish(t, it->second, a.canary ? DispatchMode::kCanary : DispatchMode::kLive,
                            &problem);
    link_.swap(a.site, a.variant, published, problem);
    settled_.insert(a.site);
}

bool Trials::publish(Trial& t, Variant& v, DispatchMode mode, std::string* problem) {
    if (v.published != nullptr) {
        if (!v.published->enter(mode)) {
            *problem = "retired";
            return false;
        }
        shared_.variants_live.store(shared_.variants_live.load() +
                                    (mode == DispatchMode::kLive && !v.counted));
        v.counted = v.counted || mode == DispatchMode::kLive;
        return true;
    }
    {
        const Module* module = t.site->kernel->module;
        const DriverSection section(shared_, t.context->context,
                                    module != nullptr ? module->handle : nullptr);
        if (!section.ok()) {
            *problem = "the context is gone";
            return false;
        }
        Status loaded = load(t, v);
        if (loaded.ok()) loaded = lead_to_program(t, v);
        if (!loaded.ok()) {
            *problem = loaded.error().message;
            return false;
        }
        load_head_start(shared_.driver, head_start_, *t.context->pool);
    }
    Dispatch* d = v.prepared.release();  // lives for ever from here
    d->function = v.function;
    d->context = t.context->context;
    d->grid = v.grid;
    d->block = v.block;
    d->shared = v.shared;
    d->head_start = t.site->mean_ns < kHeadStartBelowNs;
    d->mode.store(mode);
    for (auto& [id, other] : t.variants)  // one variant per site
        if (&other != &v && other.published != nullptr) withdraw(t, other.published);
    v.published = d;
    install(*t.site->kernel, d, nullptr);
    if (mode == DispatchMode::kCanary) canaries_.push_back(d);
    v.counted = mode == DispatchMode::kLive;
    if (v.counted) shared_.variants_live.fetch_add(1);
    log::info("site {} ({}): variant {} published, {}", t.site->id, t.site->kernel->name, v.id,
              mode == DispatchMode::kCanary ? "canary" : "live");
    return true;
}

void Trials::withdraw(Trial& t, const Dispatch* d) {
    d->mode.store(DispatchMode::kRetired);
    install(*t.site->kernel, nullptr, d);
    for (auto& [id, v] : t.variants)
        if (v.published == d && v.counted) {
            v.counted = false;
            shared_.variants_live.fetch_sub(1);
        }
}

void Trials::on_rollback(const ipc::Rollback& m) {
    settled_.insert(m.site_id());
    std::erase_if(actions_,
                  [&](const Action& a) { return a.site == m.site_id() && a.what == What::kSwap; });
    Trial* t = trial(m.site_id());
    if (t == nullptr) return;
    for (auto& [id, v] : t->variants)
        if (v.published != nullptr) withdraw(*t, v.published);
}

std::span<const Dispatch* const> Trials::canaries() {
    std::erase_if(canaries_, [](const Dispatch* d) {
        return d->mode.load(std::memory_order_relaxed) != DispatchMode::kCanary;
    });
    return canaries_;
}

void Trials::canary_sample(const Dispatch* d, bool is_variant, double ns, bool lost) {
    Trial* t = nullptr;
    Variant* v = variant(d->site_id, d->variant_id, &t);
    if (v == nullptr || v->published != d || lost || d->mode.load() != DispatchMode::kCanary)
        return;
    (is_variant ? v->canary_variant : v->canary_original).push_back(ns);
    const size_t pairs = std::min(v->canary_original.size(), v->canary_variant.size());
    const uint32_t next = measure::next_look(v->canary_reported);
    if (next == 0 || pairs < next) return;
    report_canary(*t, *v, pairs);
    // The tuner confirms with a SwapRequest without canary, rolls back, or waits for more; after
    // the last look the original serves until it has decided.
    DispatchMode canary = DispatchMode::kCanary;
    if (measure::next_look(v->canary_reported) == 0)
        d->mode.compare_exchange_strong(canary, DispatchMode::kWaiting);
}

void Trials::report_canary(const Trial& t, Variant& v, size_t pairs) {
    v.canary_reported = static_cast<uint32_t>(pairs);
    link_.canary(t.site->id, v.id, v.canary_original, v.canary_variant, v.published->failed.load());
}

void Trials::notice_failures() {
    const uint64_t failures = shared_.variant_failures.load(std::memory_order_relaxed);
    if (failures == failures_seen_) return;
    failures_seen_ = failures;
    for (auto& [id, t] : trials_)
        for (auto& [vid, v] : t->variants) {
            if (v.published == nullptr || v.published->failed.load() == 0 || v.failure_noticed)
                continue;
            v.failure_noticed = true;
            report_canary(*t, v, std::min(v.canary_original.size(), v.canary_variant.size()));
            withdraw(*t, v.published);
        }
}

}  // namespace ttt::session
