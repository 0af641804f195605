// Fat binaries inside shared libraries, executables and objects.
#include "image/bytes.h"
#include "image/elf.h"
#include "image/image.h"
#include "image/layout.h"

namespace ttt::image {
namespace {

bool holds_fatbins(std::string_view section) {
    return section.find("nv_fatbin") != std::string_view::npos || section == "__nv_relfatbin";
}

// Fat binaries lie one after the other, padded to eight bytes.
void collect(Bytes section, std::vector<Bytes>& out) {
    uint64_t at = 0;
    while (section.size() >= kFatbinHeaderBytes && at <= section.size() - kFatbinHeaderBytes) {
        uint32_t magic = 0;
        load(section, at, magic);
        const uint64_t header = load_or_zero<uint16_t>(section, at + 6);
        const uint64_t size = load_or_zero<uint64_t>(section, at + 8);
        Bytes fatbin;
        const bool sane = magic == kFatbinMagic && header >= kFatbinHeaderBytes &&
                          size <= section.size() && slice(section, at, header + size, fatbin);
        if (sane) out.push_back(fatbin);
        at += sane ? (fatbin.size() + 7) / 8 * 8 : 8;
    }
}

}  // namespace

Result<std::vector<std::span<const std::byte>>> fatbins_in_elf(std::span<const std::byte> file) {
    TTT_TRY(const ElfFile elf, read_elf(file));
    std::vector<Bytes> out;
    for (const Section& s : elf.sections)
        if (holds_fatbins(s.name)) collect(s.data, out);
    return out;
}

}  // namespace ttt::image
