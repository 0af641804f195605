#include <algorithm>
#include <new>

#include "image/bytes.h"
#include "image/elf.h"
#include "image/foreign_memory.h"
#include "image/image.h"
#include "image/layout.h"

namespace ttt::image {
namespace {

using Blob = std::vector<std::byte>;

constexpr size_t kMaxPrelinked = 4096;
constexpr size_t kChunk = 64 * 1024;

Error unreadable() {
    return make_error(Code::kParse, "the image's memory cannot be read to its stated end");
}
Error too_large() { return make_error(Code::kExhausted, "the image is larger than the limit"); }

template <typename T>
bool read_value(uint64_t address, T& out) {
    return read_foreign(address, &out, sizeof out) == sizeof out;
}

Result<Blob> copy_exact(uint64_t address, uint64_t bytes) {
    // Grows as memory proves readable: a lying size must not reserve memory that is not there to
    // copy.
    Blob out;
    while (out.size() < bytes) {
        const size_t done = out.size();
        const size_t want =
            static_cast<size_t>(std::min<uint64_t>(bytes - done, std::max<size_t>(kChunk, done)));
        out.resize(done + want);
        if (read_foreign(address + done, out.data() + done, want) != want) return unreadable();
    }
    return out;
}

Result<Blob> copy_text(uint64_t address, uint64_t limit) {
    Blob out;
    for (;;) {
        const size_t done = out.size();
        out.resize(done + kChunk);
        const size_t got = read_foreign(address + done, out.data() + done, kChunk);
        const auto from = out.begin() + static_cast<std::ptrdiff_t>(done);
        const auto end = std::find(from, from + static_cast<std::ptrdiff_t>(got), std::byte{0});
        if (static_cast<uint64_t>(end - out.begin()) > limit) return too_large();
        if (end != from + static_cast<std::ptrdiff_t>(got)) {
            out.erase(end, out.end());
            return out;
        }
        if (got < kChunk) return make_error(Code::kParse, "PTX text in memory has no end");
    }
}

// Reads headers through a small window: a cubin may have thousands of sections.
class WindowReader final : public ElfReader {
  public:
    explicit WindowReader(uint64_t base) : x_base(base), x_window(kChunk) {}
    bool read(uint64_t offset, void* out, uint64_t bytes) override {
        if (offset < x_start || offset - x_start > x_filled ||
            x_filled - (offset - x_start) < bytes) {
            x_start = offset;
            x_filled = read_foreign(x_base + offset, x_window.data(), x_window.size());
            if (x_filled < bytes) return false;
        }
        std::memcpy(out, x_window.data() + (offset - x_start), static_cast<size_t>(bytes));
        return true;
    }

  private:
    uint64_t x_base = 0, x_start = 0, x_filled = 0;
    Blob x_window;
};

Result<Blob> copy_elf(uint64_t address, uint64_t limit) {
    WindowReader reader(address);
    TTT_TRY(const uint64_t bytes, elf_length(reader, limit));
    return copy_exact(address, bytes);
}

Result<Blob> copy_fatbin(uint64_t address, uint64_t limit) {
    uint16_t header_bytes = 0;
    uint64_t size = 0;
    if (!read_value(address + 6, header_bytes) || !read_value(address + 8, size))
        return unreadable();
    if (header_bytes < kFatbinHeaderBytes)
        return make_error(Code::kParse, "fat binary: its header is cut");
    if (size > limit || limit - size < header_bytes) return too_large();
    return copy_exact(address, header_bytes + size);
}

bool starts_fatbin(uint64_t address) {
    uint32_t magic = 0;
    return read_value(address, magic) && magic == kFatbinMagic;
}

// Adds each fat binary of a NULL-terminated array.
Status copy_array(uint64_t array, uint64_t limit, std::vector<Blob>& out) {
    for (size_t i = 0; i < kMaxPrelinked; ++i) {
        uint64_t item = 0;
        if (!read_value(array + i * sizeof item, item)) return unreadable();
        if (item == 0) return ok_status();
        if (!starts_fatbin(item))
            return make_error(Code::kParse, "fat binary wrapper lists something else");
        TTT_TRY(Blob blob, copy_fatbin(item, limit));
        limit -= std::min<uint64_t>(limit, blob.size());
        out.push_back(std::move(blob));
    }
    return make_error(Code::kParse, "fat binary wrapper lists too many fat binaries");
}

Result<std::vector<Blob>> copy_wrapper(uint64_t address, uint64_t limit) {
    uint32_t version = 0;
    uint64_t data = 0;
    uint64_t extra = 0;
    if (!read_value(address + 4, version) || !read_value(address + 8, data) ||
        !read_value(address + 16, extra))
        return unreadable();
    if (version != 1 && version != 2)
        return make_error(Code::kUnsupported,
                          "fat binary wrapper of version " + std::to_string(version));
    std::vector<Blob> out;
    if (starts_fatbin(data)) {
        TTT_TRY(Blob blob, copy_fatbin(data, limit));
        limit -= std::min<uint64_t>(limit, blob.size());
        out.push_back(std::move(blob));
        // Version 2 has the relocatable parts beside the linked result.
        if (version == 2 && extra != 0) TTT_CHECK_OK(copy_array(extra, limit, out));
        return out;
    }
    if (version == 1)
        return make_error(Code::kParse, "fat binary wrapper points to something else");
    TTT_CHECK_OK(copy_array(data, limit, out));
    return out;
}

Result<std::vector<Blob>> one(Result<Blob> blob) {
    if (!blob.ok()) return std::move(blob).error();
    std::vector<Blob> out;
    out.push_back(std::move(blob).value());
    return out;
}

Result<std::vector<Blob>> copy_any(uint64_t address, uint64_t limit) {
    std::byte head[24];
    const size_t got = read_foreign(address, head, sizeof head);
    switch (classify(std::span(head, got))) {
        case Kind::kPtx:
            return one(copy_text(address, limit));
        case Kind::kElf:
            return one(copy_elf(address, limit));
        case Kind::kFatbin:
            return one(copy_fatbin(address, limit));
        case Kind::kFatbinWrapper:
            return copy_wrapper(address, limit);
        case Kind::kUnknown:
            break;
    }
    return make_error(Code::kParse, "the image is neither PTX, ELF nor a fat binary");
}

}  // namespace

Result<std::vector<std::vector<std::byte>>> copy_foreign(const void* image, uint64_t limit) {
    if (image == nullptr) return make_error(Code::kInvalidArgument, "no image");
    try {
        return copy_any(reinterpret_cast<uint64_t>(image), limit);
    } catch (const std::bad_alloc&) {
        return make_error(Code::kExhausted, "no memory to copy an image");
    }
}

}  // namespace ttt::image
