#include "corpus/modules.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
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

// Fat binaries anywhere in a file, not only in the sections meant for them: cuFFT keeps thousands
// in its data section, to be loaded one by one. Each starts with its magic number at a multiple of
// 8 and states its length.
class Fatbins {
  public:
    explicit Fatbins(std::span<const std::byte> file) : file_(file) {}

    // Next one at or after the position; empty at the end.
    std::span<const std::byte> next() {
        static constexpr unsigned char kMagic[] = {0x50, 0xED, 0x55, 0xBA, 1, 0, 16, 0};
        constexpr size_t kHeader = 16;
        while (at_ + kHeader <= file_.size()) {
            const void* found =
                ::memmem(file_.data() + at_, file_.size() - at_, kMagic, sizeof kMagic);
            if (found == nullptr) break;
            const auto offset =
                static_cast<size_t>(static_cast<const std::byte*>(found) - file_.data());
            at_ = offset + 1;
            uint64_t size = 0;
            if (offset % 8 != 0 || offset + kHeader > file_.size()) continue;
            std::memcpy(&size, file_.data() + offset + 8, sizeof size);
            if (size == 0 || size > file_.size() - offset - kHeader) continue;
            at_ = offset + kHeader + static_cast<size_t>(size);
            return file_.subspan(offset, kHeader + static_cast<size_t>(size));
        }
        return {};
    }

  private:
    std::span<const std::byte> file_;
    size_t at_ = 0;
};

bool has_fatbin(const std::string& path) {
    const MappedFile file(path);
    return image::classify(file.bytes()) == image::Kind::kElf &&
           !Fatbins(file.bytes()).next().empty();
}

}  // namespace

Status for_each_module(const std::string& library, const std::function<bool(FoundModule&&)>& use) {
    const MappedFile file(library);
    if (file.bytes().empty()) return make_error(Code::kIo, "cannot read " + library);
    Fatbins fatbins(file.bytes());
    uint32_t index = 0;
    for (auto fatbin = fatbins.next(); !fatbin.empty(); fatbin = fatbins.next()) {
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
