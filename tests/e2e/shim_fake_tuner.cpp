// Stands in for ttt-tuner: answers the session by a fixed script and writes what happened to
// TTT_FAKE_LOG. TTT_FAKE chooses the behaviour: whole (default) | exit | garbage | silent |
// rollback | bad_guard | observe_only | kill_at_swap | keep (takes the snapshot and does nothing
// with it) | keep_all (nor answers when it is to let go)
// | again (has a second launch recorded before the swap).
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "image/image.h"
#include "ipc/channel.h"

using namespace ttt;  // NOLINT: a test program

namespace {

std::string g_mode = "whole";
std::map<uint64_t, std::string> g_sources;  // identity of machine code → who made it
FILE* g_log = nullptr;
template <typename... A>
void note(const char* format, A... a) {
    if (g_log == nullptr) return;
    std::fprintf(g_log, format, a...);
    std::fputc('\n', g_log);
    std::fflush(g_log);
}

constexpr char kVariant[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)\n{\n ret;\n}\n";

template <typename T>
void send(ipc::Channel& c, flatbuffers::FlatBufferBuilder& b, flatbuffers::Offset<T> m,
          int fd = -1) {
    if (!c.send(b, m, fd).ok()) note("send failed");
}

void ask_snapshot(ipc::Channel& c, const ipc::SiteHot& s) {
    flatbuffers::FlatBufferBuilder b;
    std::vector<flatbuffers::Offset<ipc::RegionRecord>> regions;
    for (uint32_t i = 0; s.targets() != nullptr && i < s.targets()->size(); ++i) {
        const auto* t = s.targets()->Get(i);
        const std::vector<uint32_t> pointers{t->offset()};
        regions.push_back(ipc::CreateRegionRecord(b, t->base(), t->size(), 0, 0, true, i == 2,
                                                  b.CreateVector(pointers)));
    }
    send(c, b, ipc::CreateSnapshotRequest(b, s.site_id(), b.CreateVector(regions)));
}

void offer_variant(ipc::Channel& c, const ipc::SnapshotReady& s, bool timed) {
    flatbuffers::FlatBufferBuilder b;
    auto module =
        ipc::make_memfd("variant", std::as_bytes(std::span(kVariant, std::strlen(kVariant))));
    std::vector<flatbuffers::Offset<ipc::ScalarGuard>> scalars;
    const std::vector<uint8_t> n{16, 0, 0, 0};
    scalars.push_back(
        ipc::CreateScalarGuard(b, g_mode == "bad_guard" ? 400 : 24, b.CreateVector(n)));
    const std::vector<ipc::AlignGuard> aligned{{0, 16}};
    const std::vector<ipc::OverlapGuard> distinct{{0, 16}};
    auto sv = b.CreateVector(scalars);
    auto av = b.CreateVectorOfStructs(aligned);
    auto ov = b.CreateVectorOfStructs(distinct);
    const ipc::Dim3 grid(2, 1, 1), block(256, 1, 1);
    auto guard = ipc::CreateGuardDef(b, nullptr, nullptr, -1, sv, av, ov);
    auto def = ipc::CreateVariantDef(b, s.site_id(), 1, b.CreateString("k"), std::strlen(kVariant),
                                     &grid, &block, 0, guard, b.CreateString("geometry"));
    send(c, b, def, module->get());
    if (!timed) return;
    flatbuffers::FlatBufferBuilder t;
    send(c, t, ipc::CreateTimeRequest(t, s.site_id(), 1, 5, 5, 0.02));
}

void swap(ipc::Channel& c, uint64_t site, bool canary) {
    flatbuffers::FlatBufferBuilder b;
    Fd module;
    if (canary && g_mode == "head_start")
        module = ipc::make_memfd("head-start", std::as_bytes(std::span("any module"))).value();
    send(c, b, ipc::CreateSwapRequest(b, site, 1, canary), module.get());
}

std::vector<std::byte> g_hot;  // the last SiteHot
int g_snapshots = 0;

void answer(ipc::Channel& c, const ipc::Received& r) {
    const ipc::Message* m = r.message();
    if (const auto* p = m->payload_as_Hello())
        note("hello protocol=%u arch=%u mode=%s", p->protocol(), p->arch(), p->mode()->c_str());
    if (const auto* p = m->payload_as_ModuleImage()) {
        auto bytes = ipc::read_memfd(r.fd.get(), 1 << 20);
        note("image id=%llu kind=%s size=%llu read=%d",
             static_cast<unsigned long long>(p->module_id()), ipc::EnumNameImageKind(p->kind()),
             static_cast<unsigned long long>(p->size()), bytes.ok() && bytes->size() == p->size());
        for (const uint64_t code :
             bytes.ok() ? image::code_identities(*bytes) : std::vector<uint64_t>())
            if (const auto s = g_sources.find(code); s != g_sources.end())
                note("image of source %s", s->second.c_str());
    }
    if (const auto* p = m->payload_as_PtxSource()) {
        auto bytes = ipc::read_memfd(r.fd.get(), 1 << 20);
        const bool text = bytes.ok() && bytes->size() == p->size() &&
                          image::classify(*bytes) == image::Kind::kPtx;
        note("source origin=%s options=%s ptx=%d", p->origin()->c_str(), p->options()->c_str(),
             text);
        for (const uint64_t code : *p->codes()) g_sources[code] = p->origin()->str();
    }
    if (const auto* p = m->payload_as_KernelDef())
        note("kernel name=%s params=%u", p->name()->c_str(), p->params()->size());
    if (const auto* p = m->payload_as_SiteHot()) {
        note("hot grid=%u stable=%d%d%d%d targets=%u", p->grid()->x(), p->stable()->Get(0),
             p->stable()->Get(1), p->stable()->Get(2), p->stable()->Get(3), p->targets()->size());
        g_hot = r.bytes;
        if (g_mode != "observe_only") ask_snapshot(c, *p);
    }
    if (const auto* p = m->payload_as_SnapshotFailed())
        note("snapshot_failed %s", p->reason()->c_str());
    if (const auto* p = m->payload_as_SnapshotReady()) {
        note("snapshot regions=%u host=%d fd=%d", p->regions()->size(), p->host_arena(),
             r.fd.valid());
        for (uint32_t i = 0; i < p->regions()->size(); ++i) {
            const auto* g = p->regions()->Get(i);
            if (g->pre_offset() % 256 != g->address() % 256) note("misaligned region %u", i);
        }
        if (g_mode == "keep" || g_mode == "keep_all") return;
        offer_variant(c, *p, ++g_snapshots == 1);
        if (g_snapshots == 2) swap(c, p->site_id(), true);
    }
    if (const auto* p = m->payload_as_TimingResult()) {
        note("timing pairs=%u error=%s", p->original_ns()->size(), p->error()->c_str());
        if (g_mode == "again")
            ask_snapshot(c, *ipc::GetMessage(g_hot.data())->payload_as_SiteHot());
        else if (p->error()->size() == 0)
            swap(c, p->site_id(), true);
        if (g_mode == "kill_at_swap") _exit(0);
    }
    if (const auto* p = m->payload_as_SwapResult())
        note("swap published=%d error=%s", p->published(), p->error()->c_str());
    if (const auto* p = m->payload_as_CanaryResult()) {
        note("canary original=%u variant=%u errors=%u", p->original_ns()->size(),
             p->variant_ns()->size(), p->errors());
        if (g_mode == "rollback") {
            flatbuffers::FlatBufferBuilder b;
            send(c, b, ipc::CreateRollback(b, p->site_id(), b.CreateString("slower"), true));
        } else {
            swap(c, p->site_id(), false);
        }
        flatbuffers::FlatBufferBuilder b;
        send(c, b, ipc::CreateSiteDone(b, p->site_id(), b.CreateString("finished")));
    }
    if (m->payload_as_FreeMemory() != nullptr) {
        note("free_memory");
        flatbuffers::FlatBufferBuilder b;
        if (g_mode != "keep_all") send(c, b, ipc::CreateMemoryFreed(b));
    }
    if (m->payload_as_Released() != nullptr) note("released");
    if (const auto* p = m->payload_as_Stats())
        note("stats launches=%llu", static_cast<unsigned long long>(p->launches()));
}

void note_environment() {
    for (char** v = environ; *v != nullptr; ++v)
        if (std::strncmp(*v, "LD_PRELOAD=", 11) == 0 || std::strncmp(*v, "CUDA_INJECTION", 14) == 0)
            note("leaked %s", *v);
    for (int fd = 4; fd < 256; ++fd)
        if (fcntl(fd, F_GETFD) != -1 && (g_log == nullptr || fd != fileno(g_log)))
            note("leaked descriptor %d", fd);
}

}  // namespace

int main() {
    if (const char* m = std::getenv("TTT_FAKE")) g_mode = m;
    if (const char* path = std::getenv("TTT_FAKE_LOG")) g_log = std::fopen(path, "ae");
    note("started %s", g_mode.c_str());
    note_environment();
    if (g_mode == "exit") return 1;
    if (g_mode == "garbage") {
        char junk[4096];
        std::memset(junk, 0x5a, sizeof junk);
        if (write(3, junk, sizeof junk) < 0) return 1;
        sleep(2);
        return 0;
    }
    if (g_mode == "silent") {
        sleep(30);
        return 0;
    }
    ipc::Channel channel{Fd(3)};
    while (true) {
        auto r = channel.receive(10000);
        if (!r.ok()) {
            note("closed");
            return 0;
        }
        if (r->has_value()) answer(channel, **r);
    }
}
