// A verified message channel over a stream socket: length-prefixed flatbuffers, at most one
// descriptor per message. A message that does not verify closes the channel for good. One reader
// and one writer thread at a time; close() only when neither is inside. Never raises SIGPIPE. No
// CUDA: may run before cuInit.
#pragma once

#include <flatbuffers/flatbuffers.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "messages_generated.h"

namespace ttt::ipc {

inline constexpr uint32_t kProtocolVersion = 3;
inline constexpr size_t kMaxMessageBytes = size_t{64} << 20;

struct Received {
    std::vector<std::byte> bytes;
    Fd fd;
    const Message* message()
        const;  // verified root; its payload is never null and its type is one of Payload's
};

// Optional fields of a verified message may still be absent: these read them as empty.
inline std::string_view text(const flatbuffers::String* s) {
    return s == nullptr ? std::string_view{} : std::string_view{s->c_str(), s->size()};
}
inline std::span<const std::byte> bytes_of(const flatbuffers::Vector<uint8_t>* v) {
    if (v == nullptr) return {};
    return {reinterpret_cast<const std::byte*>(v->data()), v->size()};
}
// The name of a payload type ("SiteHot"), for logs.
const char* payload_name(Payload type);

class Channel {
  public:
    Channel() = default;
    explicit Channel(Fd socket) : socket_(std::move(socket)) {}
    Channel(Channel&& other) noexcept { *this = std::move(other); }
    Channel& operator=(Channel&& other) noexcept;
    // Two ends of a new socket pair, both close-on-exec.
    static Result<std::pair<Channel, Channel>> make_pair();
    // False once closed, or once an EOF, an invalid message or a half-sent message made it
    // unusable.
    bool open() const { return socket_.valid() && !broken_.load(std::memory_order_relaxed); }
    int fd() const { return socket_.get(); }
    void close() { socket_.reset(); }
    // Finishes `builder` with a Message holding the payload and sends it; blocks at most
    // timeout_ms. The descriptor stays the caller's. kTimeout with nothing sent leaves the channel
    // usable; a message cut short by it does not.
    template <typename T>
    Status send(flatbuffers::FlatBufferBuilder& builder, flatbuffers::Offset<T> payload,
                int fd = -1, int timeout_ms = 2000) {
        auto m = CreateMessage(builder, PayloadTraits<T>::enum_value, payload.Union());
        builder.Finish(m);
        return send_bytes(
            {reinterpret_cast<const std::byte*>(builder.GetBufferPointer()), builder.GetSize()}, fd,
            timeout_ms);
    }
    Status send_bytes(std::span<const std::byte> bytes, int fd, int timeout_ms);
    // nullopt on timeout (a part of a message received so far is kept for the next call; 0 polls,
    // -1 waits for ever); an error on EOF (kIo), or on a message that does not verify (kProtocol).
    Result<std::optional<Received>> receive(int timeout_ms);

    // The socket, out of a channel that has sent and received nothing.
    Fd take_socket() { return std::move(socket_); }

  private:
    static constexpr size_t kHeaderBytes = 16;
    Error fail(Code code, std::string message);
    Error lost();  // the number is another's now: it is not touched again
    // Reads up to `room` bytes; 0 = would block.
    Result<size_t> read_some(std::byte* to, size_t room);
    // True once a whole message is in pending_.
    Result<bool> advance();
    Result<std::optional<Received>> take_message();

    Fd socket_;
    std::atomic<bool> broken_{false};
    std::array<std::byte, kHeaderBytes> header_{};
    size_t header_have_ = 0;
    size_t body_bytes_ = 0;
    bool wants_fd_ = false;
    std::vector<std::byte> pending_;  // body received so far
    Fd pending_fd_;
};

// A sealed (size and content) memfd holding `bytes`; nothing touches the file system.
Result<Fd> make_memfd(const char* name, std::span<const std::byte> bytes);
// Whole content of a memfd, at most `limit` bytes; the size claimed by the peer is checked against
// fstat.
Result<std::vector<std::byte>> read_memfd(int fd, size_t limit);

}  // namespace ttt::ipc
