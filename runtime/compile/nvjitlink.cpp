// nvJitLink inside this process. Its handful of functions is declared here from NVIDIA's documented
// interface; the library is opened at run time and never closed (it leaves thread-local state
// behind).
#include <dlfcn.h>

#include <cstring>

#include "compile/backend.h"

namespace ttt::compile {
namespace {

using Handle = struct JitLink*;
constexpr int kSuccess = 0;
constexpr int kInputPtx = 2;

struct Functions {
    int (*create)(Handle*, uint32_t, const char**) = nullptr;
    int (*destroy)(Handle*) = nullptr;
    int (*add)(Handle, int, const void*, size_t, const char*) = nullptr;
    int (*complete)(Handle) = nullptr;
    int (*cubin_size)(Handle, size_t*) = nullptr;
    int (*cubin)(Handle, void*) = nullptr;
    int (*error_size)(Handle, size_t*) = nullptr;
    int (*error)(Handle, char*) = nullptr;
    int (*info_size)(Handle, size_t*) = nullptr;
    int (*info)(Handle, char*) = nullptr;
    int (*version)(unsigned*, unsigned*) = nullptr;
};

// Releases export each function under its plain name, some only under "__name_<major>_<minor>".
void* find_symbol(void* library, const std::string& name) {
    if (void* found = ::dlsym(library, name.c_str())) return found;
    for (int major = 13; major >= 12; --major)
        for (int minor = 9; minor >= 0; --minor) {
            const std::string versioned =
                "__" + name + "_" + std::to_string(major) + "_" + std::to_string(minor);
            if (void* found = ::dlsym(library, versioned.c_str())) return found;
        }
    return nullptr;
}

template <typename F>
bool resolve(void* library, const char* name, F& out) {
    out = reinterpret_cast<F>(find_symbol(library, name));
    return out != nullptr;
}

bool resolve_all(void* library, Functions& f) {
    return resolve(library, "nvJitLinkCreate", f.create) &&
           resolve(library, "nvJitLinkDestroy", f.destroy) &&
           resolve(library, "nvJitLinkAddData", f.add) &&
           resolve(library, "nvJitLinkComplete", f.complete) &&
           resolve(library, "nvJitLinkGetLinkedCubinSize", f.cubin_size) &&
           resolve(library, "nvJitLinkGetLinkedCubin", f.cubin) &&
           resolve(library, "nvJitLinkGetErrorLogSize", f.error_size) &&
           resolve(library, "nvJitLinkGetErrorLog", f.error) &&
           resolve(library, "nvJitLinkGetInfoLogSize", f.info_size) &&
           resolve(library, "nvJitLinkGetInfoLog", f.info) &&
           resolve(library, "nvJitLinkVersion", f.version);
}

std::string read_log(Handle link, int (*size)(Handle, size_t*), int (*read)(Handle, char*)) {
    size_t bytes = 0;
    if (size(link, &bytes) != kSuccess || bytes == 0) return {};
    std::string log(bytes + 1, '\0');
    if (read(link, log.data()) != kSuccess) return {};
    log.resize(std::strlen(log.c_str()));
    return log;
}

class Link {
  public:
    explicit Link(const Functions& f) : x_f(f) {}
    ~Link() {
        if (x_link != nullptr) x_f.destroy(&x_link);
    }
    Link(const Link&) = delete;
    Link& operator=(const Link&) = delete;

    Result<Output> run(const Job& job, std::vector<const char*> options) {
        if (x_f.create(&x_link, static_cast<uint32_t>(options.size()), options.data()) != kSuccess)
            return refused();
        const std::string text(job.ptx);  // the library wants a terminated string
        if (x_f.add(x_link, kInputPtx, text.c_str(), text.size() + 1, "variant") != kSuccess)
            return refused();
        if (x_f.complete(x_link) != kSuccess) return refused();
        size_t bytes = 0;
        if (x_f.cubin_size(x_link, &bytes) != kSuccess || bytes == 0) return refused();
        Output out;
        out.cubin.resize(bytes);
        if (x_f.cubin(x_link, out.cubin.data()) != kSuccess) return refused();
        out.log = read_log(x_link, x_f.info_size, x_f.info);
        return out;
    }

  private:
    Error refused() {
        std::string log =
            x_link == nullptr ? std::string() : read_log(x_link, x_f.error_size, x_f.error);
        return make_error(Code::kCompile, log.empty() ? "nvJitLink refused the PTX and left no log"
                                                      : std::move(log));
    }

    const Functions& x_f;
    Handle x_link = nullptr;
};

class JitLinkLibrary final : public Backend {
  public:
    explicit JitLinkLibrary(const Functions& f) : x_functions(f) {}

    Status identify() {
        unsigned major = 0;
        unsigned minor = 0;
        if (x_functions.version(&major, &minor) != kSuccess)
            return make_error(Code::kUnsupported, "nvJitLink does not state its version");
        TTT_TRY(const Probe found, probe(*this));
        const std::string plain = std::to_string(major) + "." + std::to_string(minor);
        x_identity = {"nvJitLink " + (found.version.empty() ? plain : found.version), major,
                      found.max_ptx_version};
        return ok_status();
    }

    Result<Output> assemble(const Job& job) override {
        std::vector<std::string> options{"-arch=" + job.arch};
        // Most plain options of nvJitLink are silently ignored for PTX: everything goes to the
        // assembler inside.
        for (const std::string& o : job.options)
            options.push_back(o.rfind("-maxrregcount", 0) == 0 ? o : "-Xptxas=" + o);
        std::vector<const char*> pointers;
        for (const std::string& o : options) pointers.push_back(o.c_str());
        return Link(x_functions).run(job, std::move(pointers));
    }

    const Identity& identity() const override { return x_identity; }

  private:
    Functions x_functions;
    Identity x_identity;
};

}  // namespace

Result<std::unique_ptr<Backend>> open_nvjitlink(const std::string& path) {
    void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        const char* why = ::dlerror();
        return make_error(Code::kNotFound,
                          why == nullptr ? "cannot open " + path : std::string(why));
    }
    Functions f;
    if (!resolve_all(library, f))
        return make_error(Code::kUnsupported, path + " lacks functions of CUDA 12.4 or newer");
    auto out = std::make_unique<JitLinkLibrary>(f);
    TTT_CHECK_OK(out->identify());
    return std::unique_ptr<Backend>(std::move(out));
}

}  // namespace ttt::compile
