// Bytes of a peer: whatever arrives, the channel gives a verified message or an error, and every
// field can be read.
#include <sys/socket.h>

#include <cstdint>

#include "ipc/channel.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace ttt;                     // NOLINT: one short function
    if (size < 2 || size > 60000) return 0;  // must fit a socket buffer
    auto pair = ipc::Channel::make_pair();
    if (!pair.ok()) return 0;
    // The first byte chooses: raw bytes of the wire, or a body behind a right header, so that the
    // fuzzer gets past it.
    if (data[0] % 2 == 0)
        (void)pair->first
            .send_bytes({reinterpret_cast<const std::byte*>(data + 1), size - 1}, -1, 0)
            .ok();
    else
        (void)::send(pair->first.fd(), data + 1, size - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    pair->first.close();
    for (int i = 0; i < 100; ++i) {
        auto r = pair->second.receive(0);
        if (!r.ok() || !r->has_value()) return 0;
        const ipc::Message* m = (*r)->message();
        if (const auto* s = m->payload_as_SiteHot(); s != nullptr && s->targets() != nullptr)
            for (const auto* t : *s->targets()) (void)t->base();
        if (const auto* s = m->payload_as_SiteDone()) (void)ipc::text(s->reason()).size();
    }
    return 0;
}
