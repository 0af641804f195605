#include "corpus/modules.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <span>

#include "base/fd.h"
#include "image/image.h"

namespace ttt::corpus {
namespace {

namespace fs = std::filesystem;

class MappedFile {
  public:
    explicit MappedFile(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
        struct stat info {};
        if (!fd_.valid() || ::fstat(fd_.get(), &info) != 0 || info.st_size <= 0) return;
        size_ = static_cast<size_t>(info.st_size);
        void* at = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd_.get(), 0);
        data_ = at == MAP_FAILED ? nullptr : at;
    }
    ~MappedFile() {
        if (data_ != nullptr) ::munmap(data_, size_);
    }
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;
    std::span<const std::byte> bytes() const {
        if (data_ == nullptr) return {};
        return {static_cast<const std::byte*>(data_), size_};
    }

  private:
    Fd fd_;
    void* data_ = nullptr;
    size_t size_ = 0;
};

// True when `use` wants more.
Result<bool> walk(std::span<const std::byte> fatbin, uint32_t& index,
                  const std::function<bool(FoundModule&&)>& use) {
    TTT_TRY(const std::vector<image::Entry> entries, image::entries(fatbin));
    for (const image::Entry& entry : entries) {
        if (entry.kind != image::EntryKind::kPtx) continue;
        FoundModule found;
        found.index = index++;
        found.arch = entry.arch;
        TTT_TRY(found.text, image::contents(entry));
        if (!use(std::move(found))) return false;
    }
    return true;
}

bool has_fatbin(const std::string& path) {
    const MappedFile file(path);
    const auto found = image::fatbins_in_elf(file.bytes());
    return found.ok() && !found->empty();
}

}  // namespace

Status for_each_module(const std::string& library, const std::function<bool(FoundModule&&)>& use) {
    const MappedFile file(library);
    if (file.bytes().empty()) return make_error(Code::kIo, "cannot read " + library);
    TTT_TRY(const auto fatbins, image::fatbins_in_elf(file.bytes()));
    uint32_t index = 0;
    for (const auto& fatbin : fatbins) {
        TTT_TRY(const bool more, walk(fatbin, index, use));
        if (!more) break;
    }
    return ok_status();
}

std::vector<std::string> library_directories() {
    std::vector<std::string> directories;
    const auto add = [&](const char* base, const char* below) {
        std::error_code ignored;
        if (base == nullptr) return;
        const fs::path path = fs::path(base) / below;
        if (fs::is_directory(path, ignored)) directories.push_back(path.string());
    };
    add(std::getenv("TTT_CUDA_LIB"), "");
    add(std::getenv("CUDA_HOME"), "lib64");
    add("/usr/local/cuda", "lib64");
    return directories;
}

std::vector<std::string> toolkit_libraries() {
    std::map<std::string, std::string> by_name;
    std::error_code ignored;
    for (const std::string& directory : library_directories()) {
        for (const auto& entry : fs::directory_iterator(directory, ignored)) {
            const fs::path real = fs::canonical(entry.path(), ignored);
            if (ignored || real.filename().string().find(".so") == std::string::npos) continue;
            if (fs::is_regular_file(real, ignored))
                by_name.emplace(real.filename().string(), real.string());
        }
    }
    std::vector<std::string> libraries;
    for (const auto& [name, path] : by_name)
        if (has_fatbin(path)) libraries.push_back(path);
    return libraries;
}

std::string find_library(const std::string& file_name) {
    std::error_code ignored;
    for (const std::string& directory : library_directories()) {
        for (const auto& entry : fs::directory_iterator(directory, ignored)) {
            const fs::path real = fs::canonical(entry.path(), ignored);
            if (!ignored && real.filename() == file_name) return real.string();
        }
    }
    return {};
}

}  // namespace ttt::corpus
