// ptxas as a child process; text and result travel in memory files, so nothing is left on disk.
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "compile/backend.h"
#include "compile/process.h"

namespace ttt::compile {
namespace {

Result<Fd> memory_file(const char* name) {
    Fd fd(::memfd_create(name, MFD_CLOEXEC));
    if (!fd.valid())
        return make_error(Code::kIo, std::string("memfd_create: ") + std::strerror(errno));
    return fd;
}

Status write_all(int fd, std::string_view text) {
    while (!text.empty()) {
        const ssize_t n = ::write(fd, text.data(), text.size());
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return make_error(Code::kIo, std::string("write: ") + std::strerror(errno));
        text.remove_prefix(static_cast<size_t>(n));
    }
    return ok_status();
}

Result<std::string> read_all(int fd) {
    struct stat st {};
    if (::fstat(fd, &st) != 0)
        return make_error(Code::kIo, std::string("fstat: ") + std::strerror(errno));
    std::string out(static_cast<size_t>(st.st_size), '\0');
    for (size_t done = 0; done < out.size();) {
        const ssize_t n =
            ::pread(fd, out.data() + done, out.size() - done, static_cast<off_t>(done));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return make_error(Code::kIo, "ptxas's result cannot be read");
        done += static_cast<size_t>(n);
    }
    return out;
}

// The log names our descriptors; users know the text as "ptx".
std::string readable(std::string log) {
    constexpr std::string_view kInput = "/proc/self/fd/3";
    for (size_t at = log.find(kInput); at != std::string::npos; at = log.find(kInput, at))
        log.replace(at, kInput.size(), "ptx");
    return log;
}

class Ptxas final : public Backend {
  public:
    explicit Ptxas(std::string path) : x_path(std::move(path)) {}

    Status identify() {
        TTT_TRY(const Finished said, run({x_path, "--version"}, {}, Limits{}));
        const size_t at = said.output.rfind(", V");
        if (!said.exited || said.code != 0 || at == std::string::npos)
            return make_error(Code::kUnsupported,
                              x_path + " is not a ptxas that states its version");
        const std::string rest = said.output.substr(at + 3);
        const std::string version = rest.substr(0, rest.find_first_not_of("0123456789."));
        TTT_TRY(const Probe found, probe(*this));
        x_identity = {"ptxas " + version,
                      static_cast<uint32_t>(std::strtoul(version.c_str(), nullptr, 10)),
                      found.max_ptx_version};
        return ok_status();
    }

    Result<Output> assemble(const Job& job) override {
        TTT_TRY(const Fd text, memory_file("ptx"));
        TTT_TRY(const Fd cubin, memory_file("cubin"));
        TTT_CHECK_OK(write_all(text.get(), job.ptx));
        std::vector<std::string> argv{x_path, "-arch=" + job.arch, "/proc/self/fd/3", "-o",
                                      "/proc/self/fd/4"};
        argv.insert(argv.end(), job.options.begin(), job.options.end());
        const int extra[] = {text.get(), cubin.get()};
        TTT_TRY(Finished done, run(argv, extra, Limits{}));
        if (!done.exited)
            return make_error(Code::kCompile, "ptxas died of signal " +
                                                  std::to_string(done.signal) +
                                                  " (out of memory, or a fault of its own)");
        std::string log = readable(std::move(done.output));
        if (done.code != 0)
            return make_error(Code::kCompile,
                              log.empty() ? "ptxas refused the PTX and left no log" : log);
        TTT_TRY(std::string bytes, read_all(cubin.get()));
        if (bytes.empty()) return make_error(Code::kCompile, "ptxas wrote nothing: " + log);
        return Output{std::move(bytes), std::move(log)};
    }

    const Identity& identity() const override { return x_identity; }

  private:
    std::string x_path;
    Identity x_identity;
};

}  // namespace

Result<std::unique_ptr<Backend>> open_ptxas(const std::string& path) {
    auto out = std::make_unique<Ptxas>(path);
    TTT_CHECK_OK(out->identify());
    return std::unique_ptr<Backend>(std::move(out));
}

}  // namespace ttt::compile
