// Life of the session in a program, and what the shim's hooks tell it. Any thread; nothing here
// throws to the program (hooks run inside the entry point's catch). May be called before cuInit:
// nothing starts before the first module load or launch.
#pragma once

#include <atomic>
#include <string>

#include "session/launch_path.h"
#include "session/shared.h"

namespace ttt::session {

enum class State : int { kNotStarted, kStarting, kRunning, kDisabled };
extern constinit std::atomic<State> g_state;
extern constinit std::atomic<Shared*> g_shared;

// Null unless running: one load on the launch path.
inline Shared* running() { return g_shared.load(std::memory_order_acquire); }

// Makes the shared state if nothing prevents it; null if the session does not run. `own_path`
// is libttt.so's own. No thread yet: that takes a module load or a launch.
Shared* start(Driver::Resolve resolve, void* state, const char* own_path);
void start_thread_once(Shared& s);
// For good: in a fork's child, at exit.
void disable();

// ---- modules; the driver call has succeeded ----
struct Image {
    enum class Source : uint8_t { kMemory, kPreserved, kFile } source = Source::kMemory;
    const void* data = nullptr;
    const char* file = nullptr;
};
void loaded(Shared& s, const void* handle, bool library, const Image& image, unsigned options,
            const CUjit_option* names, void* const* values);
// JIT options as a compiler's command line, for those that change code ("--maxrregcount=32"); other
// options by number.
std::string compiler_options(unsigned count, const CUjit_option* names, void* const* values);
void named(Shared& s, const void* handle, bool is_kernel, const void* owner, const char* name);
void alias(Shared& s, CUfunction function, CUkernel kernel);
void attribute(Shared& s, const void* handle, int number,
               int value);  // number -1: cache configuration
// Before the driver call: from here on nothing of ours touches the module or library.
void unloading(Shared& s, const void* handle);
void destroying_context(Shared& s, CUcontext context);

// Marks the program as waiting for the GPU; `drained` is called once it has succeeded.
class Synchronising {
  public:
    explicit Synchronising(Shared& s) : shared_(s) {
        s.synchronising.fetch_add(1, std::memory_order_relaxed);
    }
    ~Synchronising() { shared_.synchronising.fetch_sub(1, std::memory_order_relaxed); }
    Synchronising(const Synchronising&) = delete;
    Synchronising& operator=(const Synchronising&) = delete;
    void drained() { shared_.lease->busy.store(kSynchronised, std::memory_order_relaxed); }

  private:
    Shared& shared_;
};

}  // namespace ttt::session
