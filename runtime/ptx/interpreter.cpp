#include "ptx/interpreter.h"

#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <thread>

#include "ptx/exec_block.h"
#include "ptx/exec_cost.h"
#include "ptx/exec_decode.h"

namespace ttt::ptx::exec {

// Lane by lane: any operation whose speed does not matter.
void run_scalar(Context& c, const Op& op, uint32_t mask) {
    for_lanes(mask, [&](uint32_t i) {
        uint64_t s[5] = {};
        for (uint8_t k = 0; k < op.sources; ++k) s[k] = c.lane(op.src[k], i);
        c.set_lane(op.dst[0], i, op.scalar(s, op));
    });
}

namespace {

// Blocks that spin on each other must all be on the machine: a block that runs this long lets
// another one in.
constexpr uint64_t kBlockQuantum = 1 << 20;  // warp instructions
constexpr size_t kMostResident = 256;        // blocks per host thread

uint64_t block_count(const LaunchRequest& r) {
    return r.only_blocks.empty() ? r.grid.count() : r.only_blocks.size();
}

Fault plain_fault(Fault::Kind kind, std::string message) {
    Fault f;
    f.kind = kind;
    f.message = std::move(message);
    return f;
}

// Adds what the worker has executed since the last call; false when the launch's budget is spent.
bool within_budget(Worker& w, uint64_t& reported) {
    Launch& launch = *w.launch;
    const uint64_t fresh = w.counters.thread_instructions - reported;
    reported += fresh;
    return launch.instructions.fetch_add(fresh) + fresh <= launch.request->max_thread_instructions;
}

std::unique_ptr<BlockRun> next_block(Worker& w) {
    Launch& launch = *w.launch;
    const uint64_t k = launch.next_block.fetch_add(1);
    if (k >= block_count(*launch.request)) return nullptr;
    const uint64_t linear =
        launch.request->only_blocks.empty() ? k : launch.request->only_blocks[k];
    return std::make_unique<BlockRun>(w, linear);
}

void work(Worker& w) {
    Launch& launch = *w.launch;
    const uint64_t budget = launch.request->max_thread_instructions;
    const uint64_t quantum = std::clamp<uint64_t>(budget / kLanes, 64, kBlockQuantum);
    std::list<std::unique_ptr<BlockRun>> resident;
    bool more = true;
    uint64_t reported = 0;
    while (!launch.stop) {
        if (more && resident.size() < kMostResident) {
            if (auto block = next_block(w))
                resident.push_front(std::move(block));
            else
                more = false;
        }
        if (resident.empty()) break;
        const Outcome outcome = resident.front()->run(quantum);
        if (outcome != Outcome::kFault && !within_budget(w, reported))
            w.fault = plain_fault(Fault::Kind::kBudget,
                                  fmt::format("more than {} thread instructions", budget));
        if (w.fault) {
            launch.stop = true;
            break;
        }
        if (outcome == Outcome::kDone)
            resident.pop_front();
        else
            resident.splice(resident.end(), resident, resident.begin());
    }
}

class DecodedProgram final : public Program {
  public:
    explicit DecodedProgram(std::unique_ptr<ProgramCode> code) : code_(std::move(code)) {}
    LaunchResult run(AddressSpace& space, const LaunchRequest& request) const override;
    uint32_t static_shared_bytes() const override { return code_->static_shared; }
    uint32_t local_bytes_per_thread() const override { return code_->local_bytes; }

  private:
    std::optional<Fault> refuse(const LaunchRequest& request) const;
    Worker make_worker(Launch& launch) const;
    std::unique_ptr<ProgramCode> code_;
};

std::optional<Fault> DecodedProgram::refuse(const LaunchRequest& r) const {
    const auto bad = [](std::string message) {
        return plain_fault(Fault::Kind::kIllegalInstruction, std::move(message));
    };
    if (r.grid.count() == 0 || r.block.count() == 0 || r.block.count() > 1024)
        return bad(fmt::format(
            "a launch needs 1 to 1024 threads per block and at least one block, not {} and {}",
            r.block.count(), r.grid.count()));
    if (r.params.size() < code_->parameter_bytes)
        return bad(fmt::format("{} bytes of parameters given, the kernel takes {}", r.params.size(),
                               code_->parameter_bytes));
    for (uint64_t b : r.only_blocks)
        if (b >= r.grid.count()) return bad(fmt::format("block {} is outside the grid", b));
    return std::nullopt;
}

Worker DecodedProgram::make_worker(Launch& launch) const {
    Worker w;
    w.launch = &launch;
    w.caches.resize(code_->caches);
    w.free_frames.resize(code_->codes.size());
    for (const FunctionCode& c : code_->codes) w.hits.emplace_back(c.ops.size());
    return w;
}

void add(Counters& to, const Counters& from) {
    to.thread_instructions += from.thread_instructions;
    to.warp_instructions += from.warp_instructions;
    to.global_requests += from.global_requests;
    to.global_lines += from.global_lines;
    to.cold_sectors_read += from.cold_sectors_read;
    to.global_sectors_read += from.global_sectors_read;
    to.global_sectors_written += from.global_sectors_written;
    to.shared_accesses += from.shared_accesses;
    to.barriers += from.barriers;
}

LaunchResult DecodedProgram::run(AddressSpace& space, const LaunchRequest& request) const {
    LaunchResult result;
    result.fault = refuse(request);
    if (result.fault) return result;
    Launch launch;
    launch.program = code_.get();
    launch.space = &space;
    launch.request = &request;
    launch.shared_bytes = request.dynamic_shared == 0
                              ? code_->static_shared
                              : (code_->static_shared + 15) / 16 * 16 + request.dynamic_shared;
    launch.local_stride = (code_->local_bytes + 15) / 16 * 16;
    const uint64_t threads = std::clamp<uint64_t>(
        std::min<uint64_t>(request.host_threads, block_count(request)), 1, 256);
    std::vector<Worker> workers;
    for (uint64_t i = 0; i < threads; ++i) workers.push_back(make_worker(launch));
    std::vector<std::thread> others;
    for (uint64_t i = 1; i < threads; ++i) others.emplace_back([&w = workers[i]] { work(w); });
    work(workers[0]);
    for (std::thread& t : others) t.join();
    TouchedBytes read, written, sectors;
    const Worker* first = nullptr;
    for (Worker& w : workers) {
        add(result.counters, w.counters);
        for (size_t i = 0; i < w.hits.size(); ++i)
            add_costs(code_->codes[i], w.hits[i], result.counters);
        sectors.merge(w.sectors);
        result.printf_output += w.printf_output;
        read.merge(w.read);
        written.merge(w.written);
        if (w.fault && (first == nullptr || w.fault_block < first->fault_block)) first = &w;
    }
    if (first != nullptr) result.fault = first->fault;
    result.counters.distinct_sectors = sectors.count();
    result.footprint = {read.ranges(), written.ranges()};
    return result;
}

}  // namespace
}  // namespace ttt::ptx::exec

namespace ttt::ptx {

Result<std::unique_ptr<Program>> Program::decode(const LoadedModule& module,
                                                 std::string_view entry) {
    const auto& placed = static_cast<const exec::PlacedModule&>(module);
    const auto& functions = module.module().functions;
    const auto it = std::find_if(functions.begin(), functions.end(), [&](const Function& f) {
        return f.is_entry && f.has_body && f.name == entry;
    });
    if (it == functions.end())
        return make_error(Code::kNotFound, fmt::format("no entry named {}", entry));
    TTT_TRY(auto code, exec::decode_program(placed, static_cast<uint32_t>(it - functions.begin())));
    return std::unique_ptr<Program>(std::make_unique<exec::DecodedProgram>(std::move(code)));
}

}  // namespace ttt::ptx
