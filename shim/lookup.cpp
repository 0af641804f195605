// The dlsym hook. Answers only the names of driver_api.def and compilers.def, and only where the
// real dlsym finds the real driver's symbol (or ours in its place); everything else is a tail jump
// to the real dlsym, which then sees the true caller. The jump itself is in dlsym_x86_64.S and
// dlsym_aarch64.S.
#include <dlfcn.h>

#include <initializer_list>

#include "compilers.h"
#include "real_driver.h"

extern "C" {

__attribute__((visibility("hidden"))) void* (*ttt_real_dlsym)(void*, const char*) = nullptr;

// Called by the stub, and by us, before the first use. dlvsym is not hooked.
__attribute__((visibility("hidden"))) void ttt_find_real_dlsym() {
    void* found = nullptr;
    for (const char* version : {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"}) {
        found = dlvsym(RTLD_NEXT, "dlsym", version);
        if (found != nullptr) break;
    }
    __atomic_store_n(&ttt_real_dlsym, reinterpret_cast<void* (*)(void*, const char*)>(found),
                     __ATOMIC_RELEASE);
}

__attribute__((visibility("hidden"))) void* ttt_real_dlsym_call(void* handle, const char* name) {
    if (__atomic_load_n(&ttt_real_dlsym, __ATOMIC_ACQUIRE) == nullptr) ttt_find_real_dlsym();
    return ttt_real_dlsym != nullptr ? ttt_real_dlsym(handle, name) : nullptr;
}

// 1: not ours, jump on. Anything else is the answer.
__attribute__((visibility("hidden"))) void* ttt_dlsym_filter(void* handle, const char* name) {
    using namespace ttt::shim;
    void* const jump_on = reinterpret_cast<void*>(1);
    const Slot slot = find_hooked(name);
    // RTLD_NEXT means "after the caller": only the real dlsym can know who that is.
    if (handle == RTLD_NEXT) return jump_on;
    if (slot == Slot::kCount && handle != RTLD_DEFAULT && is_compiler_function(name))
        return compiler_wrapper(name, ttt_real_dlsym_call(handle, name));
    if (slot == Slot::kCount) return jump_on;
    void* const ours = entry_address(slot);
    void* found = ttt_real_dlsym_call(handle, name);
    // Found ourselves in the global scope: a program that probes for a driver must not be told that
    // there is one.
    if ((found == ours || handle == RTLD_DEFAULT) && real_address_if_loaded(slot) == nullptr)
        return ttt_real_dlsym_call(RTLD_NEXT, name);
    return found == ours || (found != nullptr && found == real_address_if_loaded(slot)) ? ours
                                                                                        : found;
}

}  // extern "C"
