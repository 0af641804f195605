#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <string>

#include "ipc/channel.h"

namespace ttt::ipc {
namespace {

Error io_error(const char* what) {
    return make_error(Code::kIo, std::string(what) + " failed, errno " + std::to_string(errno));
}

Status write_all(int fd, std::span<const std::byte> bytes) {
    size_t done = 0;
    while (done < bytes.size()) {
        const ssize_t n = ::write(fd, bytes.data() + done, bytes.size() - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return io_error("writing a memfd");
        done += static_cast<size_t>(n);
    }
    return ok_status();
}

}  // namespace

Result<Fd> make_memfd(const char* name, std::span<const std::byte> bytes) {
    Fd fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!fd.valid()) return io_error("memfd_create");
    TTT_CHECK_OK(write_all(fd.get(), bytes));
    if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) !=
        0)
        return io_error("sealing a memfd");
    return fd;
}

Result<std::vector<std::byte>> read_memfd(int fd, size_t limit) {
    struct stat st {};
    if (::fstat(fd, &st) != 0) return io_error("fstat of a memfd");
    if (!S_ISREG(st.st_mode)) return make_error(Code::kProtocol, "descriptor is not a memfd");
    const auto size = static_cast<uint64_t>(st.st_size);
    if (size > limit)
        return make_error(Code::kExhausted, "memfd of " + std::to_string(size) +
                                                " bytes is over the limit of " +
                                                std::to_string(limit));
    std::vector<std::byte> out(size);
    size_t done = 0;
    // pread, not mmap: a peer that shrinks the file must give a short read, not SIGBUS.
    while (done < out.size()) {
        const ssize_t n =
            ::pread(fd, out.data() + done, out.size() - done, static_cast<off_t>(done));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return make_error(Code::kProtocol, "memfd shorter than its size");
        done += static_cast<size_t>(n);
    }
    return out;
}

}  // namespace ttt::ipc
