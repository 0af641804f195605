// Sections of a little-endian ELF64 file. Internal to runtime/image. Trusts no offset in the file.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "image/bytes.h"

namespace ttt::image {

struct Section {
    std::string_view name;
    uint32_t type = 0, link = 0, info = 0;
    uint64_t flags = 0, size = 0, file_offset = 0;
    Bytes data;  // empty for sections without bytes in the file
};

struct ElfFile {
    uint16_t machine = 0;
    uint8_t os_abi = 0, abi_version = 0;
    uint32_t flags = 0;
    std::vector<Section> sections;
    const Section* find(std::string_view name) const;
};

Result<ElfFile> read_elf(Bytes bytes);

// Length of an ELF image by its headers alone: the furthest byte that a header, section or segment
// names. `read` fetches bytes at an offset and returns false when it cannot; used on memory of
// unknown length.
struct ElfReader {
    virtual bool read(uint64_t offset, void* out, uint64_t bytes) = 0;

  protected:
    ~ElfReader() = default;
};
Result<uint64_t> elf_length(ElfReader& reader, uint64_t limit);

// 90 for sm_90; 0 when the file is no cubin.
uint32_t cubin_arch(uint16_t machine, uint8_t abi_version, uint32_t flags);

}  // namespace ttt::image
