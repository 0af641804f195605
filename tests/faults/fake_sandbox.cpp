// A sandbox that misbehaves as $FAKE_SANDBOX says: "garbage", "hang", "exit", "lie" (claims another
// protocol), "mute" (starts well, never answers a load), "contradict" (a verdict that is both right
// and wrong).
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "ipc/channel.h"

namespace {

using namespace ttt;  // NOLINT: one short program

void ready(ipc::Channel& c, uint32_t protocol) {
    flatbuffers::FlatBufferBuilder b;
    (void)c.send(b, ipc::CreateSandboxReadyDirect(b, protocol, "fake", 90, 13000, ::getpid(), ""))
        .ok();
}

void answer(ipc::Channel& c, const ipc::Message& m) {
    flatbuffers::FlatBufferBuilder b;
    if (const auto* load = m.payload_as_SandboxLoad())
        (void)c.send(b, ipc::CreateSandboxLoadedDirect(b, load->module_id(), "", 32, 0, 0)).ok();
    if (const auto* replay = m.payload_as_SandboxReplay())
        (void)c
            .send(b, ipc::CreateSandboxVerdictDirect(b, replay->request_id(), true, "bits", "both"))
            .ok();
}

}  // namespace

int main() {
    const char* text = std::getenv("FAKE_SANDBOX");
    const std::string mode = text != nullptr ? text : "exit";
    ipc::Channel channel{Fd(3)};
    if (mode == "exit") return 0;
    if (mode == "garbage") {
        const std::string noise(4096, '\x5a');
        return ::write(3, noise.data(), noise.size()) > 0 ? 1 : 2;
    }
    for (;;) {
        auto r = channel.receive(-1);
        if (!r.ok()) return 0;
        if (!r->has_value() || mode == "hang") continue;
        const ipc::Message& m = *(*r)->message();
        if (m.payload_as_SandboxInit() != nullptr)
            ready(channel, mode == "lie" ? 99 : ipc::kProtocolVersion);
        if (mode == "contradict") answer(channel, m);
    }
}
