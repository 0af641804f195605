#include "tuner_socket.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "installation.h"
#include "ipc/channel.h"

namespace ttt::cli {
namespace {

namespace fs = std::filesystem;

// Both places: the program may have run with another XDG_RUNTIME_DIR than this shell.
std::vector<std::string> folders() {
    std::vector<std::string> out;
    if (const auto runtime = environment("XDG_RUNTIME_DIR"); !runtime.empty())
        out.push_back(runtime);
    out.push_back(fmt::format("/tmp/ttt-{}", ::getuid()));
    return out;
}

std::string socket_path(int pid) {
    std::error_code ignored;
    for (const auto& folder : folders())
        if (const auto path = fmt::format("{}/ttt-{}.sock", folder, pid); fs::exists(path, ignored))
            return path;
    return {};
}

Result<ipc::Channel> connect_to(int pid) {
    const std::string path = socket_path(pid);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.empty() || path.size() >= sizeof address.sun_path)
        return make_error(Code::kNotFound,
                          fmt::format("process {} has no tuner: is it running under libttt.so, and "
                                      "has it launched a kernel?",
                                      pid));
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!fd.valid() ||
        ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
        return make_error(Code::kNotFound, fmt::format("process {}: its tuner does not answer ({})",
                                                       pid, std::strerror(errno)));
    return ipc::Channel(std::move(fd));
}

int pid_of(const std::string& name) {
    int pid = 0;
    char tail = 0;
    return std::sscanf(name.c_str(), "ttt-%d.soc%c", &pid, &tail) == 2 && tail == 'k' ? pid : 0;
}

}  // namespace

bool has_tuner(int pid) { return !socket_path(pid).empty(); }

std::vector<int> tuned_processes() {
    std::vector<int> pids;
    std::error_code ignored;
    for (const auto& folder : folders())
        for (const auto& entry : fs::directory_iterator(folder, ignored))
            if (const int pid = pid_of(entry.path().filename().string());
                pid > 0 && connect_to(pid).ok())
                pids.push_back(pid);
    std::sort(pids.begin(), pids.end());
    pids.erase(std::unique(pids.begin(), pids.end()), pids.end());
    return pids;
}

Result<std::string> ask_tuner(int pid, std::string_view what, int timeout_ms) {
    TTT_TRY(ipc::Channel channel, connect_to(pid));
    flatbuffers::FlatBufferBuilder builder;
    const auto text = builder.CreateString(what.data(), what.size());
    TTT_CHECK_OK(channel.send(builder, ipc::CreateQuery(builder, text), -1, timeout_ms));
    TTT_TRY(const auto received, channel.receive(timeout_ms));
    if (!received)
        return make_error(
            Code::kTimeout,
            fmt::format("process {}: its tuner did not answer within {} ms", pid, timeout_ms));
    const ipc::Message* message = received->message();
    const ipc::Reply* reply = message != nullptr ? message->payload_as_Reply() : nullptr;
    if (reply == nullptr || reply->json() == nullptr)
        return make_error(Code::kProtocol,
                          fmt::format("process {}: its tuner answered with another message", pid));
    return reply->json()->str();
}

}  // namespace ttt::cli
