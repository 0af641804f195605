// Compares the cost model with an H200: predicts each suite kernel and each hand-made edit of
// tests/data/suite/h200_gains.txt from interpreter counts and prints a Markdown table of
// docs/results/cost_model.md. `ttt-bench-cost-model FOLDER`, FOLDER = tests/data/suite.
//
// Grids are sampled: a few blocks, spread evenly, stand for all. Registers and local bytes are
// those of the measured run.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <numeric>
#include <sstream>

#include "model/model.h"
#include "ptx/interpreter.h"
#include "spec/launch_spec.h"
#include "xform/pinning.h"
#include "xform/transform.h"

namespace ttt::bench {
namespace {

constexpr uint64_t kSampledBlocks = 4;
constexpr double kNotable = 0.02;  // speedups nearer to 1 have no sign: measured noise reaches it
constexpr uint64_t kFirstAddress = 0x10000000, kModuleAddress = 0x700000000;

struct Row {  // of h200_gains.txt
    std::string kernel, edit;
    double us = 0, speedup = 1;
    model::Resources resources;
    double predicted_us = 0;
};

Result<std::string> read_text(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    if (!in) return make_error(Code::kNotFound, "cannot read " + path);
    return text.str();
}

// "gemm_naive   spec   414.85 us  x1.020 regs 31 local 0 BITEQ"
std::vector<Row> parse_rows(const std::string& text) {
    std::vector<Row> rows;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        Row r;
        std::string unit, factor, word;
        std::istringstream in(line);
        in >> r.kernel >> r.edit >> r.us >> unit >> factor >> word >> r.resources.registers >>
            word >> r.resources.local_bytes;
        if (!in) continue;
        r.speedup = std::stod(factor.substr(1));
        rows.push_back(std::move(r));
    }
    return rows;
}

// What the edit means here, after rounding is pinned; nullptr when it was made in the source.
const char* recipe_of(const std::string& edit) {
    static const std::map<std::string, const char*> recipes = {
        {"base", ""},
        {"lb", ""},
        {"spec", "specialise(scalars) | fold"},
        {"spec_lb_ntid", "specialise(ntid,scalars) | fold"},
        {"nc", ""}};                       // `.nc` loads count as any other
    if (edit.starts_with('r')) return "";  // a register target; it changes no PTX
    const auto it = recipes.find(edit);
    return it == recipes.end() ? nullptr : it->second;
}

// One suite kernel with its data, counted under several recipes.
class Subject {
  public:
    static Result<std::unique_ptr<Subject>> make(const std::string& folder, const std::string& name,
                                                 const ptx::Module& module) {
        auto s = std::unique_ptr<Subject>(new Subject(module));
        TTT_TRY(s->spec_, spec::read_file(folder + "/" + name + ".json"));
        s->facts_.entry = name;
        s->facts_.grid = s->spec_.grid;
        s->facts_.block = s->spec_.block;
        s->facts_.dynamic_shared = s->spec_.shared;
        uint64_t next = kFirstAddress;
        for (const spec::Argument& a : s->spec_.args) {
            if (a.kind != spec::Argument::Kind::kBuffer) continue;
            TTT_TRY(std::vector<std::byte> bytes, spec::materialise(a));
            s->addresses_.push_back(next);
            next += (bytes.size() + 4095) / 4096 * 4096;
            s->buffers_.push_back(std::move(bytes));
        }
        const ptx::Function& entry = *module.find(name);
        TTT_TRY(s->facts_.params, spec::pack_params(module, entry, s->spec_, s->addresses_));
        s->facts_.stable.assign(ptx::param_layout(module, entry).size(), true);
        s->summary_ = ptx::summarise(module, entry);
        return s;
    }

    // Of the whole grid, from a sample of its blocks.
    Result<ptx::Counters> count(const std::string& recipe_text) {
        const xform::Context context{facts_, summary_, std::nullopt, std::nullopt};
        TTT_TRY(xform::Recipe recipe, xform::Recipe::parse(recipe_text));
        if (xform::has_unrounded(module_, *module_.find(facts_.entry)))
            recipe.steps.insert(recipe.steps.begin(), {"pin_rounding", {}});
        TTT_TRY(const xform::Applied variant, xform::apply(recipe, module_, context));
        ptx::AddressSpace space;
        for (size_t i = 0; i < buffers_.size(); ++i)
            TTT_CHECK_OK(
                space.add({addresses_[i], buffers_[i].size(), buffers_[i].data(), true, true}));
        TTT_TRY(const auto loaded, ptx::LoadedModule::load(variant.module, space, kModuleAddress));
        TTT_TRY(const auto program, ptx::Program::decode(*loaded, facts_.entry));
        const uint64_t blocks = facts_.grid.count(), sampled = std::min(blocks, kSampledBlocks);
        std::vector<uint64_t> chosen(sampled);
        for (uint64_t i = 0; i < sampled; ++i) chosen[i] = (2 * i + 1) * blocks / (2 * sampled);
        ptx::LaunchRequest request;
        request.grid = facts_.grid;
        request.block = facts_.block;
        request.dynamic_shared = facts_.dynamic_shared;
        request.params = facts_.params;
        request.only_blocks = chosen;
        const ptx::LaunchResult run = program->run(space, request);
        if (run.fault) return make_error(Code::kInternal, run.fault->message);
        ptx::Counters all =
            scaled(run.counters, static_cast<double>(blocks) / static_cast<double>(sampled));
        // Blocks share data: at most all there is.
        uint64_t bytes = 0;
        for (const auto& b : buffers_) bytes += b.size();
        all.distinct_sectors = std::min(all.distinct_sectors, bytes / 32);
        return all;
    }
    const ptx::LaunchFacts& facts() const { return facts_; }
    uint32_t shared_bytes() const { return spec_.shared; }

  private:
    explicit Subject(const ptx::Module& module) : module_(module) {}
    static ptx::Counters scaled(const ptx::Counters& c, double factor) {
        const auto times = [&](uint64_t n) {
            return static_cast<uint64_t>(std::llround(static_cast<double>(n) * factor));
        };
        ptx::Counters out;
        out.thread_instructions = times(c.thread_instructions);
        out.warp_instructions = times(c.warp_instructions);
        for (size_t i = 0; i < out.machine.size(); ++i) out.machine[i] = times(c.machine[i]);
        out.chain_loads = times(c.chain_loads);
        out.chain_clocks = times(c.chain_clocks);
        out.global_requests = times(c.global_requests);
        out.global_lines = times(c.global_lines);
        out.global_sectors_read = times(c.global_sectors_read);
        out.global_sectors_written = times(c.global_sectors_written);
        out.cold_sectors_read = times(c.cold_sectors_read);
        out.distinct_sectors = times(c.distinct_sectors);
        out.shared_accesses = times(c.shared_accesses);
        out.barriers = times(c.barriers);
        return out;
    }

    const ptx::Module& module_;
    spec::LaunchSpec spec_;
    ptx::LaunchFacts facts_;
    ptx::KernelSummary summary_;
    std::vector<std::vector<std::byte>> buffers_;
    std::vector<uint64_t> addresses_;
};

Status predict(const std::string& folder, const ptx::Module& module, std::span<Row> rows) {
    TTT_TRY(const auto subject, Subject::make(folder, rows.front().kernel, module));
    std::map<std::string, ptx::Counters> counted;
    for (Row& r : rows) {
        const std::string recipe = recipe_of(r.edit);
        auto at = counted.find(recipe);
        if (at == counted.end()) {
            TTT_TRY(const ptx::Counters c, subject->count(recipe));
            at = counted.emplace(recipe, c).first;
        }
        model::Resources resources = r.resources;
        resources.shared_bytes = subject->shared_bytes();
        r.predicted_us = model::predict_ns(*model::find_profile("h200"), subject->facts().grid,
                                           subject->facts().block, resources, at->second) *
                         1e-3;
    }
    return ok_status();
}

std::vector<double> ranks(const std::vector<double>& values) {
    std::vector<size_t> order(values.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return values[a] < values[b]; });
    std::vector<double> out(values.size());
    for (size_t i = 0; i < order.size();) {  // equal values share their mean rank
        size_t end = i;
        while (end < order.size() && values[order[end]] == values[order[i]]) ++end;
        for (size_t k = i; k < end; ++k) out[order[k]] = static_cast<double>(i + end - 1) / 2;
        i = end;
    }
    return out;
}

// Spearman's rho: Pearson's correlation of the ranks.
double rank_correlation(const std::vector<double>& a, const std::vector<double>& b) {
    const std::vector<double> x = ranks(a), y = ranks(b);
    const double mean = static_cast<double>(x.size() - 1) / 2;
    double xy = 0, xx = 0, yy = 0;
    for (size_t i = 0; i < x.size(); ++i) {
        xy += (x[i] - mean) * (y[i] - mean);
        xx += (x[i] - mean) * (x[i] - mean);
        yy += (y[i] - mean) * (y[i] - mean);
    }
    return xy / std::sqrt(xx * yy);
}

struct Group {  // of edits that are judged together
    std::vector<double> measured, predicted;
    int notable = 0, same_sign = 0;
    void add(double m, double p) {
        measured.push_back(m);
        predicted.push_back(p);
        if (std::abs(m - 1) < kNotable) return;
        ++notable;
        same_sign += (m > 1) == (p > 1) && std::abs(p - 1) >= kNotable / 4;
    }
    void print(const char* name) const {
        fmt::print("| {} | {} | {:.2f} | {} of {} |\n", name, measured.size(),
                   rank_correlation(measured, predicted), same_sign, notable);
    }
};

void print_tables(const std::vector<Row>& rows) {
    fmt::print(
        "| kernel | measured µs | predicted µs | predicted ÷ measured |\n|---|---|---|---|\n");
    std::map<std::string, double> base;
    double log_error = 0;
    for (const Row& r : rows) {
        if (r.edit != "base") continue;
        base[r.kernel] = r.predicted_us;
        log_error += std::abs(std::log(r.predicted_us / r.us));
        fmt::print("| {} | {:.1f} | {:.1f} | {:.2f} |\n", r.kernel, r.us, r.predicted_us,
                   r.predicted_us / r.us);
    }
    fmt::print("\nGeometric mean of the factor by which a prediction is off: {:.2f}\n\n",
               std::exp(log_error / static_cast<double>(base.size())));
    fmt::print("| kernel | edit | measured | predicted |\n|---|---|---|---|\n");
    Group constants, registers, all;
    for (const Row& r : rows) {
        if (r.edit == "base") continue;
        const double predicted = base[r.kernel] / r.predicted_us;
        fmt::print("| {} | {} | {:.3f} | {:.3f} |\n", r.kernel, r.edit, r.speedup, predicted);
        all.add(r.speedup, predicted);
        if (r.edit.starts_with("spec")) constants.add(r.speedup, predicted);
        if (r.edit.starts_with('r')) registers.add(r.speedup, predicted);
    }
    fmt::print(
        "\n| edits | rows | rank correlation | direction right, of those off by 2 % or more "
        "|\n|---|---|---|---|\n");
    constants.print("constants (spec, spec_lb_ntid)");
    registers.print("register targets (rN)");
    all.print("all");
}

Status run(const std::string& folder) {
    TTT_TRY(const std::string text, read_text(folder + "/kernels.ptx"));
    TTT_TRY(const ptx::Module module, ptx::parse(text));
    TTT_TRY(const std::string gains, read_text(folder + "/h200_gains.txt"));
    std::vector<Row> rows = parse_rows(gains);
    std::erase_if(rows, [](const Row& r) { return recipe_of(r.edit) == nullptr; });
    for (size_t begin = 0; begin < rows.size();) {
        size_t end = begin;
        while (end < rows.size() && rows[end].kernel == rows[begin].kernel) ++end;
        TTT_CHECK_OK(predict(folder, module, std::span(rows).subspan(begin, end - begin)));
        begin = end;
    }
    print_tables(rows);
    return ok_status();
}

}  // namespace
}  // namespace ttt::bench

int main(int argc, char** argv) {
    if (argc != 2) return std::fprintf(stderr, "usage: ttt-bench-cost-model FOLDER\n"), 2;
    const ttt::Status done = ttt::bench::run(argv[1]);
    if (!done.ok()) return std::fprintf(stderr, "%s\n", done.error().str().c_str()), 1;
    return 0;
}
