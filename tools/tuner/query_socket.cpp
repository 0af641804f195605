#include "tuner/query_socket.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace ttt::tuner {
namespace {

constexpr size_t kMaxClients = 16;

// The runtime directory, or a folder of our own in /tmp that nobody else can have prepared for us.
Result<std::string> socket_folder() {
    if (const char* runtime = std::getenv("XDG_RUNTIME_DIR");
        runtime != nullptr && *runtime == '/') {
        if (::access(runtime, W_OK | X_OK) == 0) return std::string(runtime);
    }
    const std::string folder = fmt::format("/tmp/ttt-{}", ::getuid());
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
        return make_error(Code::kIo, "cannot create " + folder);
    struct stat st {};
    if (::lstat(folder.c_str(), &st) != 0 || !S_ISDIR(st.st_mode) || st.st_uid != ::getuid() ||
        (st.st_mode & 077) != 0)
        return make_error(Code::kIo, folder + " is not a private folder of this user");
    return folder;
}

}  // namespace

Status QuerySocket::listen(int program_pid) {
    TTT_TRY(const std::string folder, socket_folder());
    const std::string path = fmt::format("{}/ttt-{}.sock", folder, program_pid);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path)
        return make_error(Code::kIo, path + ": too long for a socket");
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd.valid()) return make_error(Code::kIo, "cannot create a socket");
    ::unlink(path.c_str());  // of an earlier process with this number
    const mode_t old = ::umask(0177);
    const int bound = ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
    ::umask(old);
    if (bound != 0 || ::listen(fd.get(), 8) != 0)
        return make_error(Code::kIo, "cannot listen on " + path);
    listener_ = std::move(fd);
    path_ = path;
    return ok_status();
}

void QuerySocket::close() {
    if (!path_.empty()) ::unlink(path_.c_str());
    path_.clear();
    listener_.reset();
    clients_.clear();
}

void QuerySocket::add_to(std::vector<pollfd>& set) const {
    if (listener_.valid()) set.push_back({listener_.get(), POLLIN, 0});
    for (const auto& c : clients_) set.push_back({c.fd(), POLLIN, 0});
}

void QuerySocket::accept_one() {
    Fd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (fd.valid() && clients_.size() < kMaxClients) clients_.emplace_back(std::move(fd));
}

bool QuerySocket::serve_client(ipc::Channel& client) {
    auto received = client.receive(0);
    if (!received.ok()) return false;
    if (!received->has_value()) return true;
    const auto* query = (*received)->message()->payload_as_Query();
    if (query == nullptr) return false;
    flatbuffers::FlatBufferBuilder b;
    auto json = b.CreateString(answer_(ipc::text(query->what())));
    return client.send(b, ipc::CreateReply(b, json), -1, 500).ok();
}

void QuerySocket::serve(const std::vector<pollfd>& set) {
    for (const pollfd& p : set) {
        if (p.revents == 0) continue;
        if (listener_.valid() && p.fd == listener_.get()) {
            accept_one();
            continue;
        }
        for (auto it = clients_.begin(); it != clients_.end(); ++it) {
            if (it->fd() != p.fd) continue;
            if (!serve_client(*it)) clients_.erase(it);
            break;
        }
    }
}

}  // namespace ttt::tuner
