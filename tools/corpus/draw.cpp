#include "corpus/draw.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <tuple>

#include "ptx/ir.h"

namespace ttt::corpus {
namespace {

// Assembling takes about 0.1 s plus 0.1 s per 20 KB; larger texts are left to the slow fixpoint
// test.
constexpr uint64_t kMaxBytesPerEntry = 10'000;
constexpr uint64_t kMaxBytes = 100'000;

// The assembler of CUDA 13 knows nothing older.
constexpr uint32_t kOldestArch = 75;
constexpr uint32_t kNewestVersion = 90;  // cuDNN of a later toolkit may lie in the same folder

bool small_enough(const Listed& row) {
    return row.arch >= kOldestArch && row.version <= kNewestVersion && !row.entries.empty() &&
           row.bytes <= kMaxBytes && row.bytes / row.entries.size() <= kMaxBytesPerEntry;
}

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

Result<std::vector<Listed>> candidates(size_t& libraries) {
    std::vector<Listed> rows;
    std::set<Hash128> seen;
    std::set<std::string> names;
    for (const std::string& path : toolkit_libraries()) {
        const Status status = for_each_module(path, [&](FoundModule&& m) {
            if (m.text.size() > kMaxBytes) return true;
            Listed row = describe(base_name(path), m);
            if (!small_enough(row) || !seen.insert(row.hash).second) return true;
            names.insert(row.file);
            rows.push_back(std::move(row));
            return true;
        });
        if (!status.ok()) return status.error();
    }
    libraries = names.size();
    return rows;
}

bool is_hash(const std::string& text) {
    return text.size() == 32 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

Listed describe(const std::string& library, const FoundModule& found) {
    Listed row;
    row.file = library;
    row.index = found.index;
    row.arch = found.arch;
    row.bytes = found.text.size();
    row.hash = hash_text(found.text);
    const auto module = ptx::parse(found.text);
    if (!module.ok()) return row;
    row.version = module->version_major * 10 + module->version_minor;
    for (const ptx::Function& f : module->functions)
        if (f.is_entry && f.has_body) row.entries.emplace_back(f.name);
    return row;
}

std::string to_line(const Listed& row) {
    std::string line = row.file + " " + std::to_string(row.index) + " " + std::to_string(row.arch) +
                       " " + std::to_string(row.bytes) + " " + row.hash.hex() + " ";
    for (size_t i = 0; i < row.entries.size(); ++i) line += (i > 0 ? "," : "") + row.entries[i];
    return line;
}

bool from_line(const std::string& line, Listed& row) {
    std::istringstream in(line);
    std::string hash, entries;
    if (line.empty() || line[0] == '#') return false;
    if (!(in >> row.file >> row.index >> row.arch >> row.bytes >> hash >> entries)) return false;
    if (!is_hash(hash)) return false;
    row.hash = {std::stoull(hash.substr(0, 16), nullptr, 16),
                std::stoull(hash.substr(16), nullptr, 16)};
    row.entries.clear();
    std::istringstream names(entries);
    for (std::string name; std::getline(names, name, ',');) row.entries.push_back(name);
    return true;
}

std::vector<Listed> read_list(const std::string& path) {
    std::ifstream in(path);
    std::vector<Listed> rows;
    Listed row;
    for (std::string line; std::getline(in, line);)
        if (from_line(line, row)) rows.push_back(row);
    return rows;
}

Result<std::vector<Sample>> load(const std::vector<Listed>& rows, size_t& missing) {
    std::map<std::string, std::map<uint32_t, const Listed*>> wanted;
    for (const Listed& row : rows) wanted[row.file][row.index] = &row;
    std::vector<Sample> samples;
    missing = 0;
    for (const auto& [library, modules] : wanted) {
        for (const auto& [index, row] : modules) missing += row->entries.size();
        const std::string path = find_library(library);
        if (path.empty()) continue;
        size_t found = 0;
        TTT_CHECK_OK(for_each_module(path, [&, &name = library, &of = modules](FoundModule&& m) {
            const auto it = of.find(m.index);
            if (it == of.end() || hash_text(m.text) != it->second->hash) return true;
            const size_t entries = it->second->entries.size();
            missing -= entries;
            samples.push_back({name + " " + std::to_string(m.index), std::move(m.text), entries});
            return ++found < of.size();
        }));
    }
    return samples;
}

Result<std::vector<Listed>> draw(uint64_t seed, uint64_t count) {
    size_t libraries = 0;
    TTT_TRY(std::vector<Listed> rows, candidates(libraries));
    if (rows.empty())
        return make_error(Code::kNotFound, "no toolkit library with PTX is installed");
    for (size_t i = rows.size(); i > 1; --i) std::swap(rows[i - 1], rows[splitmix64(seed + i) % i]);
    const uint64_t share = 2 * count / libraries + 1;
    std::map<std::string, uint64_t> taken;
    std::vector<Listed> drawn;
    uint64_t entries = 0;
    for (Listed& row : rows) {
        if (entries >= count) break;
        uint64_t& of_library = taken[row.file];
        if (of_library + row.entries.size() > share) continue;
        of_library += row.entries.size();
        entries += row.entries.size();
        drawn.push_back(std::move(row));
    }
    std::sort(drawn.begin(), drawn.end(), [](const Listed& a, const Listed& b) {
        return std::tie(a.file, a.index) < std::tie(b.file, b.index);
    });
    return drawn;
}

}  // namespace ttt::corpus
