#include "real_driver.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "session/cuda_api.h"

extern "C" void* ttt_real_dlsym_call(void* handle, const char* name);

namespace ttt::shim {
namespace {

constexpr unsigned kSlots = static_cast<unsigned>(Slot::kCount);

struct Name {
    std::string_view name;
    void* entry;
};
// Sorted by the generator, in the order of the slots.
const std::array<Name, kSlots> kNames = {{
#define TTT_NAME(symbol) {#symbol, reinterpret_cast<void*>(&::symbol)},
#include "names.inc"
#undef TTT_NAME
}};

constinit std::atomic<void*> g_handle{nullptr};
constinit std::array<std::atomic<void*>, kSlots> g_real{};
constinit char g_missing = 0;  // its address stands for "looked up, not there"

const Name& by_slot(Slot slot) { return kNames[static_cast<unsigned>(slot)]; }

#ifdef TTT_SONAME_BUILD
// We are libcuda.so.1 ourselves: the real one needs a path. The usual places of the two families of
// distributions.
void* open_driver(bool may_load) {
    const int flags = RTLD_LAZY | RTLD_LOCAL | (may_load ? 0 : RTLD_NOLOAD);
    if (const char* path = std::getenv("TTT_REAL_LIBCUDA"); path != nullptr && *path != 0)
        return dlopen(path, flags);
    for (const char* path :
         {"/usr/lib/x86_64-linux-gnu/libcuda.so.1", "/usr/lib/aarch64-linux-gnu/libcuda.so.1",
          "/usr/lib/aarch64-linux-gnu/nvidia/libcuda.so.1", "/usr/lib64/libcuda.so.1",
          "/usr/lib/wsl/lib/libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1"})
        if (void* handle = dlopen(path, flags)) return handle;
    return nullptr;
}
#else
void* open_driver(bool may_load) {
    if (void* loaded = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD)) return loaded;
    return may_load ? dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) : nullptr;
}
#endif

void* handle(bool may_load) {
    void* h = g_handle.load(std::memory_order_acquire);
    if (h == nullptr) {
        h = open_driver(may_load);
        if (h != nullptr)
            g_handle.store(h, std::memory_order_release);  // kept for ever, whoever wins
    }
    return h;
}

void* resolve(Slot slot, bool may_load) {
    std::atomic<void*>& cell = g_real[static_cast<unsigned>(slot)];
    void* address = cell.load(std::memory_order_acquire);
    if (address == &g_missing) return nullptr;
    if (address != nullptr) return address;
    void* h = handle(may_load);
    if (h == nullptr) return nullptr;
    const Name& name = by_slot(slot);
    address = ttt_real_dlsym_call(h, name.name.data());
    if (address == name.entry) address = nullptr;
    cell.store(address != nullptr ? address : &g_missing, std::memory_order_release);
    return address;
}

}  // namespace

void* real_symbol(const char* name) {
    void* h = handle(true);
    return h != nullptr ? ttt_real_dlsym_call(h, name) : nullptr;
}

void* real_address(Slot slot) { return resolve(slot, true); }
void* real_address_if_loaded(Slot slot) { return resolve(slot, false); }
const char* slot_name(Slot slot) { return by_slot(slot).name.data(); }
void* entry_address(Slot slot) { return by_slot(slot).entry; }

Slot find_hooked(const char* name) {
    const std::string_view wanted(name);
    const auto it = std::lower_bound(kNames.begin(), kNames.end(), wanted,
                                     [](const Name& n, std::string_view w) { return n.name < w; });
    return it != kNames.end() && it->name == wanted ? static_cast<Slot>(it - kNames.begin())
                                                    : Slot::kCount;
}

Slot find_by_real(const void* address) {
    if (address == nullptr) return Slot::kCount;
    for (unsigned i = 0; i < kSlots; ++i)
        if (resolve(static_cast<Slot>(i), true) == address) return static_cast<Slot>(i);
    return Slot::kCount;
}

}  // namespace ttt::shim
