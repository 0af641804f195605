#include "compilers.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "session/session.h"
#include "session/sources.h"

extern "C" void* ttt_real_dlsym_call(void* handle, const char* name);

namespace ttt::shim {
namespace {

// Copies of one library that a process may hold (PyTorch brings its own, CuPy uses the toolkit's).
// Each has its own wrappers, since a wrapper is told nothing but the program's arguments.
constexpr size_t kMostCopies = 4;
constexpr size_t kMostPrograms = 4096;  // NVRTC programs whose options are remembered

enum class Function : uint8_t {
#define TTT_COMPILER(function, wrapper) k_##function,
#include "compilers.def"
#undef TTT_COMPILER
    kCount
};
constexpr size_t kFunctions = static_cast<size_t>(Function::kCount);

constexpr std::array<std::string_view, kFunctions> kNames = {{
#define TTT_COMPILER(function, wrapper) #function,
#include "compilers.def"
#undef TTT_COMPILER
}};

// One loaded copy: where it is, and its real functions.
struct Copy {
    const void* base = nullptr;
    std::array<void*, kFunctions> real{};
    // Asked by us only, found when the copy is first seen. They also tell one library from another.
    struct Helpers {
        void *cubin_size = nullptr, *ptx_size = nullptr, *ptx = nullptr, *linked_size = nullptr;
        friend bool operator==(const Helpers&, const Helpers&) = default;
    } helpers;
};

std::mutex g_mutex;
std::array<Copy, kMostCopies> g_copies;  // entries are filled once and then only completed
std::map<std::pair<size_t, const void*>, std::string>
    g_options;  // of NVRTC programs, by copy and handle
session::Links& links() {
    static auto* l =
        new session::Links("nvJitLink");  // never freed: threads may still compile at exit
    return *l;
}

template <typename F>
F as(void* address) {
    return reinterpret_cast<F>(address);
}

template <typename F>
F real(size_t copy, Function f) {
    const std::lock_guard lock(g_mutex);
    return as<F>(g_copies[copy].real[static_cast<size_t>(f)]);
}

// Nothing of ours may reach the program, not even the lack of memory.
template <typename F>
void learn(F f) {
    if (session::g_state.load(std::memory_order_relaxed) == session::State::kDisabled) return;
    try {
        f();
    } catch (...) {
    }
}

std::string joined(int count, const char* const* options) {
    std::string out;
    for (int i = 0; options != nullptr && i < count; ++i)
        if (options[i] != nullptr) (out += out.empty() ? "" : " ") += options[i];
    return out;
}

using Program = void*;
using Link = void*;

template <size_t N>
int compile_program(Program program, int count, const char* const* options) {
    const int r = real<int (*)(Program, int, const char* const*)>(
        N, Function::k_nvrtcCompileProgram)(program, count, options);
    if (r != 0) return r;  // refused: the arguments may be anything
    learn([&] {
        std::string text = joined(count, options);
        const std::lock_guard lock(g_mutex);
        if (g_options.size() < kMostPrograms) g_options[{N, program}] = std::move(text);
    });
    return r;
}

// NVRTC keeps the PTX of a program that it compiled to machine code.
template <size_t N>
int get_cubin(Program program, char* cubin) {
    const int r = real<int (*)(Program, char*)>(N, Function::k_nvrtcGetCUBIN)(program, cubin);
    if (r != 0) return r;
    learn([&] {
        using Size = int (*)(Program, size_t*);
        Size cubin_size, ptx_size;
        int (*get_ptx)(Program, char*);
        std::string options;
        {
            const std::lock_guard lock(g_mutex);
            cubin_size = as<Size>(g_copies[N].helpers.cubin_size);
            ptx_size = as<Size>(g_copies[N].helpers.ptx_size);
            get_ptx = as<int (*)(Program, char*)>(g_copies[N].helpers.ptx);
            if (const auto o = g_options.find({N, program}); o != g_options.end())
                options = o->second;
        }
        size_t code = 0, text = 0;
        if (cubin_size == nullptr || ptx_size == nullptr || get_ptx == nullptr ||
            cubin_size(program, &code) != 0 || ptx_size(program, &text) != 0 || code == 0 ||
            text < 2)
            return;
        std::string ptx(text, '\0');
        if (get_ptx(program, ptx.data()) != 0) return;
        session::made_from(std::as_bytes(std::span(cubin, code)), ptx, "NVRTC", options);
    });
    return r;
}

template <size_t N>
int destroy_program(Program* program) {
    const Program was = program != nullptr ? *program : nullptr;
    const int r = real<int (*)(Program*)>(N, Function::k_nvrtcDestroyProgram)(program);
    learn([&] {
        const std::lock_guard lock(g_mutex);
        g_options.erase({N, was});
    });
    return r;
}

// Values of nvJitLinkInputType.
constexpr int kInputPtx = 2, kInputAny = 10;

template <size_t N>
int link_create(Link* link, uint32_t count, const char** options) {
    const int r = real<int (*)(Link*, uint32_t, const char**)>(N, Function::k_nvJitLinkCreate)(
        link, count, options);
    if (r == 0 && link != nullptr)
        learn([&] { links().begin(*link, joined(static_cast<int>(count), options)); });
    return r;
}

bool looks_like_text(const void* data, size_t size) {
    const std::string_view head(static_cast<const char*>(data), std::min<size_t>(size, 4096));
    return head.find(".version") != head.npos;
}

template <size_t N>
int link_add_data(Link link, int type, const void* data, size_t size, const char* name) {
    const int r = real<int (*)(Link, int, const void*, size_t, const char*)>(
        N, Function::k_nvJitLinkAddData)(link, type, data, size, name);
    if (r == 0)
        learn([&] {
            if (type == kInputPtx || (type == kInputAny && looks_like_text(data, size)))
                links().add_ptx(link, {static_cast<const std::byte*>(data), size});
            else
                links().add_other(link);
        });
    return r;
}

template <size_t N>
int link_add_file(Link link, int type, const char* path) {
    const int r =
        real<int (*)(Link, int, const char*)>(N, Function::k_nvJitLinkAddFile)(link, type, path);
    if (r == 0) learn([&] { links().add_other(link); });
    return r;
}

template <size_t N>
int link_get_cubin(Link link, void* cubin) {
    const int r = real<int (*)(Link, void*)>(N, Function::k_nvJitLinkGetLinkedCubin)(link, cubin);
    if (r == 0)
        learn([&] {
            int (*size_of)(Link, size_t*);
            {
                const std::lock_guard lock(g_mutex);
                size_of = as<int (*)(Link, size_t*)>(g_copies[N].helpers.linked_size);
            }
            size_t size = 0;
            if (size_of != nullptr && size_of(link, &size) == 0)
                links().linked(link, {static_cast<const std::byte*>(cubin), size});
        });
    return r;
}

template <size_t N>
int link_destroy(Link* link) {
    const Link was = link != nullptr ? *link : nullptr;
    const int r = real<int (*)(Link*)>(N, Function::k_nvJitLinkDestroy)(link);
    learn([&] { links().end(was); });
    return r;
}

template <size_t N>
void* wrapper(Function f) {
    switch (f) {
#define TTT_COMPILER(function, wrapper) \
    case Function::k_##function:        \
        return reinterpret_cast<void*>(&wrapper<N>);
#include "compilers.def"
#undef TTT_COMPILER
        case Function::kCount:
            break;
    }
    return nullptr;
}

void* wrapper(size_t copy, Function f) {
    static_assert(kMostCopies == 4);
    switch (copy) {
        case 0:
            return wrapper<0>(f);
        case 1:
            return wrapper<1>(f);
        case 2:
            return wrapper<2>(f);
        default:
            return wrapper<3>(f);
    }
}

// "__nvJitLinkCreate_13_0" → "nvJitLinkCreate".
std::string_view plain(std::string_view name) {
    if (name.substr(0, 3) != "__n") return name;
    name.remove_prefix(2);
    return name.substr(0, name.find('_'));
}

Function find(std::string_view name) {
    if (name.empty() || (name[0] != 'n' && name[0] != '_')) return Function::kCount;
    const std::string_view wanted = plain(name);
    const auto it = std::find(kNames.begin(), kNames.end(), wanted);
    return static_cast<Function>(it - kNames.begin());
}

// Takes the loader's lock, which a thread inside a library's constructor may hold while it waits
// for ours: never called under g_mutex.
Copy::Helpers find_helpers(const char* file) {
    Copy::Helpers c;
    void* handle = dlopen(file, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) return c;
    c.cubin_size = ttt_real_dlsym_call(handle, "nvrtcGetCUBINSize");
    c.ptx_size = ttt_real_dlsym_call(handle, "nvrtcGetPTXSize");
    c.ptx = ttt_real_dlsym_call(handle, "nvrtcGetPTX");
    c.linked_size = ttt_real_dlsym_call(handle, "nvJitLinkGetLinkedCubinSize");
    dlclose(handle);
    return c;
}

// The copy at `base`, or the first free entry; kMostCopies when there is neither. Under g_mutex.
size_t place_of(const void* base) {
    size_t i = 0;
    while (i < kMostCopies && g_copies[i].base != nullptr && g_copies[i].base != base) ++i;
    return i;
}

// Completes a known copy with one more of its functions. False when the copy is not known, or when
// the function is not where it was: another name for it, or another library that was loaded at the
// address of one that is gone.
bool complete(size_t copy, Function f, void* found) {
    Copy& c = g_copies[copy];
    void*& real = c.real[static_cast<size_t>(f)];
    if (c.base == nullptr || (real != nullptr && real != found)) return false;
    real = found;
    return true;
}

}  // namespace

bool is_compiler_function(const char* name) { return find(name) != Function::kCount; }

void* compiler_wrapper(const char* name, void* found) {
    const Function f = find(name);
    if (f == Function::kCount || found == nullptr) return found;
    Dl_info info{};
    if (dladdr(found, &info) == 0 || info.dli_fbase == nullptr || info.dli_fname == nullptr)
        return found;
    {
        const std::lock_guard lock(g_mutex);
        const size_t copy = place_of(info.dli_fbase);
        if (copy == kMostCopies) return found;
        if (complete(copy, f, found)) return wrapper(copy, f);
    }
    Copy fresh;
    fresh.base = info.dli_fbase;
    fresh.helpers = find_helpers(info.dli_fname);
    const std::lock_guard lock(g_mutex);
    const size_t copy = place_of(info.dli_fbase);  // another thread may have come first
    if (copy == kMostCopies) return found;
    // Two names of one function: the first found serves both. Else the entry starts anew.
    if (!complete(copy, f, found) &&
        (g_copies[copy].base == nullptr || g_copies[copy].helpers != fresh.helpers)) {
        g_copies[copy] = fresh;
        complete(copy, f, found);
    }
    return wrapper(copy, f);
}

}  // namespace ttt::shim
