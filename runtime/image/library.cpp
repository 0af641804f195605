// Fat binaries inside shared libraries, executables and objects.
#include <elf.h>

#include "image/bytes.h"
#include "image/elf.h"
#include "image/image.h"
#include "image/layout.h"

namespace ttt::image {
namespace {

bool holds_fatbins(std::string_view section) {
    return section.find("nv_fatbin") != std::string_view::npos || section == "__nv_relfatbin";
}

// Some libraries keep fat binaries among their constants; the name alone does not say so.
bool may_hold_fatbins(const Section& section) {
    return section.type == SHT_PROGBITS && (section.flags & SHF_EXECINSTR) == 0;
}

// Fat binaries start at multiples of eight bytes in the file (not in a section: cuFFT's .ldata
// begins in between). Between them may lie anything, so that a match must also read well.
void collect(Bytes section, uint64_t file_offset, std::vector<Bytes>& out) {
    uint64_t at = (8 - file_offset % 8) % 8;
    while (section.size() >= kFatbinHeaderBytes && at <= section.size() - kFatbinHeaderBytes) {
        uint32_t magic = 0;
        load(section, at, magic);
        if (magic != kFatbinMagic) {
            at += 8;
            continue;
        }
        const uint64_t header = load_or_zero<uint16_t>(section, at + 6);
        const uint64_t size = load_or_zero<uint64_t>(section, at + 8);
        Bytes fatbin;
        const bool sane = header >= kFatbinHeaderBytes && size <= section.size() &&
                          slice(section, at, header + size, fatbin) && entries(fatbin).ok();
        if (sane) out.push_back(fatbin);
        at += sane ? (fatbin.size() + 7) / 8 * 8 : 8;
    }
}

}  // namespace

Result<std::vector<std::span<const std::byte>>> fatbins_in_elf(std::span<const std::byte> file) {
    TTT_TRY(const ElfFile elf, read_elf(file));
    std::vector<Bytes> out;
    for (const Section& s : elf.sections)
        if (holds_fatbins(s.name) || may_hold_fatbins(s)) collect(s.data, s.file_offset, out);
    return out;
}

}  // namespace ttt::image
