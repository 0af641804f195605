#include "tuner/site_trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "base/log.h"
#include "tuner/head_start.h"
#include "xform/pinning.h"

namespace ttt::tuner {
namespace {

using referee::Gate;
using referee::Outcome;
using referee::Verdict;

constexpr double kClearlySlower =
    1.10;  // coarse time of a variant over the original's: not worth an exact timing
constexpr size_t kMostTimed = 8;  // per round, and up to twice that
constexpr double kAsGood = 1.03;  // while the coarse time is within this of the best
constexpr int kMostRounds = 3;
constexpr int kMostFaults = 5;  // a site whose candidates keep killing sandboxes is not worth it
constexpr uint64_t kOracleBytes = uint64_t{256} << 20;
constexpr auto kLookAtLease = std::chrono::milliseconds(1);
constexpr auto kSwapPatience = std::chrono::seconds(30);
// For the proofs between the search and the swap: the toll spreads them over many pauses.
constexpr auto kPublishTime = std::chrono::seconds(60);
constexpr auto kLaterLaunch = std::chrono::seconds(10);  // wait for a second launch to record
constexpr uint32_t kSoakLaunches = 1000;

std::string outcome_name(Outcome o) {
    return o == Outcome::kAccept ? "accept" : o == Outcome::kReject ? "reject" : "unknown";
}

}  // namespace

SiteTrial::SiteTrial(const Services& services, Site site, Recorded recorded,
                     std::shared_ptr<const ModuleCode> code, Eligibility eligibility,
                     uint32_t most_local_bytes)
    : services_(services),
      site_(std::move(site)),
      recorded_(std::move(recorded)),
      code_(std::move(code)),
      eligibility_(std::move(eligibility)),
      facts_(facts()),
      context_{facts_, eligibility_.summary, code_->fused_counts(site_.kernel.name), std::nullopt} {
    baseline_.most_local_bytes = most_local_bytes;
    baseline_.float_bytes =
        float_widths(*code_->ptx, *code_->ptx->find(site_.kernel.name), recorded_.snapshot.regions);
    double seconds =
        std::min(services_.config.budget, 1e6);  // as a point in time it must not overflow
    if (services_.program.foreground > 0) seconds = std::min(seconds, services_.program.foreground);
    deadline_ = Clock::now() +
                std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

ptx::LaunchFacts SiteTrial::facts() const {
    ptx::LaunchFacts f;
    f.entry = site_.kernel.name;
    f.grid = launch().grid;
    f.block = launch().block;
    f.dynamic_shared = launch().dynamic_shared;
    f.params = launch().params;
    f.stable = site_.stable;
    f.arch = compile_arch(*code_->ptx, services_.program.arch);
    return f;
}

void SiteTrial::run() {
    services_.ledger.update(site_.id, [&](SiteRecord& r) {
        r.state = "tuning";
        r.base_us = (recorded_.original_ns > 0 ? recorded_.original_ns : site_.mean_ns) / 1000;
    });
    services_.sandbox.use(&recorded_);
    prover_ = std::make_unique<Prover>(site_, *code_, services_.program, context_,
                                       services_.sandbox, *services_.compiler, baseline_);
    prover_->set_lease([this] { return lease(); });
    if (!code_->ptx_origin.empty()) note("PTX: " + code_->ptx_origin);
    std::optional<End> e = fidelity();
    if (!e) decide_pinning();
    if (!e) remember_original();
    if (!e) e = oracle();
    if (!e) e = check_assembler();
    if (!e) e = from_store();
    if (!e && !leader_) e = search(xform::candidates(*code_->ptx, context_, nullptr));
    if (!e) e = publish();
    // Whatever a trial without its sandbox concluded says nothing about the kernel.
    if (services_.link.starved() && e->state != "canary" && e->state != "validated")
        e = End{"failed", kStarved};
    for (const auto& n : prover_->notes()) note(n);
    prover_.reset();
    services_.sandbox.use(nullptr);
    end(*e);
}

// Outside foreground mode the sandbox, another process, may use the GPU only in the program's
// pauses. It looks at the lease itself before each launch; looking here first keeps it from being
// started, loaded or asked for nothing. An emulated GPU is each process's own.
std::optional<uint32_t> SiteTrial::lease() const {
    const bool free = services_.program.emulated && services_.config.lease != "always";
    if (services_.program.foreground > 0 || free) {
        if (out_of_time()) return std::nullopt;
        return 0;
    }
    while (services_.lease != nullptr && !out_of_time()) {
        if (!services_.lease->granted(std::chrono::nanoseconds(0))) {
            std::this_thread::sleep_for(kLookAtLease);
            continue;
        }
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - Clock::now());
        return static_cast<uint32_t>(std::max<int64_t>(left.count(), 1));
    }
    return std::nullopt;
}

std::optional<SiteTrial::End> SiteTrial::fidelity() {
    const auto patience = lease();
    if (!patience)
        return End{"failed",
                   services_.link.gone() ? "the program ended" : "the program left no idle time"};
    auto loaded = services_.sandbox.load(Prover::kOriginal, code_->image, site_.kernel.name,
                                         code_->jit_max_registers, code_->jit_opt_level);
    if (!loaded.ok())
        return End{"failed", "the original does not load in the sandbox: " + loaded.error().str()};
    ReplayRequest q;
    q.module = Prover::kOriginal;
    q.grid = launch().grid;
    q.block = launch().block;
    q.shared = launch().dynamic_shared;
    q.repeats = services_.program.emulated ? 2 : 6;
    q.lease_ms = *patience;
    q.timeout_ms = 60000;
    auto r = services_.sandbox.replay(q);
    // Killed from outside once says nothing about the kernel.
    if (r.ok() && r->died) r = services_.sandbox.replay(q);
    if (!r.ok()) return End{"failed", r.error().str()};
    if (r->gate == "lease") return End{"failed", r->evidence};
    const bool bits = r->ok;
    services_.ledger.update(site_.id, [&](SiteRecord& s) {
        s.bit_exact_known = bits || r->gate == "bits" || r->gate == "repeat";
        s.bit_exact = bits;
    });
    baseline_.coarse_ns = r->coarse_ns;
    baseline_.wall_ms = r->wall_ms;
    if (bits) return std::nullopt;
    if (r->gate == "repeat")
        return End{"ineligible", "its results change from run to run: " + r->evidence};
    if (r->gate == "bits" || r->gate == "footprint")
        return End{"ineligible",
                   "replayed on the recorded input it gives other bytes (hidden input or race): " +
                       r->evidence};
    return End{"failed", "the original fails in the sandbox: " + r->evidence};
}

void SiteTrial::decide_pinning() {
    compile::Compiler* assembler = services_.assembler;
    if (assembler == nullptr) return;  // the predictor alone, as the emulated GPU does too
    xform::CompileControls controls;
    controls.max_registers = code_->option_max_registers;
    const auto assemble = [&](const std::string& ptx) -> Result<xform::AssembledCode> {
        TTT_TRY(const compile::Compiled c,
                assembler->compile(ptx, facts_.entry, facts_.arch, controls));
        const image::KernelCode& k = c.code;
        return xform::AssembledCode{{k.ffma, k.fmul, k.fadd, k.dfma, k.dmul, k.dadd},
                                    {k.text.begin(), k.text.end()}};
    };
    context_.pinning =
        xform::decide_pinning(*code_->ptx, facts_.entry, assemble, context_.program_code);
    note("rounding: " + context_.pinning->evidence);
}

// So that recipes that change nothing are recognised.
void SiteTrial::remember_original() {
    if (services_.program.emulated) return prover_->set_original_ptx();
    auto text = code_->text(facts_.entry);
    if (text.empty()) {
        xform::CompileControls controls;
        controls.max_registers = code_->option_max_registers;
        auto own = services_.compiler->compile(ptx::print(*code_->ptx), facts_.entry, facts_.arch,
                                               controls);
        if (own.ok()) text.assign(own->code.text.begin(), own->code.text.end());
    }
    prover_->set_original_code(std::move(text));
}

// The module every recipe but `registers` starts from; nullopt when rounding cannot be pinned.
std::optional<xform::Applied> SiteTrial::pinned_module() const {
    const ptx::Function* entry = code_->ptx->find(facts_.entry);
    xform::Recipe recipe{xform::required_steps(*code_->ptx, context_)};
    if (xform::has_unrounded(*code_->ptx, *entry)) {
        if (context_.pinning && !context_.pinning->possible) return std::nullopt;
        xform::Step step{"pin_rounding", {}};
        if (context_.pinning && !context_.pinning->rule.empty())
            step.knobs["rule"] = context_.pinning->rule;
        recipe.steps.push_back(std::move(step));
    }
    auto applied = xform::apply(recipe, *code_->ptx, context_);
    if (!applied.ok()) return std::nullopt;
    return std::move(*applied);
}

std::optional<SiteTrial::End> SiteTrial::oracle() {
    const auto pinned = pinned_module();
    uint64_t bytes = 0;
    for (const auto& r : recorded_.snapshot.regions) bytes += r.bytes;
    if (bytes > kOracleBytes) {
        note(fmt::format("oracle skipped: {} MiB of data", bytes >> 20));
        return std::nullopt;
    }
    auto copy = services_.sandbox.fetch();
    // Only size may skip this gate: a sandbox that cannot answer must not switch the oracle off.
    if (!copy.ok() && copy.error().code != Code::kExhausted)
        return End{"failed", "no copy of the snapshot for the oracle: " + copy.error().str()};
    if (!copy.ok()) {
        note("oracle skipped: " + copy.error().str());
        return std::nullopt;
    }
    referee::OracleInput input;
    input.module = pinned ? &pinned->module : &*code_->ptx;
    input.entry = facts_.entry;
    input.pinned = pinned.has_value();
    input.snapshot = &recorded_.snapshot;
    input.pre = std::move(copy->pre);
    input.post = std::move(copy->post);
    input.instruction_budget = services_.program.emulated ? 30'000'000 : 100'000'000;
    const Verdict v = referee::check_oracle(input, nullptr);
    note(fmt::format("oracle: {}: {}", outcome_name(v.outcome), v.evidence));
    if (v.outcome == Outcome::kReject) return End{"ineligible", v.evidence};
    return std::nullopt;
}

// Machine code made another way must agree with what the program ran, or the assembler is not to be
// trusted here.
std::optional<SiteTrial::End> SiteTrial::check_assembler() {
    if (services_.program.emulated) return std::nullopt;
    if (code_->has_machine_code) {
        xform::CompileControls controls;
        controls.max_registers = code_->option_max_registers;
        auto own = services_.compiler->compile(ptx::print(*code_->ptx), facts_.entry, facts_.arch,
                                               controls);
        if (!own.ok()) return End{"ineligible", "its PTX does not compile: " + own.error().str()};
        const Verdict v = prover_->matches_recording(*own, {}, Gate::kBits);
        if (v.outcome != Outcome::kAccept)
            return End{"ineligible", "foreign PTX: compiled unchanged it differs: " + v.evidence};
    }
    const auto pinned = pinned_module();
    if (!pinned) return std::nullopt;
    xform::CompileControls controls;
    controls.ptxas_options = {"-O0"};
    auto plain = services_.compiler->compile(ptx::print(pinned->module), facts_.entry, facts_.arch,
                                             controls);
    if (!plain.ok()) {
        note("no unoptimised compile to compare with: " + plain.error().str());
        return std::nullopt;
    }
    const Verdict v = prover_->matches_recording(*plain, pinned->cells, Gate::kSecondCompile);
    if (v.outcome == Outcome::kReject)
        return End{"ineligible",
                   "unoptimised machine code of the same PTX gives other bits: " + v.evidence};
    note(v.outcome == Outcome::kAccept ? "unoptimised machine code agrees"
                                       : "unoptimised machine code: " + v.evidence);
    return std::nullopt;
}

store::Key SiteTrial::key() const {
    store::Key k;
    const auto closure = xform::apply({}, *code_->ptx, context_);
    k.kernel = hash_text(closure.ok() ? ptx::print(closure->module) : ptx::print(*code_->ptx));
    k.kernel =
        hash_combine(k.kernel, hash_text(fmt::format("{} {} {}", code_->option_max_registers,
                                                     code_->jit_opt_level, code_->jit_options)));
    const measure::Launch& l = launch();
    k.site = hash_text(fmt::format("{} {}x{}x{} {}x{}x{} {}", facts_.entry, l.grid.x, l.grid.y,
                                   l.grid.z, l.block.x, l.block.y, l.block.z, l.dynamic_shared));
    const auto layout = ptx::param_layout(*code_->ptx, *code_->ptx->find(facts_.entry));
    for (size_t i = 0; i < layout.size() && i < eligibility_.summary.params.size(); ++i) {
        const bool stable = i < site_.stable.size() && site_.stable[i];
        if (!stable || eligibility_.summary.params[i].pointer) continue;
        k.guard += fmt::format("p{}=", i);
        for (uint32_t b = 0; b < layout[i].size && layout[i].offset + b < l.params.size(); ++b)
            k.guard += fmt::format("{:02x}", static_cast<unsigned>(l.params[layout[i].offset + b]));
        k.guard += ' ';
    }
    k.gpu = fmt::format("{} sm_{}{}", services_.program.device, services_.program.arch,
                        services_.program.emulated ? " emulated" : "");
    k.driver = std::to_string(services_.program.driver_version);
    k.compiler = services_.compiler->identity();
    return k;
}

std::optional<SiteTrial::End> SiteTrial::from_store() {
    if (services_.store == nullptr) return std::nullopt;
    auto found = services_.store->get(key());
    if (!found.ok()) {
        log::warn("{}", found.error().str());
        return std::nullopt;
    }
    if (!found->has_value()) return std::nullopt;
    auto recipe = xform::Recipe::parse((*found)->recipe);
    if (recipe.ok()) {
        stored_ = true;
        if (auto e = search({*recipe}); !e && leader_) return std::nullopt;
        stored_ = false;
    }
    note("the stored winner no longer holds; searching");
    if (const Status s = services_.store->remove(key()); !s.ok()) log::warn("{}", s.error().str());
    return std::nullopt;
}

void SiteTrial::row(const xform::Recipe& recipe, const Verdict& v, double speedup) {
    board_.add({recipe, v, speedup});
    services_.ledger.update(site_.id, [&](SiteRecord& r) {
        ++r.tried;
        r.verdicts.push_back({recipe.str(), std::string(referee::name(v.gate)),
                              outcome_name(v.outcome), v.evidence, speedup});
    });
}

// Not worth an exact timing. An emulated clock is exact at once.
bool SiteTrial::hopeless(double coarse_speedup) const {
    if (coarse_speedup == 0) return false;
    const double least =
        services_.program.emulated ? 1 + services_.config.min_gain : 1 / kClearlySlower;
    return coarse_speedup < least;
}

void SiteTrial::prove_round(search::Agent& agent,
                            std::vector<std::pair<xform::Recipe, ProvenVariant>>* proven) {
    int faults = 0;
    // What is proven must still be timed.
    const auto now = Clock::now();
    const auto until = now + (deadline_ - now) * 3 / 5;
    while (!out_of_time() && Clock::now() < until && faults < kMostFaults) {
        const auto recipe = agent.propose(board_);
        if (!recipe) return;
        Proof p = prover_->prove(*recipe);
        faults += p.verdict.gate == Gate::kFault ? 1 : 0;
        if (p.verdict.outcome != Outcome::kAccept) {
            row(*recipe, p.verdict, 0);
        } else if (hopeless(p.coarse_speedup)) {
            row(*recipe,
                {Outcome::kReject, Gate::kTiming,
                 fmt::format("right, but not faster in the sandbox: {:.3f}x", p.coarse_speedup)},
                p.coarse_speedup);
        } else {
            proven->emplace_back(*recipe, std::move(*p.variant));
        }
    }
}

Verdict SiteTrial::time_one(const ProvenVariant& v, double* speedup) {
    const uint64_t id = next_variant_++;
    const uint32_t least = services_.program.emulated ? 8 : 20,
                   most = services_.program.emulated ? 40 : 400;
    const double threshold = services_.config.min_gain;
    if (!v.cells.empty() && !copy_defined_) {
        if (Status s = services_.link.define_original(site_.id, facts_.entry, *code_); !s.ok())
            return {Outcome::kUnknown, Gate::kTiming, s.error().str()};
        copy_defined_ = true;
    }
    if (Status s = services_.link.define_variant(site_.id, id, v); !s.ok())
        return {Outcome::kUnknown, Gate::kTiming, s.error().str()};
    auto timing = services_.link.time(site_.id, id, least, most, threshold, deadline_);
    if (!timing.ok()) return {Outcome::kUnknown, Gate::kTiming, timing.error().str()};
    if (!timing->error.empty()) return {Outcome::kUnknown, Gate::kTiming, timing->error};
    const measure::Speedup s = measure::speedup(timing->pairs);
    *speedup = s.pairs > 0 ? s.median : 0;
    const Verdict verdict = referee::judge_timing(s, threshold);
    const bool leads = verdict.outcome == Outcome::kAccept && s.median > leader_speedup_;
    if (leads) {
        leader_speedup_ = s.median;
        services_.ledger.update(site_.id, [&](SiteRecord& r) {
            r.base_us = s.original_median_ns / 1000;
            r.best_us = s.variant_median_ns / 1000;
            r.speedup = s.median;
            r.recipe = v.recipe;
        });
    }
    if (const Status dropped = services_.link.drop(site_.id, id); !dropped.ok())
        log::warn("{}", dropped.error().str());
    return verdict;
}

void SiteTrial::time_round(std::vector<std::pair<xform::Recipe, ProvenVariant>> proven) {
    std::stable_sort(proven.begin(), proven.end(), [](const auto& a, const auto& b) {
        return a.second.coarse_ns < b.second.coarse_ns;
    });
    const double best_ns = proven.empty() ? 0 : proven.front().second.coarse_ns;
    for (size_t i = 0; i < proven.size(); ++i) {
        auto& [recipe, variant] = proven[i];
        const bool close = variant.coarse_ns <= best_ns * kAsGood;
        const bool later = i >= (close ? 2 * kMostTimed : kMostTimed);
        if (later || out_of_time()) {
            row(recipe,
                {Outcome::kUnknown, Gate::kTiming,
                 later ? "right; others looked faster" : "right; no time left"},
                0);
            continue;
        }
        double speedup = 0;
        const double before = leader_speedup_;
        Verdict v = time_one(variant, &speedup);
        v.evidence = variant.evidence + "; " + v.evidence;
        row(recipe, v, speedup);
        if (leader_speedup_ > before) leader_ = std::move(variant);
    }
}

std::optional<SiteTrial::End> SiteTrial::search(std::vector<xform::Recipe> recipes) {
    // Pauses are dear (the toll counts each that is used): no compiling in them.
    if (services_.program.foreground == 0)
        for (const xform::Recipe& r : recipes)
            if (!out_of_time()) prover_->prepare(r);
    auto agent = search::make_exhaustive(std::move(recipes));
    for (int round = 0; round < kMostRounds; ++round) {
        std::vector<std::pair<xform::Recipe, ProvenVariant>> proven;
        const size_t before = board_.trials().size();
        prove_round(*agent, &proven);
        const bool any = !proven.empty();
        time_round(std::move(proven));
        if ((!any && board_.trials().size() == before) || out_of_time() || stored_) break;
    }
    if (leader_) return std::nullopt;
    if (services_.link.gone()) return End{"failed", "the program ended"};
    return End{"kept",
               out_of_time() ? "nothing faster within the budget" : "nothing tried was faster"};
}

SiteTrial::End SiteTrial::publish() {
    const auto until = Clock::now() + std::chrono::seconds(services_.program.emulated ? 1 : 5);
    const uint32_t launches = services_.program.emulated ? 20 : kSoakLaunches;
    deadline_ = std::max(deadline_, Clock::now() + kPublishTime);  // a winner is not thrown away
    const Verdict soaked = prover_->soak(*leader_, launches, until);
    note("before the swap: " + soaked.evidence);
    if (soaked.outcome != Outcome::kAccept)
        return {"kept", "the leader failed a longer run: " + soaked.evidence};
    if (auto e = later_launch()) return *e;
    services_.ledger.update(site_.id,
                            [&](SiteRecord& r) { r.from = stored_ ? "store" : "search"; });
    if (services_.program.mode != "apply")
        return {"validated",
                "mode is " + services_.program.mode + ": proven and faster, not swapped"};
    return swap_in(*leader_, leader_speedup_);
}

// One recorded launch may be special. The leader must give the bits of a later one too; a program
// that makes none is served by what poison and perturbed inputs have shown.
std::optional<SiteTrial::End> SiteTrial::later_launch() {
    if (services_.program.foreground > 0) {
        note("proven on one recorded launch: the program waits in it");
        return std::nullopt;
    }
    // The first snapshot's memory goes before that of the second is taken.
    services_.sandbox.use(nullptr);
    recorded_.arena->close();
    const auto patience = services_.program.emulated ? kLaterLaunch / 3 : kLaterLaunch;
    auto later =
        services_.link.later_snapshot(site_.id, eligibility_.regions, Clock::now() + patience);
    if (!later.ok() && later.error().code != Code::kTimeout)
        return End{"kept", "no second snapshot: " + later.error().message};
    const measure::Launch* l = later.ok() ? &later->snapshot.launch : nullptr;
    const bool usable = l != nullptr &&
                        same_kinds(recorded_.snapshot.regions, later->snapshot.regions) &&
                        l->params.size() == launch().params.size() &&
                        leader_->guard.holds(l->grid, l->block, l->dynamic_shared, l->params);
    if (!usable) {
        note(fmt::format("proven on one recorded launch, with poison and perturbed inputs: {}",
                         l != nullptr ? "a later one is outside the guard" : "no later one came"));
        return std::nullopt;
    }
    recorded_ = std::move(*later);
    services_.sandbox.use(&recorded_);
    deadline_ = std::max(deadline_, Clock::now() + kPublishTime);
    if (auto e = fidelity()) {
        e->reason = "on a later launch: " + e->reason;
        return e;
    }
    Verdict v = prover_->prove_again(*leader_);
    // A sandbox killed from outside once says nothing about the leader.
    if (v.gate == Gate::kFault) v = prover_->prove_again(*leader_);
    note(fmt::format("on a later launch: {}: {}", outcome_name(v.outcome), v.evidence));
    if (v.outcome == Outcome::kAccept) return std::nullopt;
    services_.ledger.update(site_.id, [&](SiteRecord& r) {
        r.verdicts.push_back({leader_->recipe, std::string(referee::name(v.gate)),
                              outcome_name(v.outcome), "on a later launch: " + v.evidence,
                              leader_speedup_});
    });
    return End{"kept", fmt::format("the leader failed gate {} on a later launch: {}",
                                   referee::name(v.gate), v.evidence)};
}

SiteTrial::End SiteTrial::swap_in(ProvenVariant& v, double speedup) {
    const uint64_t id = next_variant_++;
    if (Status s = services_.link.define_variant(site_.id, id, v); !s.ok())
        return {"failed", s.error().str()};
    services_.ledger.update(site_.id, [](SiteRecord& r) { r.state = "canary"; });
    const auto patience = std::chrono::duration<double>(services_.config.canary_s);
    services_.expect_canary({site_.id,
                             id,
                             key(),
                             {v.recipe, speedup, v.evidence},
                             {},
                             0,
                             Clock::now() + std::chrono::ceil<Clock::duration>(patience)});
    std::string why;
    const auto head_start = head_start_module(*services_.compiler, services_.program);
    auto published =
        services_.link.swap(site_.id, id, head_start, &why, Clock::now() + kSwapPatience);
    if (!published.ok()) return {"failed", "swap: " + published.error().str()};
    if (!*published) return {"failed", "swap: " + why};
    return {"canary", ""};
}

void SiteTrial::note(std::string text) {
    services_.ledger.update(site_.id, [&](SiteRecord& r) { r.notes.push_back(std::move(text)); });
}

void SiteTrial::end(const End& e) {
    if (e.state == "canary") return;  // the event loop finishes it
    services_.ledger.update(site_.id, [&](SiteRecord& r) {
        r.state = e.state;
        r.reason = e.reason;
        if (e.state == "ineligible") r.eligible = false;
    });
    if (const Status s = services_.link.site_done(site_.id, e.reason); !s.ok())
        log::info("{}", s.error().str());
}

}  // namespace ttt::tuner
