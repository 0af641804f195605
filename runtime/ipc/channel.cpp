#include "ipc/channel.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

namespace ttt::ipc {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint32_t kMagic = 0x31545454;  // "TTT1"
// A peer that announces 64 MiB and sends nothing must not cost us 64 MiB.
constexpr size_t kGrowBytes = size_t{1} << 20;

struct Header {
    uint32_t magic;
    uint32_t flags;  // bit 0: one descriptor comes with the first byte
    uint64_t bytes;  // of the flatbuffer that follows
};

class Deadline {
  public:
    explicit Deadline(int timeout_ms)
        : forever_(timeout_ms < 0), at_(Clock::now() + std::chrono::milliseconds(timeout_ms)) {}
    int left_ms() const {
        if (forever_) return -1;
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(at_ - Clock::now()).count();
        return static_cast<int>(std::max<int64_t>(left, 0));
    }

  private:
    bool forever_;
    Clock::time_point at_;
};

// True when `fd` is ready, false on timeout.
bool wait_for(int fd, short events, const Deadline& deadline) {
    for (;;) {
        pollfd p{fd, events, 0};
        const int n = ::poll(&p, 1, deadline.left_ms());
        if (n > 0) return true;
        if (n == 0) return false;
        if (errno != EINTR) return true;  // the read or write that follows names the error
    }
}

std::string errno_text(const char* what) {
    char buffer[128] = {};
    return std::string(what) + ": " + ::strerror_r(errno, buffer, sizeof buffer);
}

// Takes the descriptors of one received message: keeps the first in `keep` unless that already
// holds one.
bool take_descriptors(msghdr& m, Fd& keep) {
    bool surplus = false;
    for (cmsghdr* c = CMSG_FIRSTHDR(&m); c != nullptr; c = CMSG_NXTHDR(&m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
        const size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; ++i) {
            int fd = -1;
            std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof fd);
            if (keep.valid()) {
                surplus = true;
                ::close(fd);
            } else {
                keep.reset(fd);
            }
        }
    }
    return !surplus;
}

ssize_t send_part(int socket, iovec* parts, size_t count, int fd) {
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr m{};
    m.msg_iov = parts;
    m.msg_iovlen = count;
    if (fd >= 0) {
        m.msg_control = control;
        m.msg_controllen = sizeof control;
        cmsghdr* c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        std::memcpy(CMSG_DATA(c), &fd, sizeof fd);
    }
    return ::sendmsg(socket, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
}

bool verifies(std::span<const std::byte> bytes) {
    flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    if (!VerifyMessageBuffer(verifier)) return false;
    const Message* m = GetMessage(bytes.data());
    // The verifier accepts a union with a type and no value, and types it does not know.
    return m->payload() != nullptr && m->payload_type() != Payload::NONE &&
           m->payload_type() <= Payload::MAX;
}

}  // namespace

const Message* Received::message() const { return GetMessage(bytes.data()); }

const char* payload_name(Payload type) { return EnumNamePayload(type); }

Channel& Channel::operator=(Channel&& other) noexcept {
    if (this == &other) return *this;
    socket_ = std::move(other.socket_);
    broken_.store(other.broken_.load());
    header_ = other.header_;
    header_have_ = std::exchange(other.header_have_, 0);
    body_bytes_ = other.body_bytes_;
    wants_fd_ = other.wants_fd_;
    pending_ = std::move(other.pending_);
    pending_fd_ = std::move(other.pending_fd_);
    return *this;
}

Result<std::pair<Channel, Channel>> Channel::make_pair() {
    int fds[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
        return make_error(Code::kIo, errno_text("socketpair"));
    return std::pair<Channel, Channel>(Channel(Fd(fds[0])), Channel(Fd(fds[1])));
}

Error Channel::fail(Code code, std::string message) {
    // shutdown, not close: the other thread may be inside a call on this descriptor.
    if (!broken_.exchange(true) && socket_.ours()) ::shutdown(socket_.get(), SHUT_RDWR);
    return make_error(code, std::move(message));
}

Error Channel::lost() {
    return fail(Code::kIo, "the socket's descriptor was closed or taken by the program");
}

Status Channel::send_bytes(std::span<const std::byte> bytes, int fd, int timeout_ms) {
    if (!open()) return make_error(Code::kIo, "channel is closed");
    if (bytes.size() > kMaxMessageBytes)
        return make_error(Code::kExhausted, "message of " + std::to_string(bytes.size()) +
                                                " bytes is over the channel's limit");
    Header header{kMagic, fd >= 0 ? 1u : 0u, bytes.size()};
    const Deadline deadline(timeout_ms);
    const size_t total = sizeof header + bytes.size();
    size_t sent = 0;
    while (sent < total) {
        iovec parts[2];
        size_t count = 0;
        if (sent < sizeof header)
            parts[count++] = {reinterpret_cast<char*>(&header) + sent, sizeof header - sent};
        const size_t body = sent < sizeof header ? 0 : sent - sizeof header;
        parts[count++] = {const_cast<std::byte*>(bytes.data()) + body, bytes.size() - body};
        if (!socket_.ours()) return lost();
        const ssize_t n = send_part(socket_.get(), parts, count, sent == 0 ? fd : -1);
        if (n > 0) {
            sent += static_cast<size_t>(n);
        } else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            if (wait_for(socket_.get(), POLLOUT, deadline)) continue;
            if (sent == 0) return make_error(Code::kTimeout, "peer does not read");
            return fail(Code::kTimeout, "peer stopped reading inside a message");
        } else if (n < 0 && errno != EINTR) {
            return fail(Code::kIo, errno_text("send"));
        }
    }
    return ok_status();
}

Result<size_t> Channel::read_some(std::byte* to, size_t room) {
    // Room for several descriptors, so that surplus ones are seen and closed rather than truncated.
    alignas(cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))];
    for (;;) {
        if (!socket_.ours()) return lost();
        iovec part{to, room};
        msghdr m{};
        m.msg_iov = &part;
        m.msg_iovlen = 1;
        m.msg_control = control;
        m.msg_controllen = sizeof control;
        const ssize_t n = ::recvmsg(socket_.get(), &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return size_t{0};
        if (n < 0) return fail(Code::kIo, errno_text("receive"));
        const bool single = take_descriptors(m, pending_fd_);
        if (n == 0) return fail(Code::kIo, "peer closed the channel");
        if (!single || (m.msg_flags & MSG_CTRUNC) != 0)
            return fail(Code::kProtocol, "more than one descriptor in a message");
        return static_cast<size_t>(n);
    }
}

Result<bool> Channel::advance() {
    for (;;) {
        if (header_have_ < kHeaderBytes) {
            TTT_TRY(const size_t n,
                    read_some(header_.data() + header_have_, kHeaderBytes - header_have_));
            if (n == 0) return false;
            header_have_ += n;
            if (header_have_ < kHeaderBytes) continue;
            Header h;
            std::memcpy(&h, header_.data(), sizeof h);
            if (h.magic != kMagic || h.flags > 1 || h.bytes == 0 || h.bytes > kMaxMessageBytes)
                return fail(Code::kProtocol, "malformed message header");
            body_bytes_ = h.bytes;
            wants_fd_ = h.flags != 0;
            pending_.clear();
        }
        if (pending_.size() == body_bytes_) return true;
        const size_t have = pending_.size();
        pending_.resize(have + std::min(body_bytes_ - have, kGrowBytes));
        auto n = read_some(pending_.data() + have, pending_.size() - have);
        pending_.resize(have + (n.ok() ? *n : 0));
        if (!n.ok()) return std::move(n).error();
        if (*n == 0) return false;
    }
}

Result<std::optional<Received>> Channel::take_message() {
    header_have_ = 0;
    Received r{std::move(pending_), std::move(pending_fd_)};
    pending_ = {};
    if (wants_fd_ != r.fd.valid())
        return fail(Code::kProtocol, "descriptor missing from a message or not announced");
    if (!verifies(r.bytes)) return fail(Code::kProtocol, "message does not verify");
    return std::optional<Received>(std::move(r));
}

Result<std::optional<Received>> Channel::receive(int timeout_ms) {
    if (!open()) return make_error(Code::kIo, "channel is closed");
    const Deadline deadline(timeout_ms);
    for (;;) {
        TTT_TRY(const bool whole, advance());
        if (whole) return take_message();
        if (!wait_for(socket_.get(), POLLIN, deadline)) return std::optional<Received>();
    }
}

}  // namespace ttt::ipc
