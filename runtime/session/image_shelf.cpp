#include "session/image_shelf.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <utility>
#include <vector>

#include "ipc/channel.h"
#include "session/descriptors.h"

namespace ttt::session {
namespace {

constexpr uint64_t kMostWaiting = uint64_t{1} << 30;

bool write_all(int fd, std::span<const std::byte> bytes, uint64_t at) {
    while (!bytes.empty()) {
        const ssize_t n = pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(at));
        if (n <= 0) return false;
        bytes = bytes.subspan(static_cast<size_t>(n));
        at += static_cast<uint64_t>(n);
    }
    return true;
}

bool read_all(int fd, std::span<std::byte> bytes, uint64_t at) {
    while (!bytes.empty()) {
        const ssize_t n = pread(fd, bytes.data(), bytes.size(), static_cast<off_t>(at));
        if (n <= 0) return false;
        bytes = bytes.subspan(static_cast<size_t>(n));
        at += static_cast<uint64_t>(n);
    }
    return true;
}

}  // namespace

ImageShelf::Id ImageShelf::put(std::span<const std::byte> image) {
    if (image.empty() || waiting_ + image.size() > kMostWaiting) return 0;
    if (!file_.valid()) {
        Fd made(memfd_create("ttt-images", MFD_CLOEXEC));
        file_ = move_up(std::move(made));
    }
    if (!file_.ours() || !write_all(file_.get(), image, end_)) return 0;
    places_[next_] = {end_, image.size()};
    end_ += image.size();
    waiting_ += image.size();
    return next_++;
}

Fd ImageShelf::take(Id id) {
    const auto it = places_.find(id);
    if (it == places_.end()) return {};
    Fd own;
    std::vector<std::byte> bytes(it->second.bytes);
    if (file_.ours() && read_all(file_.get(), bytes, it->second.offset))
        if (auto fd = ipc::make_memfd("ttt-image", bytes); fd.ok()) own = std::move(fd).value();
    drop(id);
    return own;
}

void ImageShelf::drop(Id id) {
    const auto it = places_.find(id);
    if (it == places_.end()) return;
    if (file_.ours())
        fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  static_cast<off_t>(it->second.offset), static_cast<off_t>(it->second.bytes));
    waiting_ -= it->second.bytes;
    places_.erase(it);
    if (!places_.empty()) return;
    end_ = 0;
    file_.reset();
}

}  // namespace ttt::session
