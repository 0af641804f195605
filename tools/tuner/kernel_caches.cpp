#include "tuner/kernel_caches.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>

namespace ttt::tuner {
namespace {

namespace fs = std::filesystem;
constexpr size_t kMostEntries = 100'000;
constexpr int kDepth = 4;  // TorchInductor: folder/triton/device/hash/kernel.cubin
constexpr uintmax_t kLargestPtx = 64u << 20;

std::string variable(const char* name) {
    const char* v = std::getenv(name);
    return v != nullptr ? v : "";
}

std::string user() {
    if (const auto name = variable("USER"); !name.empty()) return name;
    const passwd* p = getpwuid(getuid());
    return p != nullptr ? p->pw_name : "";
}

std::optional<std::string> read(const fs::path& file, uintmax_t limit) {
    std::error_code ec;
    if (!fs::is_regular_file(file, ec) || fs::file_size(file, ec) > limit || ec)
        return std::nullopt;
    std::ifstream in(file, std::ios::binary);
    std::string text(std::istreambuf_iterator<char>(in), {});
    return in.bad() ? std::nullopt : std::optional(std::move(text));
}

bool holds(const fs::directory_entry& entry, std::span<const std::byte> bytes) {
    std::error_code ec;
    if (entry.path().extension() != ".cubin" || entry.file_size(ec) != bytes.size() || ec)
        return false;
    const auto text = read(entry.path(), bytes.size());
    return text && std::ranges::equal(std::as_bytes(std::span(*text)), bytes);
}

}  // namespace

std::vector<fs::path> kernel_cache_folders() {
    std::vector<fs::path> wanted;
    std::error_code ec;  // a folder that is not there is left out at the end
    const std::string home = variable("HOME");
    if (const auto d = variable("TRITON_CACHE_DIR"); !d.empty())
        wanted.emplace_back(d);
    else if (const auto t = variable("TRITON_HOME"); !t.empty())
        wanted.emplace_back(fs::path(t) / ".triton" / "cache");
    else if (!home.empty())
        wanted.emplace_back(fs::path(home) / ".triton" / "cache");
    if (const auto d = variable("TORCHINDUCTOR_CACHE_DIR"); !d.empty())
        wanted.emplace_back(d);
    else if (const auto u = user(); !u.empty())
        wanted.emplace_back(fs::temp_directory_path(ec) / ("torchinductor_" + u));
    std::erase_if(wanted, [&](const fs::path& p) { return !fs::is_directory(p, ec); });
    return wanted;
}

std::optional<CachedPtx> find_in_caches(std::span<const std::byte> cubin,
                                        const std::vector<fs::path>& folders) {
    size_t seen = 0;
    for (const fs::path& folder : folders) {
        std::error_code ec;
        fs::recursive_directory_iterator it(folder, fs::directory_options::skip_permission_denied,
                                            ec);
        for (; !ec && it != fs::recursive_directory_iterator(); it.increment(ec)) {
            if (++seen > kMostEntries) return std::nullopt;
            if (it.depth() >= kDepth) it.disable_recursion_pending();
            if (!holds(*it, cubin)) continue;
            fs::path file = it->path();
            file.replace_extension(".ptx");
            if (auto text = read(file, kLargestPtx))
                return CachedPtx{std::move(*text), std::move(file)};
        }
    }
    return std::nullopt;
}

}  // namespace ttt::tuner
