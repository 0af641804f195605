// The corpus list: which modules of the installed libraries a test reads, drawn by seed so that
// nobody chose them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/hash.h"
#include "corpus/modules.h"

namespace ttt::corpus {

struct Listed {
    std::string file;    // name of the library
    uint32_t index = 0;  // FoundModule::index
    uint32_t arch = 0;
    uint32_t version = 0;  // of the language, 87 for 8.7; not in the list's text
    uint64_t bytes = 0;
    Hash128 hash;  // of the text: another toolkit release has other modules under the same index
    std::vector<std::string> entries;
};

Listed describe(const std::string& library, const FoundModule& module);

// "library index arch bytes hash entry,entry,…"
std::string to_line(const Listed& row);
// False on a line that is no row (empty, comment, damaged).
bool from_line(const std::string& line, Listed& row);

// Rows of a list file; lines that are none are left out, so an unreadable file gives an empty list.
std::vector<Listed> read_list(const std::string& path);

struct Sample {
    std::string name;  // "libcufft.so.12.0.0.61 17"
    std::string text;
    size_t entries = 0;
};
// Texts of the rows that this machine has, by library. `missing` becomes the number of listed
// entries whose library is not installed or of another release.
Result<std::vector<Sample>> load(const std::vector<Listed>& rows, size_t& missing);

// Modules in the order of a seeded shuffle, small ones only (the assembler is slow), no library
// over a fair share, each text once, until `count` entries are in.
Result<std::vector<Listed>> draw(uint64_t seed, uint64_t count);

}  // namespace ttt::corpus
