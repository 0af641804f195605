// ttt-sandbox --channel-fd N: started by the tuner, never by a person.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/config.h"
#include "base/log.h"
#include "sandbox/server.h"

namespace {

// The program's data lies in this process's memory: no core dump, no outliving the tuner, no
// compile cache on disk.
void confine() {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_CORE, &none);
    rlimit space{};  // the tuner's own limit is no use to a CUDA context
    if (::getrlimit(RLIMIT_AS, &space) == 0) {
        space.rlim_cur = space.rlim_max;
        ::setrlimit(RLIMIT_AS, &space);
    }
    const rlimit files{512, 512};
    ::setrlimit(RLIMIT_NOFILE, &files);
    ::setenv("CUDA_CACHE_DISABLE", "1", 1);
    ::signal(SIGPIPE, SIG_IGN);
}

int channel_fd(int argc, char** argv) {
    if (argc != 3 || std::strcmp(argv[1], "--channel-fd") != 0) return -1;
    char* end = nullptr;
    const long fd = std::strtol(argv[2], &end, 10);
    return *argv[2] != 0 && *end == 0 && fd >= 3 && fd < 4096 ? static_cast<int>(fd) : -1;
}

}  // namespace

int main(int argc, char** argv) {
    const int fd = channel_fd(argc, argv);
    if (fd < 0) {
        constexpr char kUsage[] =
            "ttt-sandbox is started by ttt-tuner: ttt-sandbox --channel-fd N (N >= 3)\n";
        return ::write(2, kUsage, sizeof kUsage - 1) > 0 ? 2 : 2;
    }
    confine();
    const ttt::Config config = ttt::Config::from_environment();
    ttt::log::init("ttt-sandbox", config.log, false);
    auto server =
        std::make_unique<ttt::sandbox::Server>(ttt::ipc::Channel(ttt::Fd(fd)), config.compare);
    const int status = server->run();
    // Without destructors where the context is dead: the driver's teardown of one can hang.
    if (status != 0) ::_exit(status);
    server.reset();
    return 0;
}
