#include "spec_run.h"

#include <fstream>
#include <sstream>

namespace ttt::test {
namespace {

constexpr uint64_t kFirstAddress = 0x700000000000ull, kApart = 16 << 20,
                   kModuleAddress = 0x600000000000ull;

}  // namespace

std::string read_text(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
}

Result<std::unique_ptr<SpecRun>> SpecRun::make(const std::string& ptx,
                                               const spec::LaunchSpec& spec) {
    std::unique_ptr<SpecRun> run(new SpecRun);
    TTT_TRY(run->module_, ptx::parse(ptx));
    run->spec_ = spec;
    std::vector<uint64_t> pointers;
    uint64_t next = kFirstAddress;
    for (const spec::Argument& arg : spec.args) {
        run->buffers_.emplace_back();
        run->addresses_.push_back(0);
        if (arg.kind != spec::Argument::Kind::kBuffer) continue;
        TTT_TRY(run->buffers_.back(), spec::materialise(arg));
        const uint64_t address = next;
        run->addresses_.back() = address;
        pointers.push_back(address);
        next = (address + arg.buffer_bytes) / kApart * kApart + 2 * kApart;
        const auto& data = run->buffers_.back();
        if (!data.empty())
            // The vector's heap bytes stay where they are when the vectors themselves move.
            TTT_CHECK_OK(run->space_.add(
                {address, data.size(), const_cast<std::byte*>(data.data()), true, true}));
    }
    const ptx::Function* entry = run->module_.find(spec.entry);
    if (entry == nullptr) return make_error(Code::kNotFound, "no entry " + spec.entry);
    TTT_TRY(run->params_, spec::pack_params(run->module_, *entry, spec, pointers));
    TTT_TRY(run->loaded_, ptx::LoadedModule::load(run->module_, run->space_, kModuleAddress));
    for (const auto& [name, contents] : spec.variables) {
        TTT_TRY(const auto bytes, spec::materialise(contents));
        TTT_CHECK_OK(ptx::set_variable(*run->loaded_, run->space_, name, bytes));
    }
    TTT_TRY(run->program_, ptx::Program::decode(*run->loaded_, spec.entry));
    return run;
}

Result<ptx::LaunchResult> SpecRun::launch(unsigned host_threads, bool footprint, uint64_t budget) {
    ptx::LaunchRequest request;
    request.grid = spec_.grid;
    request.block = spec_.block;
    request.dynamic_shared = spec_.shared;
    request.params = params_;
    request.host_threads = host_threads;
    request.want_footprint = footprint;
    request.max_thread_instructions = budget;
    return program_->run(space_, request);
}

}  // namespace ttt::test
