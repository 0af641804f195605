// The tuner's own socket, for the command line: $XDG_RUNTIME_DIR (else /tmp/ttt-UID)/ttt-PID.sock,
// this user only. Event loop only.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ipc/channel.h"

struct pollfd;

namespace ttt::tuner {

class QuerySocket {
  public:
    // Answers one query with JSON text.
    using Answer = std::function<std::string(std::string_view what)>;
    explicit QuerySocket(Answer answer) : answer_(std::move(answer)) {}
    ~QuerySocket() { close(); }

    Status listen(int program_pid);
    void close();  // removes the socket file
    void add_to(std::vector<pollfd>& set) const;
    // Handles what the descriptors of `set` report; a client that sends garbage is dropped.
    void serve(const std::vector<pollfd>& set);

  private:
    void accept_one();
    bool serve_client(ipc::Channel& client);
    Answer answer_;
    Fd listener_;
    std::string path_;
    std::vector<ipc::Channel> clients_;
};

}  // namespace ttt::tuner
