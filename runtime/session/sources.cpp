#include "session/sources.h"

#include <fmt/format.h>

#include <atomic>
#include <memory>

#include "image/image.h"
#include "session/event_queue.h"

namespace ttt::session {
namespace {

constexpr size_t kMostWaiting = size_t{64} << 20;
constexpr size_t kMostLinks = 1024;  // a program that never ends its links must not fill memory
constexpr uint64_t kCodeLimit = uint64_t{256} << 20;

constinit EventQueue<Source> g_told;
constinit std::atomic<size_t> g_waiting{0};

// PTX comes with or without its terminating NUL.
std::string_view text_of(std::span<const std::byte> bytes) {
    std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return text.substr(0, text.find('\0'));
}

}  // namespace

void made_from(std::span<const std::byte> machine_code, std::string_view ptx,
               std::string_view origin, std::string_view options) {
    ptx = ptx.substr(0, ptx.find('\0'));
    if (machine_code.empty() || machine_code.data() == nullptr) return;
    if (g_waiting.load(std::memory_order_relaxed) + ptx.size() > kMostWaiting) return;
    // Read as the loader's copy will be, so that both identify the same bytes.
    const auto blobs = image::copy_foreign(machine_code.data(), kCodeLimit);
    if (!blobs.ok()) return;
    auto source = std::make_unique<Source>();
    for (const auto& blob : *blobs) {
        const auto codes = image::code_identities(blob);
        source->codes.insert(source->codes.end(), codes.begin(), codes.end());
    }
    if (source->codes.empty()) return;
    source->ptx = ptx;
    source->origin = origin;
    source->options = options;
    g_waiting.fetch_add(ptx.size(), std::memory_order_relaxed);
    g_told.push(source.release());
}

std::vector<Source> take_sources() {
    std::vector<Source> out;
    for (Source* s = g_told.drain(); s != nullptr;) {
        const std::unique_ptr<Source> owned(s);
        s = s->next;
        g_waiting.fetch_sub(owned->ptx.size(), std::memory_order_relaxed);
        out.push_back(std::move(*owned));
    }
    return out;
}

void Links::begin(const void* link, std::string options) {
    const std::lock_guard lock(mutex_);
    if (links_.size() < kMostLinks) links_[link] = {std::move(options), {}, 0};
}

void Links::add_ptx(const void* link, std::span<const std::byte> text) {
    const std::lock_guard lock(mutex_);
    const auto it = links_.find(link);
    if (it == links_.end()) return;
    if (++it->second.inputs == 1)
        it->second.ptx = text_of(text);
    else
        it->second.ptx.clear();
}

void Links::add_other(const void* link) {
    const std::lock_guard lock(mutex_);
    const auto it = links_.find(link);
    if (it == links_.end()) return;
    ++it->second.inputs;
    ++it->second.without_ptx;
    it->second.ptx.clear();
}

void Links::linked(const void* link, std::span<const std::byte> machine_code) {
    const std::lock_guard lock(mutex_);
    const auto it = links_.find(link);
    if (it == links_.end()) return;
    const Link& l = it->second;
    const bool one = l.inputs == 1 && !l.ptx.empty();
    made_from(machine_code, l.ptx,
              one ? std::string(origin_)
                  : fmt::format("{} made it from {} inputs, {} of them without PTX", origin_,
                                l.inputs, l.without_ptx),
              l.options);
}

void Links::end(const void* link) {
    const std::lock_guard lock(mutex_);
    links_.erase(link);
}

}  // namespace ttt::session
