#include "session/descriptors.h"

#include <fcntl.h>
#include <sys/resource.h>

#include <algorithm>

namespace ttt::session {

int first_descriptor() {
    constexpr rlim_t kHighest = 1024, kRoom = 128, kLowest = 64;
    struct rlimit limit {};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return kLowest;
    const rlim_t top = std::min(limit.rlim_cur, kHighest);
    return static_cast<int>(std::max(top > kRoom ? top - kRoom : 0, kLowest));
}

Fd move_up(Fd fd) {
    const int high = fcntl(fd.get(), F_DUPFD_CLOEXEC, first_descriptor());
    return Fd(high >= 0 ? high : fcntl(fd.get(), F_DUPFD_CLOEXEC, 3));
}

}  // namespace ttt::session
