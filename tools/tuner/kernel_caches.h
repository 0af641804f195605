// Kernel caches that compilers keep on disk with PTX beside the machine code: Triton's and
// TorchInductor's. A module is found there by its bytes.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ttt::tuner {

struct CachedPtx {
    std::string ptx;
    std::filesystem::path file;  // of the PTX
};

// Folders from the environment of the program (TRITON_CACHE_DIR, TRITON_HOME,
// TORCHINDUCTOR_CACHE_DIR, HOME), else where these compilers keep them by default. Missing ones are
// left out.
std::vector<std::filesystem::path> kernel_cache_folders();

// Text of NAME.ptx where NAME.cubin beside it holds exactly these bytes; nullopt when no folder has
// it. Reads at most 100,000 directory entries in all and four levels deep; unreadable ones are
// passed over.
std::optional<CachedPtx> find_in_caches(std::span<const std::byte> cubin,
                                        const std::vector<std::filesystem::path>& folders);

}  // namespace ttt::tuner
