#include "compile/frame.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace ttt::compile {
namespace {

constexpr uint32_t kMagic = 0x4D525446;
constexpr uint32_t kMaxParts = 4096;

Status wait_for(int fd, short events, Deadline deadline) {
    for (;;) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
            deadline - std::chrono::steady_clock::now());
        if (left.count() <= 0) return make_error(Code::kTimeout, "the compiler took too long");
        pollfd p{fd, events, 0};
        const int n = ::poll(&p, 1, static_cast<int>(std::min<int64_t>(left.count(), 1'000'000)));
        if (n > 0) return ok_status();
        if (n < 0 && errno != EINTR)
            return make_error(Code::kIo, std::string("poll: ") + std::strerror(errno));
    }
}

Status put(int fd, const void* data, size_t bytes, Deadline deadline) {
    const auto* from = static_cast<const char*>(data);
    while (bytes > 0) {
        TTT_CHECK_OK(wait_for(fd, POLLOUT, deadline));
        const ssize_t n = ::send(fd, from, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0) {
            from += n;
            bytes -= static_cast<size_t>(n);
        } else if (errno != EINTR && errno != EAGAIN) {
            return make_error(Code::kIo, "the other end of the compile channel is gone");
        }
    }
    return ok_status();
}

Status get(int fd, void* data, size_t bytes, Deadline deadline) {
    auto* to = static_cast<char*>(data);
    while (bytes > 0) {
        TTT_CHECK_OK(wait_for(fd, POLLIN, deadline));
        const ssize_t n = ::recv(fd, to, bytes, MSG_DONTWAIT);
        if (n > 0) {
            to += n;
            bytes -= static_cast<size_t>(n);
        } else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
            return make_error(Code::kIo, "the other end of the compile channel is gone");
        }
    }
    return ok_status();
}

}  // namespace

Status write_frame(int fd, const Frame& frame, Deadline deadline) {
    const uint32_t head[2] = {kMagic, static_cast<uint32_t>(frame.size())};
    TTT_CHECK_OK(put(fd, head, sizeof head, deadline));
    for (const std::string& part : frame) {
        const uint64_t size = part.size();
        TTT_CHECK_OK(put(fd, &size, sizeof size, deadline));
        TTT_CHECK_OK(put(fd, part.data(), part.size(), deadline));
    }
    return ok_status();
}

Result<Frame> read_frame(int fd, Deadline deadline) {
    uint32_t head[2] = {};
    TTT_CHECK_OK(get(fd, head, sizeof head, deadline));
    if (head[0] != kMagic || head[1] > kMaxParts)
        return make_error(Code::kProtocol, "no frame on the compile channel");
    Frame frame;
    uint64_t total = 0;
    for (uint32_t i = 0; i < head[1]; ++i) {
        uint64_t size = 0;
        TTT_CHECK_OK(get(fd, &size, sizeof size, deadline));
        if (size > kMaxFrameBytes - total)
            return make_error(Code::kProtocol, "a frame on the compile channel is too large");
        total += size;
        frame.emplace_back(static_cast<size_t>(size), '\0');
        TTT_CHECK_OK(get(fd, frame.back().data(), frame.back().size(), deadline));
    }
    return frame;
}

}  // namespace ttt::compile
