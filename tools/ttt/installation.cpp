#include "installation.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace ttt::cli {
namespace {

namespace fs = std::filesystem;

std::string first_existing(std::initializer_list<fs::path> places) {
    std::error_code ignored;
    for (const auto& p : places)
        if (!p.empty() && fs::exists(p, ignored))
            return fs::absolute(p, ignored).lexically_normal().string();
    return {};
}

std::string folder_with_driver(const fs::path& folder) {
    std::error_code ignored;
    return fs::exists(folder / "libcuda.so.1", ignored) ? folder.lexically_normal().string()
                                                        : std::string{};
}

}  // namespace

std::string preload_problem(const Installation& here) {
    if (here.library.empty()) return "libttt.so is not beside ttt (../lib); set TTT_LIBRARY";
    if (here.library.find_first_of(" :") != std::string::npos)
        return "LD_PRELOAD cannot name " + here.library +
               ": move it to a folder without space or colon in its path";
    return "";
}

std::string environment(const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr ? value : "";
}

std::string prepend(const std::string& first, const std::string& rest) {
    return rest.empty() ? first : first + ":" + rest;
}

Installation find_installation() {
    std::error_code ignored;
    const fs::path bin = fs::read_symlink("/proc/self/exe", ignored).parent_path();
    Installation i;
    i.bin = bin.string();
    i.library =
        first_existing({environment("TTT_LIBRARY"), bin / "../lib/libttt.so", bin / "libttt.so"});
    i.tuner = first_existing({environment("TTT_TUNER"), bin / "ttt-tuner"});
    i.sandbox = first_existing({environment("TTT_SANDBOX"), bin / "ttt-sandbox"});
    i.kernel_loop = first_existing({bin / "ttt-kernel-loop"});
    i.bench_launch = first_existing({bin / "ttt-bench-launch"});
    i.emulator = folder_with_driver(bin / "../emulator");
    i.null_driver = folder_with_driver(bin / "../null");
    return i;
}

}  // namespace ttt::cli
