#include "tuner/prover.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash.h"

namespace ttt::tuner {
namespace {

using referee::Gate;
using referee::Outcome;
using referee::Verdict;

constexpr uint8_t kPoisonA = 0x5A, kPoisonB = 0xC3;
constexpr uint64_t kSeeds[] = {1, 2};  // finite values only; special values too

Verdict reject(Gate gate, std::string why) { return {Outcome::kReject, gate, std::move(why)}; }
Verdict unknown(Gate gate, std::string why) { return {Outcome::kUnknown, gate, std::move(why)}; }
Verdict accept(std::string why) { return {Outcome::kAccept, Gate::kNone, std::move(why)}; }

// PTX without its register target, which on an emulated GPU changes nothing but the resources.
Hash128 hash_without_target(std::span<const std::byte> image) {
    std::string text(reinterpret_cast<const char*>(image.data()), image.size());
    for (size_t at; (at = text.find(".maxnreg")) != std::string::npos;) {
        const size_t digits = text.find_first_of("0123456789", at);
        const size_t end = text.find_first_not_of("0123456789", digits);
        text.erase(at, end == std::string::npos ? std::string::npos : end - at);
    }
    std::erase_if(text, [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\0'; });
    return hash_text(text);
}

std::string code_key(const compile::Compiled& c, const Dim3& grid, const Dim3& block,
                     uint32_t shared, bool emulated) {
    const Hash128 code = emulated              ? hash_without_target(c.image)
                         : c.code.text.empty() ? hash_bytes(c.image)
                                               : hash_bytes(c.code.text);
    // Directives that leave the machine code alone change nothing; without machine code they may.
    const std::string resources =
        emulated ? fmt::format("{} {}", c.shared_bytes, c.local_bytes) : std::string();
    return fmt::format("{} {} {} {} {}x{}x{} {}x{}x{}", code.hex(), c.registers, resources, shared,
                       grid.x, grid.y, grid.z, block.x, block.y, block.z);
}

// A clearly different register target, so that the assembler schedules and allocates anew.
uint32_t other_target(uint32_t registers) {
    const uint32_t used = std::max(registers, 24u);
    return std::min(used > 40 ? used - 8 : used + 8, compile::kMostRegisters);
}

bool in_place(const std::vector<std::string>& notes, const std::string& note) {
    return std::find(notes.begin(), notes.end(), note) != notes.end();
}

}  // namespace

std::string compile_arch(const ptx::Module& module, uint32_t arch) {
    const std::string plain = fmt::format("sm_{}", arch);
    const std::string_view target = module.target.substr(0, module.target.find_first_of(", "));
    return target.starts_with(plain) && target.size() == plain.size() + 1 ? std::string(target)
                                                                          : plain;
}

Prover::Prover(const Site& site, const ModuleCode& code, const Program& program,
               const xform::Context& context, SandboxLink& sandbox, compile::Compiler& compiler,
               const Baseline& baseline)
    : site_(site),
      code_(code),
      program_(program),
      context_(context),
      sandbox_(sandbox),
      compiler_(compiler),
      baseline_(baseline),
      arch_(context.facts.arch) {}

void Prover::set_original_code(std::vector<std::byte> text) {
    if (text.empty()) return;
    compile::Compiled c;
    c.image = std::move(text);
    c.registers = site_.kernel.registers;
    seen_[code_key(c, site_.launch.grid, site_.launch.block, site_.launch.dynamic_shared, false)] =
        "the original";
}

void Prover::set_original_ptx() {
    auto unchanged =
        xform::apply({xform::required_steps(*code_.ptx, context_)}, *code_.ptx, context_);
    if (!unchanged.ok()) return;
    auto c = compile(*unchanged, 0);
    if (!c.ok()) return;
    seen_[code_key(*c, unchanged->grid, unchanged->block, unchanged->dynamic_shared, true)] =
        "the original";
}

uint32_t Prover::timeout_ms() const {
    return static_cast<uint32_t>(
        std::clamp(baseline_.wall_ms * 10, program_.emulated ? 10000.0 : 2000.0, 120000.0));
}

bool Prover::perturbable() const {
    return std::any_of(baseline_.float_bytes.begin(), baseline_.float_bytes.end(),
                       [](uint8_t w) { return w != 0; });
}

Result<LoadResult> Prover::load(uint64_t module, const compile::Compiled& c,
                                const std::vector<VariableCell>& cells) {
    return sandbox_.load(module, c.image, c.entry, -1, -1, {kOriginal, cells});
}

Result<compile::Compiled> Prover::compile(const xform::Applied& applied, uint32_t max_registers) {
    xform::CompileControls controls = applied.controls;
    if (max_registers != 0) controls.max_registers = max_registers;
    if (controls.max_registers == 0) controls.max_registers = code_.option_max_registers;
    return compiler_.compile(ptx::print(applied.module), context_.facts.entry, arch_, controls);
}

std::optional<Verdict> Prover::duplicate(const compile::Compiled& c, const ProvenVariant& v,
                                         const std::string& recipe) {
    const auto [it, fresh] =
        seen_.emplace(code_key(c, v.grid, v.block, v.shared, program_.emulated), recipe);
    if (fresh) return std::nullopt;
    return reject(Gate::kCompile, (program_.emulated ? "same instructions and resources as "
                                                     : "same machine code as ") +
                                      it->second);
}

std::vector<Prover::Run> Prover::runs(bool second) const {
    std::vector<Run> out{{"on the snapshot", Gate::kBits, 0, 0, 0,
                          second              ? 1u
                          : program_.emulated ? 2u
                                              : 5u}};
    if (!second) {
        out.push_back({"with poison A", Gate::kBits, kOriginal, 0, kPoisonA, 1});
        out.push_back({"with poison B", Gate::kBits, kOriginal, 0, kPoisonB, 1});
    }
    if (!perturbable()) return out;
    for (uint64_t seed : kSeeds)
        if (!second || seed == kSeeds[1])
            out.push_back({"on perturbed input", Gate::kPerturbed, kOriginal, seed, 0, 1});
    return out;
}

Verdict Prover::replay(uint64_t module, const ProvenVariant& v, const Run& run, double* coarse_ns) {
    const auto patience = before_run_ ? before_run_() : std::optional<uint32_t>(0);
    no_pause_ = !patience;
    if (no_pause_) return unknown(run.gate, "no idle time left to try it");
    ReplayRequest q;
    q.lease_ms = *patience;
    q.module = module;
    q.reference = run.reference;
    q.grid = v.grid;
    q.block = v.block;
    q.shared = v.shared;
    q.repeats = run.repeats;
    q.seed = run.seed;
    if (run.seed != 0) q.float_bytes = baseline_.float_bytes;
    q.poison = run.poison;
    q.timeout_ms = timeout_ms();
    auto r = sandbox_.replay(q);
    if (!r.ok()) return unknown(run.gate, r.error().str());
    no_pause_ = r->gate == "lease";
    if (r->ok) {
        if (coarse_ns != nullptr && r->coarse_ns > 0) *coarse_ns = r->coarse_ns;
        return accept("");
    }
    const std::string evidence = fmt::format("{}: {}", run.what, r->evidence);
    if (r->gate == "fault") return reject(Gate::kFault, evidence);
    if (r->gate == "footprint") return reject(Gate::kFootprint, evidence);
    if (r->gate == "repeat") return reject(Gate::kRepeat, evidence);
    if (r->gate == "bits") return reject(run.gate, evidence);
    if (r->gate == "reference" && run.seed != 0) {  // says nothing about the variant
        unusable_seeds_.insert(run.seed);
        const std::string note = "perturbed input not usable: " + r->evidence;
        if (!in_place(notes_, note)) notes_.push_back(note);
        return accept("");
    }
    return unknown(run.gate, evidence);
}

Verdict Prover::replay_all(uint64_t module, const ProvenVariant& v, bool second,
                           double* coarse_ns) {
    uint32_t passed = 0;
    for (const Run& run : runs(second)) {
        if (unusable_seeds_.contains(run.seed)) continue;
        const Verdict verdict = replay(module, v, run, run.reference == 0 ? coarse_ns : nullptr);
        if (verdict.outcome != Outcome::kAccept) return verdict;
        ++passed;
    }
    return accept(fmt::format("{} replays with equal bits", passed));
}

Verdict Prover::second_compile(const xform::Applied& applied, const ProvenVariant& v) {
    const uint32_t other = other_target(v.compiled.registers);
    auto c = compile(applied, other);
    if (!c.ok()) return unknown(Gate::kSecondCompile, "second compile: " + c.error().str());
    if (c->image == v.compiled.image ||
        (!c->code.text.empty() && std::ranges::equal(c->code.text, v.compiled.code.text)))
        return accept("");  // the target does not bind here
    const uint64_t module = next_module_++;
    auto loaded = load(module, *c, applied.cells);
    Verdict verdict =
        loaded.ok() ? replay_all(module, v, true, nullptr)
                    : unknown(Gate::kSecondCompile, "second compile: " + loaded.error().str());
    sandbox_.unload(module);
    if (verdict.outcome == Outcome::kReject) {
        verdict.gate = Gate::kSecondCompile;
        verdict.evidence = fmt::format("compiled for {} registers: {}", other, verdict.evidence);
    }
    return verdict;
}

void Prover::prepare(const xform::Recipe& recipe) {
    const auto applied = xform::apply(recipe, *code_.ptx, context_);
    if (!applied.ok()) return;
    const auto compiled = compile(*applied, 0);
    if (!compiled.ok() || compiled->local_bytes > baseline_.most_local_bytes) return;
    if (applied->pinned && !program_.emulated)
        (void)compile(*applied, other_target(compiled->registers));
}

Proof Prover::prove(const xform::Recipe& recipe) {
    auto applied = xform::apply(recipe, *code_.ptx, context_);
    if (!applied.ok())
        return {reject(Gate::kStatic, "does not apply: " + applied.error().str()), {}, 0};
    Verdict verdict = referee::check_static(*code_.ptx, applied->module, context_.facts.entry);
    if (verdict.outcome != Outcome::kAccept) return {verdict, {}, 0};
    auto compiled = compile(*applied, 0);
    if (!compiled.ok()) return {reject(Gate::kCompile, compiled.error().str()), {}, 0};
    ProvenVariant v;
    v.recipe = recipe.str();
    v.compiled = std::move(*compiled);
    v.grid = applied->grid;
    v.block = applied->block;
    v.shared = applied->dynamic_shared;
    v.guard = applied->guard;
    v.cells = applied->cells;
    if (v.compiled.local_bytes > baseline_.most_local_bytes)
        return {reject(Gate::kCompile,
                       fmt::format("{} bytes of local memory per thread, the program uses {}",
                                   v.compiled.local_bytes, baseline_.most_local_bytes)),
                {},
                0};
    if (auto same = duplicate(v.compiled, v, v.recipe)) return {*same, {}, 0};
    const uint64_t module = next_module_++;
    auto loaded = load(module, v.compiled, v.cells);
    if (!loaded.ok())
        return {reject(Gate::kCompile, "does not load: " + loaded.error().str()), {}, 0};
    verdict = replay_all(module, v, false, &v.coarse_ns);
    sandbox_.unload(module);
    if (verdict.outcome == Outcome::kAccept && applied->pinned && !program_.emulated) {
        const Verdict second = second_compile(*applied, v);
        if (second.outcome != Outcome::kAccept) verdict = second;
    }
    if (verdict.outcome != Outcome::kAccept) return {verdict, {}, 0};
    v.evidence = verdict.evidence;
    Proof proof{verdict, std::move(v), 0};
    if (proof.variant->coarse_ns > 0 && baseline_.coarse_ns > 0)
        proof.coarse_speedup = baseline_.coarse_ns / proof.variant->coarse_ns;
    return proof;
}

Verdict Prover::soak(const ProvenVariant& v, uint32_t launches,
                     std::chrono::steady_clock::time_point until) {
    const uint64_t module = next_module_++;
    auto loaded = load(module, v.compiled, v.cells);
    if (!loaded.ok()) return unknown(Gate::kRepeat, loaded.error().str());
    Verdict verdict = accept("");
    // In parts, so that the lease is looked at in between.
    constexpr uint32_t kPart = 10;
    uint32_t done = 0;
    while (done < launches && verdict.outcome == Outcome::kAccept &&
           (done == 0 || std::chrono::steady_clock::now() < until)) {
        const uint32_t part = std::min(kPart, launches - done);
        const Verdict next =
            replay(module, v, {"in a longer run", Gate::kRepeat, 0, 0, 0, part}, nullptr);
        if (no_pause_ && done > 0) break;  // a busy program has a shorter run, not none
        verdict = next;
        done += part;
    }
    sandbox_.unload(module);
    if (verdict.outcome == Outcome::kAccept)
        verdict.evidence = fmt::format("{} more replays with equal bits", done);
    return verdict;
}

Verdict Prover::prove_again(const ProvenVariant& v) {
    const uint64_t module = next_module_++;
    auto loaded = load(module, v.compiled, v.cells);
    if (!loaded.ok()) return unknown(Gate::kBits, loaded.error().str());
    Verdict verdict = replay_all(module, v, false, nullptr);
    sandbox_.unload(module);
    return verdict;
}

Verdict Prover::matches_recording(const compile::Compiled& c,
                                  const std::vector<VariableCell>& cells, Gate gate) {
    const uint64_t module = next_module_++;
    ProvenVariant v;
    v.grid = site_.launch.grid;
    v.block = site_.launch.block;
    v.shared = site_.launch.dynamic_shared;
    auto loaded = load(module, c, cells);
    if (!loaded.ok()) return unknown(gate, "does not load: " + loaded.error().str());
    const Verdict verdict = replay(module, v, {"on the snapshot", gate, 0, 0, 0, 1}, nullptr);
    sandbox_.unload(module);
    return verdict;
}

}  // namespace ttt::tuner
