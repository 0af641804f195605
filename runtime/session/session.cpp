#include "session/session.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <memory>

#include "base/log.h"
#include "image/image.h"
#include "session/descriptors.h"
#include "session/driver_section.h"
#include "session/foreground.h"
#include "session/worker.h"

extern char** environ;

namespace ttt::session {

constinit std::atomic<State> g_state{State::kNotStarted};
constinit std::atomic<Shared*> g_shared{nullptr};

namespace {

constexpr size_t kThreadStack = size_t{1}
                                << 20;  // the driver's loader runs on it; only touched pages count
constexpr uint64_t kImageLimit = uint64_t{256} << 20;

void* thread_main(void* argument) {
    pthread_setname_np(pthread_self(), "ttt");
    auto* s = static_cast<Shared*>(argument);
    Worker* worker =
        new Worker(*s);  // never freed: nothing of ours runs a destructor under the program's feet
    worker->run();
    return nullptr;
}

// The program's own exit handlers and the driver's come after this one (it was registered later).
// From here on our thread stays away from the driver; what it is doing right now gets a moment to
// end.
void at_exit() {
    Shared* s = running();
    disable();
    if (s == nullptr || s->thread_started.load() == 0) return;
    wait_until_unused(
        [s] { return s->in_use_context.load() != nullptr || s->in_use_module.load() != nullptr; });
    // Its last report is worth a moment, not more.
    wait_until_unused([s] { return s->stopped.load(std::memory_order_acquire) == 0; },
                      std::chrono::milliseconds(40));
}

void in_child() {
    // Our thread does not exist here, and CUDA does not work after a fork. The parent's session is
    // untouched.
    g_shared.store(nullptr);
    g_state.store(State::kDisabled);
}

log::Level level_of(const std::string& name) {
    if (name == "debug") return log::Level::kDebug;
    if (name == "warn") return log::Level::kWarn;
    if (name == "error") return log::Level::kError;
    return log::Level::kInfo;
}

bool start_thread(Shared& s) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) return false;
    pthread_attr_setstacksize(&attributes, kThreadStack);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(
        SIG_SETMASK, &all,
        &before);  // inherited: no signal of the program's is ever handled by our thread
    pthread_t thread;
    const int r = pthread_create(&thread, &attributes, thread_main, &s);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    pthread_attr_destroy(&attributes);
    return r == 0;
}

Shared* make(Driver::Resolve resolve, void* state, const char* own_path) {
    std::string problems;
    Config config = Config::from_environment(&problems);
    if (config.mode == "off") return nullptr;
    log::init("libttt", config.log, false, level_of(config.log_level));
    if (!problems.empty()) log::warn("ignored: {}", problems);
    if (config.mode != "observe" && config.mode != "tune" && config.mode != "apply") {
        log::warn("TTT_MODE={} is not observe, tune, apply or off: observing", config.mode);
        config.mode = "observe";
    }
    auto driver = Driver::load(resolve, state);
    if (!driver.ok()) {
        log::warn("not started: {}", driver.error().str());
        return nullptr;
    }
    auto* s = new Shared;  // never freed
    s->driver = *driver;
    s->config = std::move(config);
    s->own_path = own_path;
    for (char** v = environ; v != nullptr && *v != nullptr; ++v) s->environment.emplace_back(*v);
    if (auto page = ipc::LeasePage::create(first_descriptor()); page.ok()) {
        s->lease_page.emplace(std::move(*page));
        s->lease = &s->lease_page->words();
    }
    if (s->config.foreground > 0 && s->config.mode != "observe") {
        s->foreground = new Foreground(s->config.foreground);
        s->hold_launches.store(1);
    }
    return s;
}

std::vector<std::vector<std::byte>> read_file(const char* path) {
    const Fd fd(open(path, O_RDONLY | O_CLOEXEC));
    struct stat st {};
    if (!fd.valid() || fstat(fd.get(), &st) != 0 || !S_ISREG(st.st_mode) || st.st_size <= 0 ||
        static_cast<uint64_t>(st.st_size) > kImageLimit)
        return {};
    std::vector<std::byte> bytes(static_cast<size_t>(st.st_size));
    size_t got = 0;
    while (got < bytes.size()) {
        const ssize_t n =
            pread(fd.get(), bytes.data() + got, bytes.size() - got, static_cast<off_t>(got));
        if (n <= 0) return {};
        got += static_cast<size_t>(n);
    }
    std::vector<std::vector<std::byte>> images;
    images.push_back(std::move(bytes));
    return images;
}

JitOptions jit_options(unsigned count, const CUjit_option* names, void* const* values) {
    JitOptions jit;
    for (unsigned i = 0; names != nullptr && values != nullptr && i < count; ++i) {
        // Outputs (logs, wall time) and their sizes are not part of a kernel's identity.
        if (names[i] == CU_JIT_WALL_TIME ||
            (names[i] >= CU_JIT_INFO_LOG_BUFFER && names[i] <= CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES))
            continue;
        const int value = static_cast<int>(reinterpret_cast<intptr_t>(values[i]));
        if (names[i] == CU_JIT_MAX_REGISTERS) jit.max_registers = value;
        if (names[i] == CU_JIT_OPTIMIZATION_LEVEL) jit.opt_level = value;
        jit.text += fmt::format("{}={};", static_cast<int>(names[i]), value);
    }
    return jit;
}

}  // namespace

Shared* start(Driver::Resolve resolve, void* state, const char* own_path) {
    State expected = State::kNotStarted;
    if (!g_state.compare_exchange_strong(expected, State::kStarting)) return running();
    Shared* s = make(resolve, state, own_path);
    if (s == nullptr || pthread_atfork(nullptr, nullptr, in_child) != 0 ||
        std::atexit(at_exit) != 0) {
        g_state.store(State::kDisabled);
        return nullptr;
    }
    g_shared.store(s, std::memory_order_release);
    g_state.store(State::kRunning);
    return s;
}

void start_thread_once(Shared& s) {
    if (s.thread_started.load(std::memory_order_relaxed) != 0 || s.thread_started.exchange(1) != 0)
        return;
    if (start_thread(s)) return;
    log::warn("not started: no thread");
    disable();
}

void disable() {
    g_state.store(State::kDisabled);
    Shared* s = g_shared.exchange(nullptr);
    if (s == nullptr) return;
    s->variants_on.store(0);
    s->leaving.store(1, std::memory_order_seq_cst);
    if (s->foreground != nullptr) s->foreground->shut();
}

void loaded(Shared& s, const void* handle, bool library, const Image& image, unsigned options,
            const CUjit_option* names, void* const* values) {
    auto e = std::make_unique<Event>();
    e->kind = library ? Event::Kind::kLibrary : Event::Kind::kModule;
    e->handle = handle;
    e->jit = jit_options(options, names, values);
    if (s.driver.cuCtxGetCurrent(&e->context) != CUDA_SUCCESS) e->context = nullptr;
    if (e->context == nullptr || s.driver.cuCtxGetDevice(&e->device) != CUDA_SUCCESS)
        e->context = nullptr;
    if (image.source == Image::Source::kPreserved) {
        e->preserved = image.data;
    } else if (image.source == Image::Source::kFile) {
        e->images = read_file(image.file);
    } else if (auto copied = image::copy_foreign(image.data, kImageLimit); copied.ok()) {
        e->images = std::move(*copied);
    }
    s.events.push(e.release());
}

std::string compiler_options(unsigned count, const CUjit_option* names, void* const* values) {
    const JitOptions jit = jit_options(count, names, values);
    return jit.max_registers > 0 ? fmt::format("--maxrregcount={} {}", jit.max_registers, jit.text)
                                 : jit.text;
}

void named(Shared& s, const void* handle, bool is_kernel, const void* owner, const char* name) {
    auto e = std::make_unique<Event>();
    e->kind = Event::Kind::kNamed;
    e->handle = handle;
    e->is_kernel = is_kernel;
    e->owner = owner;
    e->text = name;
    s.events.push(e.release());
}

void alias(Shared& s, CUfunction function, CUkernel kernel) {
    auto e = std::make_unique<Event>();
    e->kind = Event::Kind::kAlias;
    e->handle = function;
    e->owner = kernel;
    s.events.push(e.release());
}

void attribute(Shared& s, const void* handle, int number, int value) {
    auto e = std::make_unique<Event>();
    e->kind = Event::Kind::kAttribute;
    e->handle = handle;
    e->number = number;
    e->value = value;
    s.events.push(e.release());
}

void unloading(Shared& s, const void* handle) {
    auto e = std::make_unique<Event>();  // before the epoch moves: an allocation failure must leave
                                         // both undone
    e->kind = Event::Kind::kUnload;
    e->handle = handle;
    e->epoch = s.functions.advance_epoch();
    s.events.push(e.release());
    wait_until_unused([&] {
        const void* used = s.in_use_module.load(std::memory_order_seq_cst);
        return used == handle || used == kAnyModule;
    });
}

void destroying_context(Shared& s, CUcontext context) {
    auto e = std::make_unique<Event>();
    e->kind = Event::Kind::kContextGone;
    e->context = context;
    for (ContextPool* p = s.pools.load(std::memory_order_acquire); p != nullptr; p = p->next)
        if (p->context == context) p->gone.store(true, std::memory_order_seq_cst);
    e->epoch = s.functions.advance_epoch();
    s.events.push(e.release());
    wait_until_unused([&] { return s.in_use_context.load(std::memory_order_seq_cst) == context; });
}

}  // namespace ttt::session
