// Runs a launch spec in the interpreter: what the instruction tests, the hazards and the benchmark
// share.
#pragma once

#include <string>
#include <vector>

#include "ptx/interpreter.h"
#include "spec/launch_spec.h"

namespace ttt::test {

// A module in an address space of its own, with the spec's buffers at fixed addresses 16 MiB apart.
class SpecRun {
  public:
    static Result<std::unique_ptr<SpecRun>> make(const std::string& ptx,
                                                 const spec::LaunchSpec& spec);
    // Launches once more on the buffers as they are.
    Result<ptx::LaunchResult> launch(unsigned host_threads = 1, bool footprint = false,
                                     uint64_t budget = ~uint64_t{0});
    // Bytes of the buffer that is argument `arg`.
    std::vector<std::byte>& buffer(size_t arg) { return buffers_[arg]; }
    const std::vector<std::vector<std::byte>>& buffers() const { return buffers_; }
    uint64_t address(size_t arg) const { return addresses_[arg]; }
    const ptx::Program& program() const { return *program_; }
    const ptx::Module& module() const { return module_; }

  private:
    SpecRun() = default;
    ptx::Module module_;
    spec::LaunchSpec spec_;
    ptx::AddressSpace space_;
    std::vector<std::vector<std::byte>> buffers_;  // per argument; empty for scalars
    std::vector<uint64_t> addresses_;
    std::vector<std::byte> params_;
    std::unique_ptr<ptx::LoadedModule> loaded_;
    std::unique_ptr<ptx::Program> program_;
};

std::string read_text(const std::string& path);

}  // namespace ttt::test
