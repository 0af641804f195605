#include "image/elf.h"

#include <elf.h>

#include <algorithm>

#include "image/layout.h"

namespace ttt::image {
namespace {

constexpr uint32_t kMaxSections = 1u << 20;

Error bad(const char* what) { return make_error(Code::kParse, std::string("ELF image: ") + what); }

Status check_ident(const Elf64_Ehdr& header) {
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return bad("no ELF magic");
    if (header.e_ident[EI_CLASS] != ELFCLASS64) return bad("not 64-bit");
    if (header.e_ident[EI_DATA] != ELFDATA2LSB) return bad("not little-endian");
    return ok_status();
}

// NUL-terminated string inside a string table; empty when it runs out of the table.
std::string_view string_at(Bytes table, uint64_t offset) {
    if (offset >= table.size()) return {};
    const auto text = as_text(table).substr(static_cast<size_t>(offset));
    const size_t end = text.find('\0');
    return end == std::string_view::npos ? std::string_view{} : text.substr(0, end);
}

bool has_bytes(uint32_t type) {
    return type != SHT_NOBITS && type != SHT_NULL && type != kSectionCudaShared;
}

bool end_of(uint64_t offset, uint64_t size, uint64_t limit, uint64_t& furthest) {
    if (offset > limit || size > limit - offset) return false;
    furthest = std::max(furthest, offset + size);
    return true;
}

}  // namespace

const Section* ElfFile::find(std::string_view name) const {
    for (const auto& s : sections)
        if (s.name == name) return &s;
    return nullptr;
}

Result<ElfFile> read_elf(Bytes bytes) {
    Elf64_Ehdr header;
    if (!load(bytes, 0, header)) return bad("shorter than its header");
    TTT_CHECK_OK(check_ident(header));
    ElfFile out;
    out.machine = header.e_machine;
    out.os_abi = header.e_ident[EI_OSABI];
    out.abi_version = header.e_ident[EI_ABIVERSION];
    out.flags = header.e_flags;
    if (header.e_shoff == 0) return out;
    if (header.e_shentsize != sizeof(Elf64_Shdr)) return bad("unexpected size of section headers");
    Elf64_Shdr first;
    if (!load(bytes, header.e_shoff, first)) return bad("section headers are outside the file");
    const uint64_t count = header.e_shnum != 0 ? header.e_shnum : first.sh_size;
    const uint64_t names_at = header.e_shstrndx != SHN_XINDEX ? header.e_shstrndx : first.sh_link;
    Bytes table;
    if (count > kMaxSections || !slice(bytes, header.e_shoff, count * sizeof(Elf64_Shdr), table))
        return bad("section headers are outside the file");
    Elf64_Shdr names_header;
    Bytes names;
    if (names_at >= count || !load(table, names_at * sizeof(Elf64_Shdr), names_header) ||
        !slice(bytes, names_header.sh_offset, names_header.sh_size, names))
        return bad("section name table is outside the file");
    out.sections.resize(static_cast<size_t>(count));
    for (uint64_t i = 0; i < count; ++i) {
        Elf64_Shdr raw;
        if (!load(table, i * sizeof(Elf64_Shdr), raw)) return bad("section headers are cut");
        Section& s = out.sections[static_cast<size_t>(i)];
        s.name = string_at(names, raw.sh_name);
        s.type = raw.sh_type;
        s.link = raw.sh_link;
        s.info = raw.sh_info;
        s.flags = raw.sh_flags;
        s.size = raw.sh_size;
        s.file_offset = raw.sh_offset;
        if (!has_bytes(raw.sh_type)) continue;
        if (!slice(bytes, raw.sh_offset, raw.sh_size, s.data))
            return bad("a section is outside the file");
    }
    return out;
}

Result<uint64_t> elf_length(ElfReader& reader, uint64_t limit) {
    Elf64_Ehdr header;
    if (!reader.read(0, &header, sizeof header)) return bad("header cannot be read");
    TTT_CHECK_OK(check_ident(header));
    uint64_t end = sizeof header;
    Elf64_Shdr first{};
    if (header.e_shoff != 0) {
        if (header.e_shentsize != sizeof(Elf64_Shdr))
            return bad("unexpected size of section headers");
        if (!end_of(header.e_shoff, sizeof first, limit, end) ||
            !reader.read(header.e_shoff, &first, sizeof first))
            return bad("section headers cannot be read");
    }
    const uint64_t count = header.e_shoff == 0   ? 0
                           : header.e_shnum != 0 ? header.e_shnum
                                                 : first.sh_size;
    if (count > kMaxSections || !end_of(header.e_shoff, count * sizeof(Elf64_Shdr), limit, end))
        return bad("too many sections");
    for (uint64_t i = 0; i < count; ++i) {
        Elf64_Shdr raw;
        if (!reader.read(header.e_shoff + i * sizeof raw, &raw, sizeof raw))
            return bad("section headers cannot be read");
        if (!has_bytes(raw.sh_type)) continue;
        if (!end_of(raw.sh_offset, raw.sh_size, limit, end))
            return bad("a section is larger than the limit");
    }
    if (header.e_phoff != 0 && header.e_phnum != 0) {
        if (header.e_phentsize != sizeof(Elf64_Phdr))
            return bad("unexpected size of program headers");
        if (!end_of(header.e_phoff, uint64_t{header.e_phnum} * sizeof(Elf64_Phdr), limit, end))
            return bad("program headers are beyond the limit");
        for (uint64_t i = 0; i < header.e_phnum; ++i) {
            Elf64_Phdr raw;
            if (!reader.read(header.e_phoff + i * sizeof raw, &raw, sizeof raw))
                return bad("program headers cannot be read");
            if (!end_of(raw.p_offset, raw.p_filesz, limit, end))
                return bad("a segment is larger than the limit");
        }
    }
    return end;
}

uint32_t cubin_arch(uint16_t machine, uint8_t abi_version, uint32_t flags) {
    if (machine != kMachineCuda) return 0;
    return abi_version >= kAbiCuda13 ? (flags >> 8) & 0xFF : flags & 0xFF;
}

}  // namespace ttt::image
