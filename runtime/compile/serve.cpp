// The worker's side of the compile channel.
#include <sys/resource.h>

#include "compile/backend.h"
#include "compile/frame.h"
#include "compile/worker.h"

namespace ttt::compile {
namespace {

constexpr double kCompileCpuSeconds = 120;

Frame failure(const Error& error) {
    return {std::string(kAnswerError), std::string(1, static_cast<char>(error.code)), error.str()};
}

Frame identity(Result<std::unique_ptr<Backend>>& backend) {
    if (!backend.ok()) return failure(backend.error());
    const Identity& id = (*backend)->identity();
    return {std::string(kAnswerOk), id.name, std::to_string(id.major),
            std::to_string(id.max_ptx_version)};
}

// The limit is per compile, the kernel counts per process: move it along.
void renew_cpu_limit() {
    rusage used{};
    rlimit limit{};
    if (::getrusage(RUSAGE_SELF, &used) != 0 || ::getrlimit(RLIMIT_CPU, &limit) != 0) return;
    limit.rlim_cur = static_cast<rlim_t>(
        static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) + kCompileCpuSeconds);
    if (limit.rlim_max != RLIM_INFINITY && limit.rlim_cur > limit.rlim_max)
        limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_CPU, &limit);
}

Frame assemble(Result<std::unique_ptr<Backend>>& backend, const Frame& request) {
    if (!backend.ok()) return failure(backend.error());
    renew_cpu_limit();
    const Job job{request[1], request[2], {request.begin() + 3, request.end()}};
    auto out = (*backend)->assemble(job);
    if (!out.ok()) return failure(out.error());
    return {std::string(kAnswerOk), std::move(out->cubin), std::move(out->log)};
}

Frame answer(Result<std::unique_ptr<Backend>>& backend, const Frame& request) {
    if (request.size() == 1 && request[0] == kAskIdentity) return identity(backend);
    if (request.size() >= 3 && request[0] == kAskAssemble) return assemble(backend, request);
    return failure(make_error(Code::kProtocol, "unknown request to the compile worker"));
}

}  // namespace

int serve(const char* library) {
    auto backend = open_nvjitlink(library);
    for (;;) {
        const Deadline forever = std::chrono::steady_clock::now() + std::chrono::hours(24 * 365);
        auto request = read_frame(kWorkerChannel, forever);
        if (!request.ok()) return 0;
        if (!write_frame(kWorkerChannel, answer(backend, *request), forever).ok()) return 0;
    }
}

}  // namespace ttt::compile
