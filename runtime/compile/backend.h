// What assembles PTX: nvJitLink in this process, nvJitLink in a worker, or ptxas. Internal to
// runtime/compile.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ttt::compile {

struct Job {
    std::string_view ptx;
    std::string arch;                  // "sm_90"
    std::vector<std::string> options;  // in ptxas's spelling
};

struct Output {
    std::string cubin, log;
};

struct Identity {
    std::string name;              // "ptxas 13.0.88"
    uint32_t major = 0;            // 13
    uint32_t max_ptx_version = 0;  // 90
};

class Backend {
  public:
    virtual ~Backend() = default;
    // kCompile with the log in the message when the text is refused. Thread-safe.
    virtual Result<Output> assemble(const Job& job) = 0;
    virtual const Identity& identity() const = 0;
};

// Asks an assembler about itself: the newest PTX ISA it takes, from its answer to a module of an
// impossible version; its full version ("13.0.88") from the note in a cubin that it makes (empty
// before CUDA 13).
struct Probe {
    uint32_t max_ptx_version = 0;
    std::string version;
};
Result<Probe> probe(Backend& backend);

// Machinery that both make_… functions and the worker program use.
Result<std::unique_ptr<Backend>> open_nvjitlink(
    const std::string& path);  // loads it into this process
// `seconds` = longest wait for one answer; a worker that takes longer is killed.
Result<std::unique_ptr<Backend>> open_nvjitlink_worker(const std::string& worker,
                                                       const std::string& path,
                                                       double seconds = 60);
Result<std::unique_ptr<Backend>> open_ptxas(const std::string& path);

// The worker program: $TTT_COMPILE_WORKER, else ttt-compile beside the running program or in
// ../bin; empty = none.
std::string find_worker();

}  // namespace ttt::compile
