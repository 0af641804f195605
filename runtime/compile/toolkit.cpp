#include "compile/toolkit.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace ttt::compile {
namespace {

namespace fs = std::filesystem;

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? std::string() : std::string(value);
}

// A toolkit's own folder names, and those inside the wheels' nvidia/ folder.
constexpr const char* kToolkitLibraryFolders[] = {"lib64", "lib", "targets/x86_64-linux/lib",
                                                  "targets/sbsa-linux/lib",
                                                  "targets/aarch64-linux/lib"};
constexpr const char* kWheelLibraryFolders[] = {"nvidia/nvjitlink/lib", "nvidia/cu13/lib",
                                                "nvidia/cu12/lib"};
constexpr const char* kWheelProgramFolders[] = {"nvidia/cuda_nvcc/bin", "nvidia/cu13/bin",
                                                "nvidia/cu12/bin"};
constexpr const char* kLibraryNames[] = {"libnvJitLink.so.13", "libnvJitLink.so.12"};
constexpr const char* kSystemFolders[] = {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
                                          "/usr/lib64", "/usr/lib"};

bool is_file(const fs::path& path) {
    std::error_code ignored;
    return fs::is_regular_file(path, ignored);
}

void add_file(const fs::path& path, std::vector<std::string>& out) {
    if (is_file(path) && std::find(out.begin(), out.end(), path.string()) == out.end())
        out.push_back(path.string());
}

void add_libraries(const fs::path& folder, std::vector<std::string>& out) {
    for (const char* name : kLibraryNames) add_file(folder / name, out);
}

// Subfolders of `folder`, sorted downwards so that newer versions come first.
std::vector<fs::path> children(const fs::path& folder, std::string_view prefix) {
    std::vector<fs::path> out;
    std::error_code error;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
        if (it->path().filename().string().substr(0, prefix.size()) == prefix)
            out.push_back(it->path());
    std::sort(out.rbegin(), out.rend());
    return out;
}

void add_site_packages(const fs::path& prefix, std::vector<fs::path>& out) {
    for (const char* lib : {"lib", "lib64"})
        for (const auto& python : children(prefix / lib, "python"))
            for (const char* name : {"site-packages", "dist-packages"}) {
                std::error_code ignored;
                if (fs::is_directory(python / name / "nvidia", ignored))
                    out.push_back(python / name);
            }
}

std::vector<fs::path> path_folders() {
    std::vector<fs::path> out;
    const std::string path = variable("PATH");
    for (size_t from = 0; from <= path.size();) {
        const size_t end = std::min(path.find(':', from), path.size());
        if (end > from) out.emplace_back(path.substr(from, end - from));
        from = end + 1;
    }
    return out;
}

std::vector<fs::path> wheel_folders() {
    std::vector<fs::path> out;
    for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"})
        if (const std::string value = variable(name); !value.empty()) add_site_packages(value, out);
    for (const auto& folder : path_folders())
        if (is_file(folder / "python3")) add_site_packages(folder.parent_path(), out);
    if (const std::string home = variable("HOME"); !home.empty())
        add_site_packages(fs::path(home) / ".local", out);
    for (const char* prefix : {"/usr/local", "/usr"}) add_site_packages(prefix, out);
    return out;
}

std::vector<fs::path> toolkit_folders() {
    std::vector<fs::path> out;
    for (const char* name : {"TTT_CUDA_HOME", "CUDA_HOME", "CUDA_PATH"})
        if (const std::string value = variable(name); !value.empty()) out.emplace_back(value);
    out.emplace_back("/usr/local/cuda");
    for (const auto& versioned : children("/usr/local", "cuda-")) out.push_back(versioned);
    return out;
}

void add_from_toolkit(const fs::path& home, bool library, std::vector<std::string>& out) {
    if (library) {
        for (const char* folder : kToolkitLibraryFolders) add_libraries(home / folder, out);
        for (const char* folder : kWheelLibraryFolders) add_libraries(home / folder, out);
        add_libraries(home, out);
    } else {
        add_file(home / "bin" / "ptxas", out);
        for (const char* folder : kWheelProgramFolders) add_file(home / folder / "ptxas", out);
        add_file(home / "ptxas", out);
    }
}

// What the user named, and nothing else if it holds the file.
std::vector<std::string> named(std::string_view cuda_home, bool library) {
    std::vector<std::string> out;
    if (!cuda_home.empty()) add_from_toolkit(fs::path(cuda_home), library, out);
    return out;
}

std::vector<std::string> search(bool library) {
    std::vector<std::string> out;
    for (const auto& home : toolkit_folders()) add_from_toolkit(home, library, out);
    if (library)
        for (const char* folder : kSystemFolders) add_libraries(folder, out);
    for (const auto& site : wheel_folders()) add_from_toolkit(site, library, out);
    return out;
}

}  // namespace

std::vector<std::string> find_nvjitlink(std::string_view cuda_home) {
    if (auto out = named(cuda_home, true); !out.empty()) return out;
    std::vector<std::string> out = search(true);
    // The dynamic loader knows more places (ldconfig, LD_LIBRARY_PATH).
    for (const char* name : kLibraryNames) out.emplace_back(name);
    return out;
}

std::vector<std::string> find_ptxas(std::string_view cuda_home) {
    if (auto out = named(cuda_home, false); !out.empty()) return out;
    std::vector<std::string> out = search(false);
    for (const auto& folder : path_folders()) add_file(folder / "ptxas", out);
    return out;
}

}  // namespace ttt::compile
