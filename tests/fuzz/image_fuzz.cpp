// Parsers of what programs hand the driver: fat binaries, compressed entries, cubins, libraries,
// images in memory.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "image/image.h"
#include "image/ptx_target.h"

namespace {

constexpr uint64_t kLimit = 1 << 22;

void check_entries(std::span<const std::byte> bytes) {
    const auto entries = ttt::image::entries(bytes);
    if (!entries.ok()) return;
    for (const auto& entry : *entries) {
        const auto text = ttt::image::contents(entry, kLimit);
        if (!text.ok()) continue;
        if (entry.kind == ttt::image::EntryKind::kElf)
            (void)ttt::image::read_cubin(std::as_bytes(std::span(text->data(), text->size())));
        if (entry.kind == ttt::image::EntryKind::kPtx) (void)ttt::image::ptx_target(*text);
    }
    (void)ttt::image::best_ptx(*entries, 90);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const auto bytes = std::as_bytes(std::span(data, size));
    (void)ttt::image::classify(bytes);
    check_entries(bytes);
    (void)ttt::image::read_cubin(bytes);
    (void)ttt::image::fatbins_in_elf(bytes);
    // Wrappers hold addresses: following the fuzzer's would read this process, which is legal but
    // not repeatable.
    if (ttt::image::classify(bytes) == ttt::image::Kind::kFatbinWrapper) return 0;
    std::vector<std::byte> copy(bytes.begin(), bytes.end());
    copy.resize(copy.size() + 16);  // text needs an end; sizes beyond it are the parser's business
    (void)ttt::image::copy_foreign(copy.data(), kLimit);
    return 0;
}
