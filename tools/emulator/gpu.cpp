#include "emulator/gpu.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>

#include "driver_table/fault_plan.h"
#include "emulator/emu_log.h"
#include "emulator/entry.h"

namespace ttt::emulator {
namespace {

struct ThreadState {
    std::vector<Context*> contexts;
    std::unordered_map<uint64_t, CUstream> streams;  // per-thread default streams, by context id
};
thread_local ThreadState* t_state = nullptr;
thread_local uint64_t t_host_clock = 0;

// The main thread's state stays: exit handlers and static destructors run after thread-local ones,
// and call us.
struct ThreadEnd {
    ~ThreadEnd() {
        if (::gettid() == ::getpid()) return;
        delete t_state;
        t_state = nullptr;
    }
};

ThreadState& thread_state() {
    if (t_state == nullptr) {
        static thread_local ThreadEnd end;
        t_state = new ThreadState;
    }
    return *t_state;
}

unsigned threads_from_environment() {
    const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
    const char* text = std::getenv("TTT_EMU_THREADS");
    if (text == nullptr) return cores;
    unsigned value = 0;
    const auto [end, error] = std::from_chars(text, text + std::strlen(text), value);
    if (error == std::errc{} && *end == '\0' && value >= 1 && value <= 1024) return value;
    note("TTT_EMU_THREADS={} is no number from 1 to 1024: using {}", text, cores);
    return cores;
}

}  // namespace

Gpu& Gpu::get() {
    static Gpu* gpu = new Gpu;
    return *gpu;
}

CUresult Gpu::initialise() {
    if (initialised) return CUDA_SUCCESS;
    const char* wanted = std::getenv("TTT_EMU_PROFILE");
    profile = wanted != nullptr && *wanted != '\0' ? wanted : "h200";
    device = model::find_profile(profile);
    if (device == nullptr) {
        note("TTT_EMU_PROFILE={} is no known profile (h200, orin, thor)", profile);
        return CUDA_ERROR_NO_DEVICE;
    }
    const std::string& problems = driver_table::process_fault_plan().problems();
    if (!problems.empty()) note("TTT_EMU_FAULT: {}", problems);
    memory = std::make_unique<DeviceMemory>(device->memory_bytes);
    host_threads = threads_from_environment();
    default_pool = current_pool = pools.add(std::make_unique<Pool>());
    initialised = true;
    return CUDA_SUCCESS;
}

std::vector<Context*>& Gpu::stack() {
    // A context may have been destroyed by another thread while this one had it current.
    auto& stack = thread_state().contexts;
    if (!stack.empty() && stack.back() != nullptr &&
        contexts.find(handle(stack.back())) == nullptr) {
        stack.back() = nullptr;
    }
    return stack;
}

Context* Gpu::current() const {
    auto& stack = const_cast<Gpu*>(this)->stack();
    return stack.empty() ? nullptr : stack.back();
}

Context* Gpu::create_context(unsigned flags, bool is_primary) {
    auto made = std::make_unique<Context>();
    made->id = next_id();
    made->flags = flags;
    made->primary = is_primary;
    Context* context = made.get();
    contexts.add(std::move(made));
    return context;
}

void Gpu::destroy_context(Context* context) {
    std::vector<Module*> gone;
    modules.each([&](Module& module) {
        if (module.context == context) gone.push_back(&module);
    });
    for (Module* module : gone) unload_module(module);
    libraries.each([&](Library& library) { library.modules.erase(context); });
    streams.remove_if([&](const Stream& stream) { return stream.context == context; });
    events.remove_if([&](const Event& event) { return event.context == context; });
    execs.remove_if([&](const GraphExec& exec) { return exec.context == context; });
    legacy_streams_.erase(context);
    memory->free_context(context);
    if (primary == context) primary = nullptr;
    contexts.remove(handle(context));
}

Stream* Gpu::default_stream(Context* context, bool per_thread) {
    auto& own = thread_state().streams;
    if (per_thread) {
        if (Stream* known = streams.find(own[context->id])) return known;
    } else if (const auto found = legacy_streams_.find(context); found != legacy_streams_.end()) {
        return found->second;
    }
    auto made = std::make_unique<Stream>();
    made->id = next_id();
    made->context = context;
    made->legacy = !per_thread;
    made->per_thread = per_thread;
    Stream* stream = made.get();
    const CUstream handle = streams.add(std::move(made));
    if (per_thread) {
        own[context->id] = handle;
    } else {
        legacy_streams_[context] = stream;
    }
    return stream;
}

Stream* Gpu::stream(CUstream handle) {
    Context* context = current();
    if (handle == nullptr || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
        if (context == nullptr) return nullptr;
        const bool per_thread =
            handle == CU_STREAM_PER_THREAD || (handle == nullptr && per_thread_default());
        return default_stream(context, per_thread);
    }
    return streams.find(handle);
}

Function* Gpu::function(CUfunction handle) {
    if (Function* function = functions.find(handle)) return function;
    Kernel* kernel = kernels.find(reinterpret_cast<CUkernel>(handle));
    Context* context = current();
    if (kernel == nullptr || context == nullptr) return nullptr;
    Module* module = nullptr;
    Function* function = nullptr;
    if (module_of(*kernel->library, context, &module) != CUDA_SUCCESS ||
        get_function(*module, kernel->name, &function) != CUDA_SUCCESS) {
        return nullptr;
    }
    for (const auto& [attribute, value] : kernel->attributes)
        function->attributes[attribute] = value;
    return function;
}

CUresult need_context(Context** context) {
    *context = Gpu::get().current();
    return *context != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

uint64_t& host_clock() { return t_host_clock; }

void wait_for(const Stream& stream) {
    t_host_clock = std::max(t_host_clock, stream.clock);
    if (stream.legacy) t_host_clock = std::max(t_host_clock, stream.context->blocking_clock);
}

void wait_for_context(const Context& context) {
    Gpu::get().streams.each([&](const Stream& stream) {
        if (stream.context == &context) wait_for(stream);
    });
}

}  // namespace ttt::emulator
