#include <algorithm>
#include <cctype>
#include <cstring>
#include <string>

#include "base/hash.h"
#include "image/bytes.h"
#include "image/elf.h"
#include "image/image.h"
#include "image/layout.h"
#include "image/ptx_target.h"

namespace ttt::image {
namespace {

Error bad(const std::string& what) { return make_error(Code::kParse, "fat binary: " + what); }

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// PTX starts with white space, a comment or ".version"; a cut head may hold only the beginning of
// those.
bool looks_like_ptx(std::string_view head) {
    const auto start = std::find_if_not(head.begin(), head.end(), is_space);
    const std::string_view rest = head.substr(static_cast<size_t>(start - head.begin()));
    if (rest.empty()) return !head.empty();
    constexpr std::string_view kVersion = ".version";
    if (rest.front() == '.')
        return rest.substr(0, kVersion.size()) == kVersion.substr(0, rest.size());
    return rest.size() >= 2 && rest[0] == '/' && (rest[1] == '/' || rest[1] == '*');
}

// Option strings of ELF entries are binary records: only text is worth keeping.
std::string printable(Bytes bytes) {
    const std::string_view text = as_text(bytes);
    for (const char c : text)
        if (c < ' ' || c > '~') return {};
    const size_t from = text.find_first_not_of(' ');
    if (from == std::string_view::npos) return {};
    return std::string(text.substr(from, text.find_last_not_of(' ') - from + 1));
}

// A string that an entry header points to; offsets count from the entry header. Empty when it lies.
std::string header_text(Bytes header, uint64_t offset, uint64_t length) {
    Bytes text;
    if (offset == 0 || length == 0 || !slice(header, offset, length, text)) return {};
    while (!text.empty() && text.back() == std::byte{0}) text = text.first(text.size() - 1);
    return printable(text);
}

EntryKind entry_kind(uint16_t kind) {
    switch (kind) {
        case 1:
            return EntryKind::kPtx;
        case 2:
            return EntryKind::kElf;
        case 8:
            return EntryKind::kLtoIr;
        default:
            return EntryKind::kOther;
    }
}

// One entry at the start of `rest`; `used` receives the distance to the next one.
Result<Entry> read_entry(Bytes rest, uint64_t& used) {
    const uint64_t header_bytes = load_or_zero<uint32_t>(rest, 4);
    const uint64_t padded = load_or_zero<uint64_t>(rest, 8);
    Bytes header;
    Bytes payload;
    if (header_bytes < kEntryHeaderBytes || !slice(rest, 0, header_bytes, header))
        return bad("an entry's header is cut or too small");
    if (!slice(rest, header_bytes, padded, payload))
        return bad("an entry is larger than the image");
    used = header_bytes + padded;

    Entry e;
    e.kind = entry_kind(load_or_zero<uint16_t>(header, 0));
    e.arch = load_or_zero<uint32_t>(header, 0x1C);
    const auto flags = load_or_zero<uint64_t>(header, 0x28);
    e.arch_specific = (flags & kFlagArchSpecific) != 0;
    e.family_specific = (flags & kFlagFamilySpecific) != 0;
    e.name = header_text(header, load_or_zero<uint32_t>(header, 0x20),
                         load_or_zero<uint32_t>(header, 0x24));
    const auto options_at = load_or_zero<uint32_t>(header, 0x14);
    if (options_at != 0)
        e.options = header_text(header, load_or_zero<uint32_t>(header, options_at),
                                load_or_zero<uint32_t>(header, uint64_t{options_at} + 4));
    const auto packed = load_or_zero<uint32_t>(header, 0x10);
    if (packed > padded) return bad("a compressed entry is larger than its room");
    e.compressed = packed != 0 || (flags & (kFlagLz4 | kFlagZstd)) != 0;
    e.payload = packed != 0 ? payload.first(packed) : payload;
    e.scheme = !e.compressed              ? Compression::kNone
               : (flags & kFlagZstd) != 0 ? Compression::kZstd
               : (flags & kFlagLz4) != 0  ? Compression::kLz4
                                          : Compression::kUnknown;
    e.uncompressed_size = e.compressed ? load_or_zero<uint64_t>(header, 0x38) : payload.size();
    return e;
}

Result<std::vector<Entry>> fatbin_entries(Bytes image) {
    const uint64_t header_bytes = load_or_zero<uint16_t>(image, 6);
    const uint64_t size = load_or_zero<uint64_t>(image, 8);
    if (image.size() < kFatbinHeaderBytes || header_bytes < kFatbinHeaderBytes)
        return bad("its header is cut");
    Bytes body;
    if (!slice(image, header_bytes, size, body)) return bad("its size is larger than the image");
    std::vector<Entry> out;
    // Less than an entry header at the end is padding.
    while (body.size() >= kEntryHeaderBytes) {
        uint64_t used = 0;
        auto entry = read_entry(body, used);
        if (!entry.ok())
            return std::move(entry).error().with("entry " + std::to_string(out.size()));
        out.push_back(std::move(entry).value());
        body = body.subspan(static_cast<size_t>(used));
    }
    return out;
}

Entry ptx_entry(Bytes image) {
    Entry e;
    e.kind = EntryKind::kPtx;
    const PtxTarget target = ptx_target(as_text(image));
    e.arch = target.arch;
    e.arch_specific = target.suffix == 'a';
    e.family_specific = target.suffix == 'f';
    e.payload = image;
    e.uncompressed_size = image.size();
    return e;
}

Result<Entry> elf_entry(Bytes image) {
    if (image.size() < kEntryHeaderBytes)
        return make_error(Code::kParse, "ELF image: shorter than its header");
    Entry e;
    e.kind = EntryKind::kElf;
    e.arch = cubin_arch(load_or_zero<uint16_t>(image, 18), load_or_zero<uint8_t>(image, 8),
                        load_or_zero<uint32_t>(image, 48));
    e.payload = image;
    e.uncompressed_size = image.size();
    return e;
}

}  // namespace

Kind classify(std::span<const std::byte> head) {
    uint32_t magic = 0;
    if (load(head, 0, magic)) {
        if (magic == kFatbinMagic) return Kind::kFatbin;
        if (magic == kWrapperMagic) return Kind::kFatbinWrapper;
        if (magic == kElfMagic) return Kind::kElf;
    }
    return looks_like_ptx(as_text(head.first(std::min<size_t>(head.size(), 24)))) ? Kind::kPtx
                                                                                  : Kind::kUnknown;
}

Result<std::vector<Entry>> entries(std::span<const std::byte> image) {
    switch (classify(image)) {
        case Kind::kFatbin:
            return fatbin_entries(image);
        case Kind::kPtx:
            return std::vector<Entry>{ptx_entry(image)};
        case Kind::kElf: {
            TTT_TRY(auto entry, elf_entry(image));
            return std::vector<Entry>{std::move(entry)};
        }
        case Kind::kFatbinWrapper:
            return make_error(Code::kInvalidArgument,
                              "a fat binary wrapper holds addresses: use copy_foreign");
        case Kind::kUnknown:
            break;
    }
    return make_error(Code::kParse, "the image is neither PTX, ELF nor a fat binary");
}

uint64_t code_identity(std::string_view elf) {
    struct Reader final : ElfReader {
        std::string_view bytes;
        bool read(uint64_t offset, void* out, uint64_t n) override {
            if (offset > bytes.size() || n > bytes.size() - offset) return false;
            std::memcpy(out, bytes.data() + offset, n);
            return true;
        }
    } reader;
    reader.bytes = elf;
    // Without the padding that some containers add.
    const auto length = elf_length(reader, elf.size());
    return hash_text(elf.substr(0, length.ok() ? length.value() : elf.size())).lo;
}

std::vector<uint64_t> code_identities(std::span<const std::byte> image) {
    std::vector<uint64_t> out;
    const auto found = entries(image);
    for (size_t i = 0; found.ok() && i < found->size(); ++i) {
        const Entry& e = (*found)[i];
        if (e.kind != EntryKind::kElf) continue;
        if (const auto elf = contents(e); elf.ok()) out.push_back(code_identity(*elf));
    }
    return out;
}

const Entry* best_ptx(const std::vector<Entry>& entries, uint32_t arch) {
    const Entry* best = nullptr;
    for (const Entry& e : entries) {
        if (e.kind != EntryKind::kPtx || e.arch > arch) continue;
        // Architecture-specific PTX runs on that architecture only, family-specific within its
        // family (same tens).
        if (e.arch_specific && e.arch != arch) continue;
        if (e.family_specific && e.arch / 10 != arch / 10) continue;
        if (best == nullptr || e.arch > best->arch || (e.arch == best->arch && e.arch_specific))
            best = &e;
    }
    return best;
}

}  // namespace ttt::image
