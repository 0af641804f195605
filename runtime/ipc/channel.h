// A verified message channel over a SOCK_SEQPACKET-like stream socket: length-prefixed flatbuffers, at most one
// descriptor per message. A message that does not verify closes the channel. One reader and one writer thread at a
// time. Never raises SIGPIPE.
#pragma once

#include <flatbuffers/flatbuffers.h>

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "messages_generated.h"

namespace ttt::ipc {

inline constexpr uint32_t kProtocolVersion = 1;
inline constexpr size_t kMaxMessageBytes = size_t{64} << 20;

struct Received {
    std::vector<std::byte> bytes;
    Fd fd;
    const Message* message() const;  // verified root
};

class Channel {
  public:
    Channel() = default;
    explicit Channel(Fd socket) : socket_(std::move(socket)) {}
    static Result<std::pair<Channel, Channel>> make_pair();
    bool open() const { return socket_.valid(); }
    int fd() const { return socket_.get(); }
    void close() { socket_.reset(); }
    // Finishes `builder` with a Message holding the payload and sends it; blocks at most timeout_ms.
    template <typename T>
    Status send(flatbuffers::FlatBufferBuilder& builder, flatbuffers::Offset<T> payload, int fd = -1, int timeout_ms = 2000) {
        auto m = CreateMessage(builder, PayloadTraits<T>::enum_value, payload.Union());
        builder.Finish(m);
        return send_bytes({reinterpret_cast<const std::byte*>(builder.GetBufferPointer()), builder.GetSize()}, fd, timeout_ms);
    }
    Status send_bytes(std::span<const std::byte> bytes, int fd, int timeout_ms);
    // nullopt on timeout; an error on EOF (kIo), or on a message that does not verify (kProtocol).
    Result<std::optional<Received>> receive(int timeout_ms);

  private:
    Fd socket_;
    std::vector<std::byte> pending_;
    Fd pending_fd_;
};

// A sealed-size memfd holding `bytes`; nothing touches the file system.
Result<Fd> make_memfd(const char* name, std::span<const std::byte> bytes);
// Whole content of a memfd, at most `limit` bytes; the size claimed by the peer is checked against fstat.
Result<std::vector<std::byte>> read_memfd(int fd, size_t limit);

}  // namespace ttt::ipc
