#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

#include "base/hash.h"
#include "ptx/module_variables.h"
#include "referee/referee.h"

namespace ttt::referee {
namespace {

using ptx::AddressSpace;
using ptx::Footprint;

constexpr uint64_t kMostBlocks = 64;
constexpr uint64_t kSeed = 0x9E3779B97F4A7C15ull;

Verdict unknown(std::string why) { return {Outcome::kUnknown, Gate::kOracle, std::move(why)}; }

bool in_reserved_window(uint64_t begin, uint64_t bytes) {
    const uint64_t end = begin + bytes;
    return end > ptx::kParamWindow && begin < ptx::kSharedWindow + ptx::kWindowBytes;
}

// The launch's memory rebuilt on the host: copies of the pre-image at the program's addresses or,
// where those lie in the interpreter's reserved windows, moved by whole multiples of 2^40 so that
// every alignment stays.
class Memory {
  public:
    Memory(const OracleInput& input, bool may_move) : input_(input), may_move_(may_move) {}

    Status build() {
        const auto& regions = input_.snapshot->regions;
        const bool clash = std::any_of(
            regions.begin(), regions.end(),
            [](const measure::Region& r) { return in_reserved_window(r.address, r.bytes); });
        if (clash && !may_move_) {
            return make_error(
                Code::kUnsupported,
                "buffers that hold pointers lie where the interpreter cannot map them");
        }
        for (size_t i = 0; i < regions.size(); ++i) {
            const measure::Region& r = regions[i];
            if (i >= input_.pre.size() || input_.pre[i].size() != r.bytes) {
                return make_error(Code::kInvalidArgument,
                                  fmt::format("region {} has no complete pre-image", i));
            }
            bytes_.push_back(input_.pre[i]);
            bases_.push_back(clash
                                 ? (uint64_t{0x20} << 40) | (r.address & ((uint64_t{1} << 40) - 1))
                                 : r.address);
            top_ = std::max(top_, bases_[i] + r.bytes);
            if (r.bytes == 0) continue;
            // No launch writes a module variable.
            TTT_CHECK_OK(
                space_.add({bases_[i], r.bytes, bytes_[i].data(), true, r.variable.empty()}));
        }
        params_ = measure::relocate(input_.snapshot->launch, regions, bases_);
        return ok_status();
    }

    // Leads the module's cells to the recorded variables; a module that has the variables itself
    // gets their bytes.
    Status set_variables(const ptx::LoadedModule& module) {
        const auto& regions = input_.snapshot->regions;
        for (size_t i = 0; i < regions.size(); ++i) {
            if (regions[i].variable.empty()) continue;
            const auto address = std::as_bytes(std::span(&bases_[i], 1));
            if (ptx::set_variable(module, space_, ptx::cell_name(regions[i].variable), address)
                    .ok())
                continue;
            const Status set =
                ptx::set_variable(module, space_, regions[i].variable, input_.pre[i]);
            // What the kernel does not reach has been cut away.
            if (!set.ok() && set.error().code != Code::kNotFound) return set;
        }
        return ok_status();
    }
    AddressSpace& space() { return space_; }
    const AddressSpace& space() const { return space_; }
    const std::vector<std::byte>& params() const { return params_; }
    // First address for module variables: beyond every buffer, with room to spare.
    uint64_t free_base() const { return ((top_ >> 24) + 2) << 24; }
    const std::vector<std::vector<std::byte>>& bytes() const { return bytes_; }
    void reset() {
        for (size_t i = 0; i < bytes_.size(); ++i) {
            if (!bytes_[i].empty())
                std::memcpy(bytes_[i].data(), input_.pre[i].data(), bytes_[i].size());
        }
    }
    // Region that holds the range, and the range's offset in it.
    std::optional<std::pair<size_t, uint64_t>> locate(const Footprint::Range& range) const {
        for (size_t i = 0; i < bases_.size(); ++i) {
            const uint64_t end = bases_[i] + input_.snapshot->regions[i].bytes;
            if (range.begin >= bases_[i] && range.end <= end)
                return std::pair{i, range.begin - bases_[i]};
        }
        return std::nullopt;
    }
    void to_program_addresses(std::vector<Footprint::Range>& ranges) const {
        for (Footprint::Range& r : ranges) {
            for (size_t i = 0; i < bases_.size(); ++i) {
                const measure::Region& region = input_.snapshot->regions[i];
                if (r.begin < bases_[i] || r.begin >= bases_[i] + region.bytes) continue;
                const uint64_t shift = region.address - bases_[i];
                r.begin += shift;
                r.end += shift;
                break;
            }
        }
    }

  private:
    const OracleInput& input_;
    bool may_move_;
    std::vector<std::vector<std::byte>> bytes_;
    std::vector<uint64_t> bases_;
    uint64_t top_ = uint64_t{1} << 32;
    AddressSpace space_;
    std::vector<std::byte> params_;
};

// Ranges may touch the border of two adjoining buffers; split them so that each lies in one.
std::vector<Footprint::Range> split(const std::vector<Footprint::Range>& ranges,
                                    const AddressSpace& space) {
    std::vector<Footprint::Range> out;
    for (Footprint::Range r : ranges) {
        for (const AddressSpace::Allocation& a : space.all()) {
            const uint64_t begin = std::max(r.begin, a.base),
                           end = std::min(r.end, a.base + a.size);
            if (begin < end) out.push_back({begin, end});
        }
    }
    return out;
}

class Oracle {
  public:
    Oracle(const OracleInput& input, const ptx::KernelSummary& summary)
        : input_(input), summary_(summary), memory_(input, !summary.loaded_pointers) {}

    Verdict run(Footprint* footprint) {
        if (Status built = memory_.build(); !built.ok()) return unknown(built.error().str());
        auto loaded = ptx::LoadedModule::load(*input_.module, memory_.space(), memory_.free_base());
        if (!loaded.ok()) return unknown("the interpreter cannot load it: " + loaded.error().str());
        if (const Status s = memory_.set_variables(**loaded); !s.ok())
            return unknown(s.error().str());
        auto program = ptx::Program::decode(**loaded, input_.entry);
        if (!program.ok())
            return unknown("the interpreter cannot run it: " + program.error().str());
        program_ = program->get();
        const Verdict verdict = run_blocks();
        if (footprint != nullptr && verdict_has_footprint_) {
            memory_.to_program_addresses(result_.footprint.read);
            memory_.to_program_addresses(result_.footprint.written);
            *footprint = std::move(result_.footprint);
        }
        return verdict;
    }

  private:
    // The first block alone shows what a block costs; as many as the budget allows are judged.
    Verdict run_blocks() {
        const uint64_t total = input_.snapshot->launch.grid.count();
        if (total == 0) return unknown("the launch has no blocks");
        const std::vector<uint64_t> first = {0};
        execute(first);
        if (result_.fault) return faulted();
        const uint64_t cost = std::max<uint64_t>(1, result_.counters.thread_instructions);
        const uint64_t affordable = std::max<uint64_t>(1, input_.instruction_budget / cost / 2);
        const std::vector<uint64_t> blocks = sample(total, std::min(kMostBlocks, affordable));
        const bool all = blocks.size() == total;
        if (!all && (summary_.atomics || summary_.volatile_access || summary_.fences)) {
            return unknown(
                "its blocks work on the same memory, and running all of them exceeds the budget");
        }
        memory_.reset();
        execute(blocks);
        if (result_.fault) return faulted();
        verdict_has_footprint_ = true;
        if (summary_.approx) return unknown("approximate operations: only the footprint is judged");
        return compare(blocks.size(), total);
    }

    void execute(const std::vector<uint64_t>& blocks) {
        const measure::Launch& launch = input_.snapshot->launch;
        ptx::LaunchRequest request;
        request.grid = launch.grid;
        request.block = launch.block;
        request.dynamic_shared = launch.dynamic_shared;
        request.params = memory_.params();
        request.max_thread_instructions = input_.instruction_budget;
        request.only_blocks = blocks;
        request.want_footprint = true;
        result_ = program_->run(memory_.space(), request);
    }

    static std::vector<uint64_t> sample(uint64_t total, uint64_t count) {
        std::set<uint64_t> chosen = {0, total - 1};
        if (count >= total) {
            for (uint64_t b = 0; b < total; ++b) chosen.insert(b);
        }
        for (uint64_t k = 0; chosen.size() < std::min(count, total); ++k)
            chosen.insert(splitmix64(kSeed + k) % total);
        if (count < 2) chosen = {0};
        return {chosen.begin(), chosen.end()};
    }

    Verdict faulted() const {
        if (result_.fault->kind == ptx::Fault::Kind::kBudget)
            return unknown("the instruction budget ran out");
        return unknown("the interpreter faults: " + result_.fault->message);
    }

    Verdict compare(size_t judged, uint64_t total) const {
        uint64_t compared = 0;
        for (const Footprint::Range& range : split(result_.footprint.written, memory_.space())) {
            const auto place = memory_.locate(range);
            if (!place) return unknown("it writes memory that was not recorded");
            const auto [region, offset] = *place;
            const uint64_t bytes = range.end - range.begin;
            if (region >= input_.post.size() || input_.post[region].size() < offset + bytes) {
                return unknown(fmt::format("it writes region {}, which has no post-image", region));
            }
            const std::byte* mine = memory_.bytes()[region].data() + offset;
            const std::byte* live = input_.post[region].data() + offset;
            const auto [at, other] = std::mismatch(mine, mine + bytes, live);
            if (at != mine + bytes)
                return disagrees(region, offset + static_cast<uint64_t>(at - mine));
            compared += bytes;
        }
        return {Outcome::kAccept, Gate::kNone,
                fmt::format("{} bytes of {} of {} blocks agree", compared, judged, total)};
    }

    Verdict disagrees(size_t region, uint64_t offset) const {
        const std::vector<std::byte>& mine = memory_.bytes()[region];
        const std::vector<std::byte>& live = input_.post[region];
        const uint64_t word = offset & ~uint64_t{3};
        const auto hex = [&](const std::vector<std::byte>& bytes) {
            uint32_t value = 0;
            std::memcpy(&value, bytes.data() + word,
                        std::min<uint64_t>(sizeof value, bytes.size() - word));
            return value;
        };
        return {Outcome::kReject, Gate::kOracle,
                fmt::format("oracle disagrees: word at byte {} of region {} is 0x{:08x} by the "
                            "interpreter and 0x{:08x} "
                            "after the launch",
                            word, region, hex(mine), hex(live))};
    }

    const OracleInput& input_;
    const ptx::KernelSummary& summary_;
    Memory memory_;
    const ptx::Program* program_ = nullptr;
    ptx::LaunchResult result_;
    bool verdict_has_footprint_ = false;
};

// Itself, or what its cell leads to; what nobody can change is as the module says.
bool is_recorded(const measure::Snapshot& snapshot, std::string_view name) {
    if (ptx::is_compilers_own(name)) return true;
    const std::string_view behind = ptx::cell_variable(name);
    return std::ranges::any_of(snapshot.regions, [&](const measure::Region& r) {
        return !r.variable.empty() && (r.variable == name || r.variable == behind);
    });
}

}  // namespace

Verdict check_oracle(const OracleInput& input, Footprint* footprint) {
    if (input.module == nullptr || input.snapshot == nullptr) return unknown("nothing to judge");
    const ptx::Function* entry = input.module->find(input.entry);
    if (entry == nullptr) return unknown(fmt::format("no kernel '{}'", input.entry));
    const ptx::KernelSummary summary = ptx::summarise(*input.module, *entry);
    if (!summary.ineligible_reason.empty()) return unknown(summary.ineligible_reason);
    if (!input.pinned && summary.float_unrounded) return unknown("rounding is not pinned");
    if (!summary.globals_written.empty()) return unknown("it writes module variables");
    for (const std::string& name : summary.globals_read)
        if (!is_recorded(*input.snapshot, name))
            return unknown(
                fmt::format("the contents of the module variable {} are not recorded", name));
    return Oracle(input, summary).run(footprint);
}

}  // namespace ttt::referee
