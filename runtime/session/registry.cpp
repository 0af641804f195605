#include "session/registry.h"

#include <algorithm>

#include "base/log.h"
#include "image/image.h"
#include "ipc/channel.h"
#include "session/driver_section.h"

namespace ttt::session {
namespace {

constexpr uint64_t kImageLimit = uint64_t{256} << 20;
// Machine code without PTX waits only for the tuner to find PTX elsewhere by it.
constexpr size_t kMostHeldImages = 64;
constexpr size_t kMostSources = 4096;  // waiting for a tuner
constexpr size_t kParamCountLimit = 4096;

ipc::ImageKind image_kind(std::span<const std::byte> blob) {
    switch (image::classify(blob)) {
        case image::Kind::kPtx:
            return ipc::ImageKind::Ptx;
        case image::Kind::kElf:
            return ipc::ImageKind::Elf;
        case image::Kind::kFatbin:
            return ipc::ImageKind::Fatbin;
        default:
            return ipc::ImageKind::Unknown;
    }
}

bool carries_ptx(const std::vector<image::Entry>& entries) {
    return std::any_of(entries.begin(), entries.end(),
                       [](const image::Entry& e) { return e.kind == image::EntryKind::kPtx; });
}

}  // namespace

uint64_t Kernel::launches() const {
    uint64_t n = 0;
    for (const Function* f : functions) n += f->launches.total();
    return n;
}

void Registry::drain() {
    Event* e = shared_.events.drain();
    note_sources();  // after: a source is told before the module made from it is loaded
    while (e != nullptr) {
        const std::unique_ptr<Event> owned(e);
        e = e->next;
        handle(*owned);
    }
    // Renewed only when every unload up to this epoch has been seen here; a later one leaves its
    // mark by itself.
    const uint64_t epoch = shared_.functions.epoch();
    if (unloads_ + 1 == epoch) shared_.functions.renew(epoch);
}

void Registry::note_sources() {
    for (Source& s : session::take_sources()) {
        if (!s.ptx.empty()) codes_with_source_.insert(s.codes.begin(), s.codes.end());
        if (sources_.size() < kMostSources) sources_.push_back(std::move(s));
    }
}

void Registry::handle(Event& e) {
    switch (e.kind) {
        case Event::Kind::kModule:
        case Event::Kind::kLibrary:
            loaded(e);
            break;
        case Event::Kind::kUnload:
            unloaded(e);
            break;
        case Event::Kind::kNamed:
            named_[e.handle] = {e.owner, e.text, e.is_kernel};
            break;
        case Event::Kind::kAlias:
            alias_[e.handle] = e.owner;
            break;
        case Event::Kind::kMiss:
            miss(e);
            break;
        case Event::Kind::kAttribute:
            attribute(e);
            break;
        case Event::Kind::kContextGone:
            context_gone(e);
            break;
    }
}

void Registry::loaded(Event& e) {
    auto m = std::make_unique<Module>();
    m->id = modules_.size() + 1;
    m->handle = e.handle;
    m->library = e.kind == Event::Kind::kLibrary;
    m->jit = e.jit;
    m->preserved = e.preserved;
    by_handle_[e.handle] = m.get();
    if (e.context != nullptr) contexts_.push_back({e.context, e.device});
    modules_.push_back(std::move(m));
    if (!e.images.empty()) take_image(*modules_.back(), e.images);
}

void Registry::take_image(Module& m, std::vector<std::vector<std::byte>>& blobs) {
    m.examined = true;
    const std::vector<std::byte>* best = nullptr;
    for (const auto& blob : blobs) {
        auto entries = image::entries(blob);
        if (!entries.ok())
            continue;  // the driver may know more than we do; the kernels are left alone
        const auto made = [&](uint64_t code) { return codes_with_source_.contains(code); };
        const bool ptx =
            carries_ptx(*entries) || (!codes_with_source_.empty() &&
                                      std::ranges::any_of(image::code_identities(blob), made));
        if (best == nullptr || (ptx && !m.has_ptx)) best = &blob;
        m.has_ptx = m.has_ptx || ptx;
        if (shared_.driver.cuFuncGetParamInfo != nullptr) continue;
        for (const image::Entry& entry : *entries) {
            if (entry.kind != image::EntryKind::kElf) continue;
            const auto elf = image::contents(entry, kImageLimit);
            if (!elf.ok()) continue;
            const auto cubin =
                image::read_cubin(std::as_bytes(std::span(elf->data(), elf->size())));
            for (size_t i = 0; cubin.ok() && i < cubin->kernels.size(); ++i) {
                ParamLayout layout;
                layout.known = true;
                for (const auto& [offset, size] : cubin->kernels[i].params)
                    layout.params.push_back({offset, size});
                m.machine_params.emplace_back(cubin->kernels[i].name, std::move(layout));
            }
        }
    }
    if (best == nullptr || (!m.has_ptx && shelf_.size() >= kMostHeldImages)) return;
    m.kind = static_cast<uint8_t>(image_kind(*best));
    m.bare_code = !m.has_ptx && image::classify(*best) == image::Kind::kElf;
    m.bytes = best->size();
    m.image = shelf_.put(*best);
}

void Registry::drop_images() {
    for (auto& m : modules_) shelf_.drop(std::exchange(m->image, 0));
}

void Registry::examine(Module& m) {
    if (m.examined) return;
    m.examined = true;
    if (m.preserved == nullptr || m.gone) return;
    auto blobs = image::copy_foreign(m.preserved, kImageLimit);
    if (blobs.ok()) take_image(m, *blobs);
}

void Registry::unloaded(const Event& e) {
    ++unloads_;
    auto it = by_handle_.find(e.handle);
    if (it == by_handle_.end()) return;
    Module* m = it->second;
    m->gone = true;
    shelf_.drop(std::exchange(m->image, 0));
    if (m->sent) unloaded_.push_back(m->id);
    m->preserved = nullptr;
    by_handle_.erase(it);
    std::erase_if(named_, [&](const auto& n) { return n.second.owner == e.handle; });
    std::erase_if(alias_, [&](const auto& a) { return named_.find(a.second) == named_.end(); });
    for (auto& k : kernels_)
        if (k->module == m)
            for (Function* f : k->functions) FunctionTable::kill(f);
    std::erase_if(by_name_, [m](const auto& n) { return n.first.first == m; });
}

void Registry::context_gone(const Event& e) {
    ++unloads_;
    gone_.push_back(e.context);
    for (auto& k : kernels_)
        for (Function* f : k->functions)
            if (!f->is_kernel && f->context == e.context) FunctionTable::kill(f);
}

void Registry::attribute(const Event& e) {
    const auto named = told(e.handle);  // no driver call: the handle may be gone by now
    Kernel* k = named ? kernel_of(*named) : nullptr;
    if (k == nullptr) return;
    if (e.number < 0)
        k->cache_config = e.value;
    else
        k->attributes[e.number] = e.value;
    changes_.push_back({k, e.number, e.value});
}

std::optional<Registry::Named> Registry::told(const void* handle) const {
    if (auto n = named_.find(handle); n != named_.end()) return n->second;
    if (auto a = alias_.find(handle); a != alias_.end())
        if (auto n = named_.find(a->second); n != named_.end())
            return Named{n->second.owner, n->second.name, false};
    return std::nullopt;
}

std::optional<Registry::Named> Registry::identify(const void* handle) {
    if (auto known = told(handle)) return known;
    // Enumerated, or got in a way we do not hook.
    const Driver& d = shared_.driver;
    auto f = static_cast<CUfunction>(const_cast<void*>(handle));
    const char* name = nullptr;
    CUmodule module = nullptr;
    if (d.cuFuncGetName == nullptr || d.cuFuncGetModule == nullptr ||
        d.cuFuncGetName(&name, f) != CUDA_SUCCESS || name == nullptr ||
        d.cuFuncGetModule(&module, f) != CUDA_SUCCESS)
        return std::nullopt;
    return Named{module, name, false};
}

Kernel* Registry::kernel_of(const Named& named) {
    auto m = by_handle_.find(named.owner);
    if (m == by_handle_.end()) return nullptr;
    Kernel*& k = by_name_[{m->second, named.name}];
    if (k == nullptr) {
        kernels_.push_back(std::make_unique<Kernel>());
        k = kernels_.back().get();
        k->id = kernels_.size();
        k->module = m->second;
        k->name = named.name;
    }
    return k;
}

ParamLayout Registry::layout_of(const Kernel& k, const void* handle, bool is_kernel) {
    const Driver& d = shared_.driver;
    ParamLayout layout;
    auto* f = const_cast<void*>(handle);
    auto info = [&](size_t i, size_t* offset, size_t* size) {
        if (is_kernel && d.cuKernelGetParamInfo != nullptr)
            return d.cuKernelGetParamInfo(static_cast<CUkernel>(f), i, offset, size);
        if (!is_kernel && d.cuFuncGetParamInfo != nullptr)
            return d.cuFuncGetParamInfo(static_cast<CUfunction>(f), i, offset, size);
        return CUDA_ERROR_NOT_SUPPORTED;
    };
    for (size_t i = 0; i < kParamCountLimit; ++i) {
        size_t offset = 0, size = 0;
        const CUresult r = info(i, &offset, &size);
        if (r == CUDA_ERROR_INVALID_VALUE) {  // past the last one
            layout.known = true;
            return layout;
        }
        if (r != CUDA_SUCCESS || offset > (1u << 20) || size > (1u << 20)) break;
        layout.params.push_back({static_cast<uint32_t>(offset), static_cast<uint32_t>(size)});
    }
    if (k.module != nullptr)
        for (const auto& [name, from_code] : k.module->machine_params)
            if (name == k.name) return from_code;
    return {};
}

void Registry::describe(Kernel& k, const void* handle, bool is_kernel, CUdevice device) {
    const Driver& d = shared_.driver;
    auto get = [&](CUfunction_attribute a) {
        int v = 0;
        auto* f = const_cast<void*>(handle);
        const CUresult r = is_kernel && d.cuKernelGetAttribute != nullptr
                               ? d.cuKernelGetAttribute(&v, a, static_cast<CUkernel>(f), device)
                               : d.cuFuncGetAttribute(&v, a, static_cast<CUfunction>(f));
        return r == CUDA_SUCCESS && v > 0 ? static_cast<uint32_t>(v) : 0u;
    };
    k.layout = layout_of(k, handle, is_kernel);
    k.registers = get(CU_FUNC_ATTRIBUTE_NUM_REGS);
    k.local_bytes = get(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
    k.shared_bytes = get(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
    k.max_threads = get(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
}

void Registry::miss(const Event& e) {
    const size_t slot = (reinterpret_cast<uintptr_t>(e.handle) >> 4) % shared_.missed.size();
    shared_.missed[slot].store(nullptr, std::memory_order_relaxed);
    if (e.context != nullptr) contexts_.push_back({e.context, e.device});
    auto handle = static_cast<CUfunction>(const_cast<void*>(e.handle));
    Function* known = shared_.functions.lookup(handle);
    if (known != nullptr && known->valid_epoch.load() != 0) return;
    const DriverSection section(shared_, e.context, kAnyModule);
    // A handle that may have been freed since must not reach the driver; the next launch reports it
    // again.
    if (!section.ok() || shared_.functions.epoch() != e.epoch) return;
    const auto named = identify(e.handle);
    Kernel* k = named ? kernel_of(*named) : nullptr;
    auto f = std::make_unique<Function>();
    f->handle = handle;
    f->context = e.context;
    f->is_kernel = named && named->is_kernel;
    if (k != nullptr) {
        if (k->functions.empty()) describe(*k, e.handle, f->is_kernel, e.device);
        examine(*k->module);
        f->kernel_id = k->id;
        f->layout = k->layout;
        if (shared_.foreground != nullptr && (k->module->has_ptx || k->module->bare_code) &&
            k->layout.known)
            f->attention.store(kForeground);
        if (!k->functions.empty()) f->dispatch.store(k->functions.front()->dispatch.load());
    }
    f->valid_epoch.store(e.epoch, std::memory_order_relaxed);
    Function* entry = shared_.functions.insert(std::move(f));
    if (k != nullptr) {
        std::erase_if(k->functions,
                      [&](const Function* old) { return old->handle == entry->handle; });
        k->functions.push_back(entry);
    }
    shared_.kernels.store(kernels_.size(), std::memory_order_relaxed);
}

Kernel* Registry::kernel(uint64_t id) const {
    return id == 0 || id > kernels_.size() ? nullptr : kernels_[id - 1].get();
}

uint32_t Registry::cubin_only() const {
    return static_cast<uint32_t>(std::count_if(kernels_.begin(), kernels_.end(), [](const auto& k) {
        return k->module != nullptr && k->module->examined && !k->module->has_ptx;
    }));
}

}  // namespace ttt::session
