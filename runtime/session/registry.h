// Modules, kernels and their handles, as the program made them known. Our thread only.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/fd.h"
#include "session/event.h"
#include "session/image_shelf.h"
#include "session/shared.h"
#include "session/sources.h"

namespace ttt::session {

struct Module {
    uint64_t id = 0;
    const void* handle = nullptr;
    bool library = false;
    bool gone = false;
    bool examined = false;  // image looked at: the next two are meaningful
    bool has_ptx = false;   // in its image, or told by the compiler that made it
    bool bare_code =
        false;         // one cubin: its PTX may lie in a compiler's cache that the tuner knows
    uint8_t kind = 0;  // ipc::ImageKind
    ImageShelf::Id image = 0;  // on the registry's shelf, until sent
    uint64_t bytes = 0;
    bool sent = false;
    const void* preserved = nullptr;
    JitOptions jit;
    std::vector<std::pair<std::string, ParamLayout>>
        machine_params;  // from .nv.info, where the driver cannot be asked
};

struct Kernel {
    uint64_t id = 0;
    Module* module = nullptr;  // null: could not be identified
    std::string name;
    ParamLayout layout;
    uint32_t registers = 0, local_bytes = 0, shared_bytes = 0, max_threads = 0;
    bool announced = false;  // KernelDef sent
    std::vector<Function*> functions;
    std::map<int, int> attributes;  // set by the program, to mirror on variants
    std::optional<int> cache_config;
    uint64_t samples = 0;
    double sampled_ns = 0;
    uint64_t launches() const;
};

class Registry {
  public:
    explicit Registry(Shared& s) : shared_(s) {}
    // Takes over every event pushed so far; kMiss and kContextGone are reported through the lists
    // below.
    void drain();
    // Contexts seen since the last call, with their device.
    struct Seen {
        CUcontext context;
        CUdevice device;
    };
    std::vector<Seen> take_contexts() { return std::exchange(contexts_, {}); }
    std::vector<CUcontext> take_gone() { return std::exchange(gone_, {}); }
    // Modules unloaded since the last call that the tuner had been told of.
    std::vector<uint64_t> take_unloaded() { return std::exchange(unloaded_, {}); }
    // The module's image in a memfd of its own, once; invalid when there is none.
    Fd take_image(Module& m) { return shelf_.take(std::exchange(m.image, 0)); }
    // PTX that compilers in the program made machine code from, since the last call.
    std::vector<Source> take_sources() { return std::exchange(sources_, {}); }
    // Attribute changes since the last call, for variants that are already loaded.
    struct Change {
        Kernel* kernel;
        int number, value;
    };
    std::vector<Change> take_changes() { return std::exchange(changes_, {}); }

    Kernel* kernel(uint64_t id) const;
    const std::vector<std::unique_ptr<Kernel>>& kernels() const { return kernels_; }
    const std::vector<std::unique_ptr<Module>>& modules() const { return modules_; }
    // Reads the module's image if that has not happened yet (a preserved one only now).
    void examine(Module& m);
    uint32_t cubin_only() const;
    void drop_images();  // there is nobody to send them to

  private:
    struct Named {
        const void* owner;
        std::string name;
        bool is_kernel;
    };

    void note_sources();
    void handle(Event& e);
    void loaded(Event& e);
    void unloaded(const Event& e);
    void context_gone(const Event& e);
    void miss(const Event& e);
    void attribute(const Event& e);
    void take_image(Module& m, std::vector<std::vector<std::byte>>& blobs);
    std::optional<Named> told(const void* handle) const;  // by the program's own look-up
    std::optional<Named> identify(const void* handle);  // may ask the driver: only inside a section
    Kernel* kernel_of(const Named& named);
    void describe(Kernel& k, const void* handle, bool is_kernel, CUdevice device);
    ParamLayout layout_of(const Kernel& k, const void* handle, bool is_kernel);

    Shared& shared_;
    std::unordered_map<const void*, Module*> by_handle_;
    std::unordered_map<const void*, Named> named_;
    std::unordered_map<const void*, const void*> alias_;
    std::map<std::pair<Module*, std::string>, Kernel*> by_name_;
    std::vector<std::unique_ptr<Module>> modules_;
    std::vector<std::unique_ptr<Kernel>> kernels_;
    std::vector<Seen> contexts_;
    std::vector<CUcontext> gone_;
    std::vector<Change> changes_;
    std::vector<Source> sources_;
    std::vector<uint64_t> unloaded_;
    ImageShelf shelf_;
    std::set<uint64_t> codes_with_source_;
    uint64_t unloads_ = 0;
};

}  // namespace ttt::session
