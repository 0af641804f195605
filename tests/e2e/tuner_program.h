// A test in the place of the program: starts ttt-tuner and speaks the session's side of the
// channel.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>

#include "e2e/tuner_kernels.h"
#include "ipc/lease_page.h"
#include "sandbox/wire.h"

extern char** environ;

namespace ttt::testing_program {

namespace k = testing_kernels;
namespace fs = std::filesystem;
using Json = nlohmann::json;

class Program {
  public:
    Program() {
        dir_ = fs::temp_directory_path() /
               ("ttt-tuner-test-" + std::to_string(::getpid()) + "-" + std::to_string(count_++));
        fs::remove_all(dir_);
        fs::create_directories(dir_);
        report_ = (dir_ / "report.json").string();
        ::setenv("LD_LIBRARY_PATH", TTT_EMULATOR_DIR, 1);
        ::setenv("TTT_STORE", dir_.c_str(), 1);
        ::setenv("XDG_RUNTIME_DIR", dir_.c_str(), 1);
        ::setenv("TTT_BUDGET", "120", 1);
        ::unsetenv("TTT_LEASE");
        ::unsetenv("TTT_CANARY_S");
        // The emulated clock sees a small gain for this kernel; the tests answer with what they
        // like.
        ::setenv("TTT_MIN_GAIN", "0", 1);
    }
    ~Program() {
        end();
        if (pid_ > 0) ::kill(pid_, SIGKILL), ::waitpid(pid_, nullptr, 0);
        fs::remove_all(dir_);
    }

    void start() {
        auto pair = ipc::Channel::make_pair();
        ASSERT_TRUE(pair.ok());
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, pair->second.fd(), 3);
        posix_spawn_file_actions_addclosefrom_np(&actions, 4);
        std::string path = TTT_BIN_DIR "/ttt-tuner", flag = "--channel-fd", fd = "3";
        char* argv[] = {path.data(), flag.data(), fd.data(), nullptr};
        ASSERT_EQ(::posix_spawn(&pid_, path.c_str(), &actions, nullptr, argv, environ), 0);
        posix_spawn_file_actions_destroy(&actions);
        channel_ = std::move(pair->first);
    }
    void hello(const std::string& mode = "apply", uint32_t protocol = ipc::kProtocolVersion) {
        flatbuffers::FlatBufferBuilder b;
        send(b,
             ipc::CreateHelloDirect(b, protocol, ::getpid(), "test", mode.c_str(), foreground_,
                                    report_.c_str(), "emulated", "", 90, 132, 13000, true, false,
                                    uint64_t{1} << 30),
             page_ ? page_->fd() : -1);
    }
    // Before hello: trials wait for pauses, of which `idle` says at each moment whether there is
    // one.
    void needs_lease(std::function<bool()> idle) {
        ::setenv("TTT_LEASE", "always", 1);
        auto page = ipc::LeasePage::create(3);
        ASSERT_TRUE(page.ok());
        page_.emplace(std::move(*page));
        lease_ = std::jthread([this, idle = std::move(idle)](const std::stop_token& stop) {
            while (!stop.stop_requested()) {
                const uint64_t now = ipc::lease_clock_ns();
                page_->words().until_ns.store(idle() ? now + 1'000'000'000 : 0);
                page_->words().beat_ns.store(now);
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            }
        });
    }
    uint64_t proofs() const { return page_->words().proofs.load(); }
    void module(const std::string& ptx) {
        auto fd = ipc::make_memfd("module", std::as_bytes(std::span(ptx)));
        ASSERT_TRUE(fd.ok());
        flatbuffers::FlatBufferBuilder b;
        send(b, ipc::CreateModuleImageDirect(b, 1, ipc::ImageKind::Ptx, ptx.size(), -1, -1, ""),
             fd->get());
    }
    void kernel(bool right_layout = true) {
        flatbuffers::FlatBufferBuilder b;
        std::vector<ipc::ParamSpan> params{{0, 8}, {8, 8}, {16, 8}, {24, right_layout ? 4u : 8u}};
        send(b, ipc::CreateKernelDefDirect(b, 1, 1, "vecadd", &params, 32, 0, 0, 1024));
    }
    void site_hot(bool device_memory = true) {
        const measure::Snapshot s = k::snapshot();
        flatbuffers::FlatBufferBuilder b;
        std::vector<flatbuffers::Offset<ipc::PointerTarget>> targets;
        for (const auto& r : s.regions)
            targets.push_back(
                ipc::CreatePointerTarget(b, r.pointers[0], r.address, r.bytes, device_memory));
        const ipc::Dim3 grid = wire::dim3(s.launch.grid), block = wire::dim3(s.launch.block);
        const std::vector<uint8_t> params(
            reinterpret_cast<const uint8_t*>(s.launch.params.data()),
            reinterpret_cast<const uint8_t*>(s.launch.params.data()) + s.launch.params.size());
        const std::vector<uint8_t> stable(4, 1);
        send(b, ipc::CreateSiteHotDirect(b, 1, 1, &grid, &block, 0, &params, &stable, &targets, 100,
                                         0.9, 5000));
    }
    // What the session answers to a request for a snapshot; `post` may lie about what the launch
    // wrote.
    void snapshot_ready(const std::vector<std::byte>& arena, uint64_t id = 9) {
        const measure::Snapshot s = k::snapshot();
        auto fd = ipc::make_memfd("arena", arena);
        ASSERT_TRUE(fd.ok());
        flatbuffers::FlatBufferBuilder b;
        const ipc::Dim3 grid = wire::dim3(s.launch.grid), block = wire::dim3(s.launch.block);
        auto params = b.CreateVector(reinterpret_cast<const uint8_t*>(s.launch.params.data()),
                                     s.launch.params.size());
        auto regions = b.CreateVector(wire::records(b, s.regions));
        send(b,
             ipc::CreateSnapshotReady(b, 1, id, &grid, &block, 0, params, regions, s.arena_bytes,
                                      true, 5000),
             fd->get());
    }
    void timing(uint64_t variant, double speedup) {
        std::vector<double> original(20, 5000.0), changed(20, 5000.0 / speedup);
        for (size_t i = 0; i < 20; ++i) original[i] += static_cast<double>(i % 3);
        flatbuffers::FlatBufferBuilder b;
        send(b, ipc::CreateTimingResultDirect(b, 1, variant, &original, &changed, ""));
    }
    void swap_result(uint64_t variant, bool published) {
        flatbuffers::FlatBufferBuilder b;
        send(b, ipc::CreateSwapResultDirect(b, 1, variant, published,
                                            published ? "" : "refused by the test"));
    }
    void canary(uint64_t variant, double speedup, size_t pairs = 16) {
        std::vector<double> original(pairs, 5000.0), changed(pairs, 5000.0 / speedup);
        flatbuffers::FlatBufferBuilder b;
        send(b, ipc::CreateCanaryResultDirect(b, 1, variant, &original, &changed, 0));
    }
    void free_memory() {
        flatbuffers::FlatBufferBuilder b;
        send(b, ipc::CreateFreeMemory(b));
    }
    void raw(const std::string& bytes) {
        ASSERT_EQ(::send(channel_.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
                  static_cast<ssize_t>(bytes.size()));
    }

    // The usual answers until SiteDone arrives; returns its reason. `live` is the canary's
    // speed-up.
    struct Script {
        std::vector<std::byte> arena = k::arena_bytes();
        std::function<double(const std::string& recipe)> speedup = [](const std::string&) {
            return 2.0;
        };
        double live = 2.0;
        // What the second request for a snapshot gets; nullopt: no answer.
        std::optional<std::vector<std::byte>> later_arena = k::arena_bytes();
        size_t live_pairs = 16;
        std::function<void()> meanwhile;  // called every few milliseconds
    };
    std::string play(const Script& script, int seconds = 120) {
        std::map<uint64_t, std::string> recipes;
        const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
        while (std::chrono::steady_clock::now() < until) {
            auto r = channel_.receive(script.meanwhile ? 5 : 500);
            if (script.meanwhile) script.meanwhile();
            if (!r.ok()) return "channel: " + r.error().str();
            if (!r->has_value()) continue;
            const ipc::Message& m = *(*r)->message();
            ++seen_[ipc::payload_name(m.payload_type())];
            if (const auto* p = m.payload_as_SiteDone()) return std::string(ipc::text(p->reason()));
            if (m.payload_as_SnapshotRequest() != nullptr) {
                const bool later = seen_["SnapshotRequest"] > 1;
                if (!later) snapshot_ready(script.arena, 9);
                if (later && script.later_arena) snapshot_ready(*script.later_arena, 10);
            }
            if (const auto* p = m.payload_as_VariantDef()) {
                recipes[p->variant_id()] = std::string(ipc::text(p->recipe()));
                EXPECT_TRUE((*r)->fd.valid());
                EXPECT_EQ(ipc::text(p->entry()), "vecadd");
            }
            if (const auto* p = m.payload_as_TimeRequest())
                timing(p->variant_id(), script.speedup(recipes[p->variant_id()]));
            if (const auto* p = m.payload_as_SwapRequest(); p != nullptr && p->canary()) {
                swapped_ = recipes[p->variant_id()];
                swap_result(p->variant_id(), true);
                canary(p->variant_id(), script.live, script.live_pairs);
            } else if (p != nullptr) {
                ++confirmed_;
            }
        }
        return "no SiteDone in time";
    }

    void end() { channel_.close(); }
    // Exit status of the tuner, negative signal number when it was killed, -1000 when it does not
    // end.
    int wait_exit(int seconds = 30) {
        for (int i = 0; i < seconds * 100; ++i) {
            int status = 0;
            if (::waitpid(pid_, &status, WNOHANG) == pid_) {
                pid_ = -1;
                return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
            }
            ::usleep(10000);
        }
        return -1000;
    }
    Json report() const {
        std::ifstream in(report_);
        return Json::parse(in, nullptr, false);
    }
    Json site() const {
        const Json r = report();
        return r.is_object() && r.contains("sites") && !r["sites"].empty() ? r["sites"][0] : Json();
    }
    pid_t pid() const { return pid_; }
    ipc::Channel& channel() { return channel_; }
    const fs::path& dir() const { return dir_; }
    int confirmed() const { return confirmed_; }
    const std::string& swapped() const { return swapped_; }
    int seen(const std::string& message) const {
        auto it = seen_.find(message);
        return it == seen_.end() ? 0 : it->second;
    }
    void announce(const std::string& ptx = k::right()) {
        start();
        hello();
        module(ptx);
        kernel();
        site_hot();
    }

  private:
    template <typename T>
    void send(flatbuffers::FlatBufferBuilder& b, flatbuffers::Offset<T> payload, int fd = -1) {
        const Status s = channel_.send(b, payload, fd);
        EXPECT_TRUE(s.ok()) << s.error().str();
    }
    static inline int count_ = 0;
    double foreground_ = 0;
    fs::path dir_;
    std::string report_;
    ipc::Channel channel_;
    pid_t pid_ = -1;
    int confirmed_ = 0;
    std::string swapped_;
    std::map<std::string, int> seen_;
    std::optional<ipc::LeasePage> page_;
    std::jthread lease_;
};

}  // namespace ttt::testing_program
