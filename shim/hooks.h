// What happens around each hooked driver function: session calls before or after the program's own
// call. Named in driver_api.def. Every hook makes the program's call exactly once and returns its
// result; a launch's hook may hand both to the session, and an allocation that fails for lack of
// memory is made once more.
#pragma once

#include "entry.h"
#include "session/sources.h"

namespace ttt::shim {

// The session's shared state, made at first use; null when it does not run.
session::Shared* session_state();
// The same with its thread.
session::Shared* session_running();
bool per_thread_stream(Slot slot);
// Entry point for a pointer the driver returned; the pointer itself if it is not hooked.
void* substitute(void* found);
// Retain count of a primary context reached zero (release) or is void (reset): tells the session
// before the call.
void primary_retained(CUdevice device, CUcontext context);
void primary_leaving(session::Shared& s, CUdevice device, bool reset);

}  // namespace ttt::shim

namespace ttt::shim::hooks {

using session::Shared;

// ---- look-up ----
template <typename C>
CUresult get_proc_address(C& call, const char* symbol, void** pfn, int version, cuuint64_t flags) {
    const CUresult r = call(symbol, pfn, version, flags);
    if (r == CUDA_SUCCESS && pfn != nullptr) *pfn = substitute(*pfn);
    return r;
}
template <typename C>
CUresult get_proc_address_v2(C& call, const char* symbol, void** pfn, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* status) {
    const CUresult r = call(symbol, pfn, version, flags, status);
    if (r == CUDA_SUCCESS && pfn != nullptr) *pfn = substitute(*pfn);
    return r;
}

// ---- launches ----
template <typename C, typename... A>
CUresult launch_unseen(C& call, A... a) {
    if (Shared* s = session::running()) session::stamp(*s);
    return call(a...);
}

inline CUresult launch_slowly(Shared& s, session::Function* f, const session::Launch& l) {
    return f != nullptr ? session::launch_with_attention(s, f, l) : session::launch_unknown(s, l);
}

template <typename C>
CUresult launch_kernel(C& call, CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                       unsigned by, unsigned bz, unsigned shared, CUstream stream, void** params,
                       void** extra) {
    Shared* s = session::running();
    if (__builtin_expect(s == nullptr, 0)) s = session_running();
    if (s == nullptr) return call(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra);
    session::Function* known = session::arrive(*s, f);
    if (known == nullptr ? s->hold_launches.load(std::memory_order_relaxed) == 0
                         : !session::needs_attention(*s, known))
        return call(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra);
    struct State {
        C& call;
        CUstream stream;
        void** params;
        void** extra;
    } state{call, stream, params, extra};
    session::Launch l{f,      {gx, gy, gz}, {bx, by, bz}, shared,
                      stream, params,       extra,        per_thread_stream(call.slot)};
    l.state = &state;
    l.call = [](void* p, CUfunction fn, const Dim3& g, const Dim3& b, uint32_t bytes) {
        auto& st = *static_cast<State*>(p);
        return st.call(fn, g.x, g.y, g.z, b.x, b.y, b.z, bytes, st.stream, st.params, st.extra);
    };
    return launch_slowly(*s, known, l);
}

// Attributes that do not tie a launch to its neighbours, to clusters or to cooperative scheduling.
inline bool harmless(const CUlaunchConfig& c) {
    for (unsigned i = 0; c.attrs != nullptr && i < c.numAttrs; ++i)
        if (c.attrs[i].id != CU_LAUNCH_ATTRIBUTE_IGNORE &&
            c.attrs[i].id != CU_LAUNCH_ATTRIBUTE_PRIORITY)
            return false;
    return true;
}

template <typename C>
CUresult launch_kernel_ex(C& call, const CUlaunchConfig* config, CUfunction f, void** params,
                          void** extra) {
    Shared* s = session::running();
    if (__builtin_expect(s == nullptr, 0)) s = session_running();
    if (s == nullptr || config == nullptr) return call(config, f, params, extra);
    session::Function* known = session::arrive(*s, f);
    if (config->numAttrs != 0) session::note_attributes(*s, *config);
    if (known == nullptr ? s->hold_launches.load(std::memory_order_relaxed) == 0
                         : !session::needs_attention(*s, known))
        return call(config, f, params, extra);
    struct State {
        C& call;
        const CUlaunchConfig& config;
        void** params;
        void** extra;
    } state{call, *config, params, extra};
    session::Launch l{f,
                      {config->gridDimX, config->gridDimY, config->gridDimZ},
                      {config->blockDimX, config->blockDimY, config->blockDimZ},
                      config->sharedMemBytes,
                      config->hStream,
                      params,
                      extra,
                      per_thread_stream(call.slot)};
    l.plain = harmless(*config);
    l.state = &state;
    l.call = [](void* p, CUfunction fn, const Dim3& g, const Dim3& b, uint32_t bytes) {
        auto& st = *static_cast<State*>(p);
        CUlaunchConfig c = st.config;
        c.gridDimX = g.x;
        c.gridDimY = g.y;
        c.gridDimZ = g.z;
        c.blockDimX = b.x;
        c.blockDimY = b.y;
        c.blockDimZ = b.z;
        c.sharedMemBytes = bytes;
        return st.call(&c, fn, st.params, st.extra);
    };
    // A launch that is not plain goes through with the program's own configuration object.
    return l.plain ? launch_slowly(*s, known, l) : call(config, f, params, extra);
}

template <typename C, typename... A>
CUresult launch_cooperative(C& call, CUfunction f, A... a) {
    if (Shared* s = session_running()) session::arrive(*s, f);
    return call(f, a...);
}

// ---- modules ----
inline void note_loaded(const void* handle, bool library, const session::Image& image,
                        unsigned n = 0, const CUjit_option* names = nullptr,
                        void* const* values = nullptr) {
    if (Shared* s = session_running())
        session::loaded(*s, handle, library, image, n, names, values);
}

template <typename C>
CUresult module_load(C& call, CUmodule* module, const char* file) {
    const CUresult r = call(module, file);
    if (r == CUDA_SUCCESS)
        note_loaded(*module, false, {session::Image::Source::kFile, nullptr, file});
    return r;
}
template <typename C>
CUresult module_load_data(C& call, CUmodule* module, const void* image) {
    const CUresult r = call(module, image);
    if (r == CUDA_SUCCESS)
        note_loaded(*module, false, {session::Image::Source::kMemory, image, nullptr});
    return r;
}
template <typename C>
CUresult module_load_data_ex(C& call, CUmodule* module, const void* image, unsigned n,
                             CUjit_option* names, void** values) {
    const CUresult r = call(module, image, n, names, values);
    if (r == CUDA_SUCCESS)
        note_loaded(*module, false, {session::Image::Source::kMemory, image, nullptr}, n, names,
                    values);
    return r;
}
template <typename C>
CUresult module_unload(C& call, CUmodule module) {
    if (Shared* s = session::running()) session::unloading(*s, module);
    return call(module);
}
template <typename C>
CUresult module_get_function(C& call, CUfunction* function, CUmodule module, const char* name) {
    const CUresult r = call(function, module, name);
    if (r == CUDA_SUCCESS)
        if (Shared* s = session_running()) session::named(*s, *function, false, module, name);
    return r;
}
template <typename C>
CUresult library_load_data(C& call, CUlibrary* library, const void* code, CUjit_option* names,
                           void** values, unsigned n, CUlibraryOption* options,
                           void** option_values, unsigned options_count) {
    const CUresult r = call(library, code, names, values, n, options, option_values, options_count);
    if (r != CUDA_SUCCESS) return r;
    session::Image image{session::Image::Source::kMemory, code, nullptr};
    for (unsigned i = 0; options != nullptr && i < options_count; ++i)
        if (options[i] == CU_LIBRARY_BINARY_IS_PRESERVED && option_values != nullptr &&
            option_values[i] != nullptr)
            image.source = session::Image::Source::kPreserved;
    note_loaded(*library, true, image, n, names, values);
    return r;
}
template <typename C>
CUresult library_load_file(C& call, CUlibrary* library, const char* file, CUjit_option* names,
                           void** values, unsigned n, CUlibraryOption* options,
                           void** option_values, unsigned options_count) {
    const CUresult r = call(library, file, names, values, n, options, option_values, options_count);
    if (r == CUDA_SUCCESS)
        note_loaded(*library, true, {session::Image::Source::kFile, nullptr, file}, n, names,
                    values);
    return r;
}
template <typename C>
CUresult library_unload(C& call, CUlibrary library) {
    if (Shared* s = session::running()) session::unloading(*s, library);
    return call(library);
}
template <typename C>
CUresult library_get_kernel(C& call, CUkernel* kernel, CUlibrary library, const char* name) {
    const CUresult r = call(kernel, library, name);
    if (r == CUDA_SUCCESS)
        if (Shared* s = session_running()) session::named(*s, *kernel, true, library, name);
    return r;
}
template <typename C>
CUresult library_enumerate_kernels(C& call, CUkernel* kernels, unsigned count, CUlibrary library) {
    const CUresult r = call(kernels, count, library);
    Shared* s = r == CUDA_SUCCESS && kernels != nullptr ? session_running() : nullptr;
    for (unsigned i = 0; s != nullptr && i < count; ++i) {
        const char* name = nullptr;
        if (kernels[i] != nullptr && s->driver.cuKernelGetName != nullptr &&
            s->driver.cuKernelGetName(&name, kernels[i]) == CUDA_SUCCESS && name != nullptr)
            session::named(*s, kernels[i], true, library, name);
    }
    return r;
}
template <typename C>
CUresult kernel_get_function(C& call, CUfunction* function, CUkernel kernel) {
    const CUresult r = call(function, kernel);
    if (r == CUDA_SUCCESS)
        if (Shared* s = session_running()) session::alias(*s, *function, kernel);
    return r;
}

// ---- linker ----
inline session::Links& driver_links() {
    static auto* links = new session::Links("the driver's linker");  // never freed
    return *links;
}
template <typename C>
CUresult link_create(C& call, unsigned n, CUjit_option* names, void** values, CUlinkState* state) {
    const CUresult r = call(n, names, values, state);
    if (r == CUDA_SUCCESS)
        driver_links().begin(*state, session::compiler_options(n, names, values));
    return r;
}
template <typename C>
CUresult link_add_data(C& call, CUlinkState state, CUjitInputType type, void* data, size_t size,
                       const char* name, unsigned n, CUjit_option* names, void** values) {
    const CUresult r = call(state, type, data, size, name, n, names, values);
    if (r != CUDA_SUCCESS) return r;
    // Options of one input override the link's: too rare to be worth knowing.
    if (type == CU_JIT_INPUT_PTX && n == 0)
        driver_links().add_ptx(state, {static_cast<const std::byte*>(data), size});
    else
        driver_links().add_other(state);
    return r;
}
template <typename C>
CUresult link_add_file(C& call, CUlinkState state, CUjitInputType type, const char* path,
                       unsigned n, CUjit_option* names, void** values) {
    const CUresult r = call(state, type, path, n, names, values);
    if (r == CUDA_SUCCESS) driver_links().add_other(state);
    return r;
}
template <typename C>
CUresult link_complete(C& call, CUlinkState state, void** cubin, size_t* size) {
    const CUresult r = call(state, cubin, size);
    if (r == CUDA_SUCCESS && cubin != nullptr && size != nullptr)
        driver_links().linked(state, {static_cast<const std::byte*>(*cubin), *size});
    return r;
}
template <typename C>
CUresult link_destroy(C& call, CUlinkState state) {
    driver_links().end(state);
    return call(state);
}

// ---- function state ----
template <typename C>
CUresult func_set_attribute(C& call, CUfunction f, CUfunction_attribute attribute, int value) {
    const CUresult r = call(f, attribute, value);
    if (r == CUDA_SUCCESS)
        if (Shared* s = session::running())
            session::attribute(*s, f, static_cast<int>(attribute), value);
    return r;
}
template <typename C>
CUresult kernel_set_attribute(C& call, CUfunction_attribute attribute, int value, CUkernel kernel,
                              CUdevice device) {
    const CUresult r = call(attribute, value, kernel, device);
    if (r == CUDA_SUCCESS)
        if (Shared* s = session::running())
            session::attribute(*s, kernel, static_cast<int>(attribute), value);
    return r;
}
template <typename C>
CUresult func_set_cache_config(C& call, CUfunction f, CUfunc_cache config) {
    const CUresult r = call(f, config);
    if (r == CUDA_SUCCESS)
        if (Shared* s = session::running()) session::attribute(*s, f, -1, static_cast<int>(config));
    return r;
}
template <typename C>
CUresult kernel_set_cache_config(C& call, CUkernel kernel, CUfunc_cache config, CUdevice device) {
    const CUresult r = call(kernel, config, device);
    if (r == CUDA_SUCCESS)
        if (Shared* s = session::running())
            session::attribute(*s, kernel, -1, static_cast<int>(config));
    return r;
}

// ---- memory ----
inline void note_memory(uint64_t base, uint64_t bytes, session::MemoryKind kind) {
    if (Shared* s = session_state()) s->allocations.add(base, bytes, kind);
}
// The table forgets before the driver frees: another thread may get the address back at once.
template <typename C, typename... A>
CUresult forget_memory(C& call, uint64_t base, A... a) {
    Shared* s = session::running();
    session::Allocation was;
    const bool known = s != nullptr && s->allocations.find(base, &was) && was.base == base;
    if (known) s->allocations.remove(base);
    const CUresult r = call(a...);
    if (r != CUDA_SUCCESS && known) s->allocations.add(was.base, was.bytes, was.kind);
    return r;
}

// rules.md 19: memory that the program lacks while we hold some is its own again before it hears of
// it.
template <typename C, typename... A>
CUresult allocate(C& call, A... a) {
    const CUresult r = call(a...);
    if (r != CUDA_ERROR_OUT_OF_MEMORY) return r;
    Shared* s = session::running();
    return s != nullptr && session::give_memory_back(*s) ? call(a...) : r;
}

template <typename C>
CUresult mem_alloc(C& call, CUdeviceptr* p, size_t bytes) {
    const CUresult r = allocate(call, p, bytes);
    if (r == CUDA_SUCCESS) note_memory(*p, bytes, session::MemoryKind::kDevice);
    return r;
}
template <typename C>
CUresult mem_alloc_pitch(C& call, CUdeviceptr* p, size_t* pitch, size_t width, size_t height,
                         unsigned element) {
    const CUresult r = allocate(call, p, pitch, width, height, element);
    if (r == CUDA_SUCCESS) note_memory(*p, *pitch * height, session::MemoryKind::kDevice);
    return r;
}
template <typename C>
CUresult mem_alloc_managed(C& call, CUdeviceptr* p, size_t bytes, unsigned flags) {
    const CUresult r = allocate(call, p, bytes, flags);
    if (r == CUDA_SUCCESS) note_memory(*p, bytes, session::MemoryKind::kManaged);
    return r;
}
template <typename C>
CUresult mem_alloc_async(C& call, CUdeviceptr* p, size_t bytes, CUstream stream) {
    const CUresult r = allocate(call, p, bytes, stream);
    if (r == CUDA_SUCCESS) note_memory(*p, bytes, session::MemoryKind::kAsync);
    return r;
}
template <typename C>
CUresult mem_alloc_from_pool(C& call, CUdeviceptr* p, size_t bytes, CUmemoryPool pool,
                             CUstream stream) {
    const CUresult r = allocate(call, p, bytes, pool, stream);
    if (r == CUDA_SUCCESS) note_memory(*p, bytes, session::MemoryKind::kAsync);
    return r;
}
template <typename C>
CUresult pool_import(C& call, CUdeviceptr* p, CUmemoryPool pool, CUmemPoolPtrExportData* data) {
    return call(p, pool,
                data);  // shared with another process: never in the table, so never eligible
}
template <typename C>
CUresult mem_free(C& call, CUdeviceptr p) {
    return forget_memory(call, p, p);
}
template <typename C>
CUresult mem_free_async(C& call, CUdeviceptr p, CUstream stream) {
    return forget_memory(call, p, p, stream);
}
template <typename C>
CUresult mem_map(C& call, CUdeviceptr p, size_t size, size_t offset,
                 CUmemGenericAllocationHandle handle, unsigned long long flags) {
    const CUresult r = call(p, size, offset, handle, flags);
    if (r == CUDA_SUCCESS) note_memory(p, size, session::MemoryKind::kVmm);
    return r;
}
template <typename C>
CUresult mem_unmap(C& call, CUdeviceptr p, size_t size) {
    if (Shared* s = session::running()) s->allocations.remove_range(p, size);
    return call(p, size);
}
template <typename C>
CUresult mem_alloc_host(C& call, void** p, size_t bytes) {
    const CUresult r = call(p, bytes);
    if (r == CUDA_SUCCESS)
        note_memory(reinterpret_cast<uint64_t>(*p), bytes, session::MemoryKind::kHost);
    return r;
}
template <typename C>
CUresult mem_host_alloc(C& call, void** p, size_t bytes, unsigned flags) {
    const CUresult r = call(p, bytes, flags);
    if (r == CUDA_SUCCESS)
        note_memory(reinterpret_cast<uint64_t>(*p), bytes, session::MemoryKind::kHost);
    return r;
}
template <typename C>
CUresult mem_host_register(C& call, void* p, size_t bytes, unsigned flags) {
    const CUresult r = call(p, bytes, flags);
    if (r == CUDA_SUCCESS)
        note_memory(reinterpret_cast<uint64_t>(p), bytes, session::MemoryKind::kHost);
    return r;
}
template <typename C>
CUresult mem_free_host(C& call, void* p) {
    return forget_memory(call, reinterpret_cast<uint64_t>(p), p);
}
template <typename C>
CUresult ipc_open(C& call, CUdeviceptr* p, CUipcMemHandle handle, unsigned flags) {
    const CUresult r = call(p, handle, flags);
    if (r == CUDA_SUCCESS) note_memory(*p, 1, session::MemoryKind::kForeign);
    return r;
}

// ---- synchronisation and capture ----
template <typename C, typename... A>
CUresult synchronize(C& call, A... a) {
    Shared* s = session::running();
    if (s == nullptr) return call(a...);
    session::Synchronising waiting(*s);
    const CUresult r = call(a...);
    if (r == CUDA_SUCCESS) waiting.drained();
    return r;
}
template <typename C, typename... A>
CUresult begin_capture(C& call, A... a) {
    const CUresult r = call(a...);
    if (r == CUDA_SUCCESS)
        if (Shared* s = session_state()) s->captures.fetch_add(1, std::memory_order_relaxed);
    return r;
}
template <typename C, typename... A>
CUresult end_capture(C& call, A... a) {
    const CUresult r = call(a...);
    Shared* s = session::running();
    uint32_t open = s != nullptr ? s->captures.load(std::memory_order_relaxed) : 0;
    while (open != 0 &&
           !s->captures.compare_exchange_weak(open, open - 1, std::memory_order_relaxed)) {
    }
    return r;
}

// ---- contexts ----
template <typename C, typename... A>
CUresult context_create(C& call, A... a) {
    const CUresult r = call(a...);
    if (r == CUDA_SUCCESS)
        if (Shared* s = session_state()) s->contexts.fetch_add(1, std::memory_order_relaxed);
    return r;
}
template <typename C>
CUresult primary_retain(C& call, CUcontext* context, CUdevice device) {
    const CUresult r = call(context, device);
    if (r == CUDA_SUCCESS) primary_retained(device, *context);
    return r;
}
template <typename C>
CUresult primary_release(C& call, CUdevice device) {
    if (Shared* s = session::running()) primary_leaving(*s, device, false);
    return call(device);
}
template <typename C>
CUresult primary_reset(C& call, CUdevice device) {
    if (Shared* s = session::running()) primary_leaving(*s, device, true);
    return call(device);
}
template <typename C>
CUresult ctx_destroy(C& call, CUcontext context) {
    if (Shared* s = session::running()) {
        session::destroying_context(*s, context);
        s->allocations.clear();
    }
    return call(context);
}

}  // namespace ttt::shim::hooks
