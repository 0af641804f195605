#include "image/foreign_memory.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/fd.h"

namespace ttt::image {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kPieces = 64;

// Sandboxes may forbid process_vm_readv; write(2) also answers EFAULT instead of raising a signal.
size_t read_through_pipe(uint64_t address, std::byte* out, size_t bytes) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return 0;
    const Fd reader(ends[0]);
    const Fd writer(ends[1]);
    size_t done = 0;
    while (done < bytes) {
        const size_t to_page_end = kPage - static_cast<size_t>((address + done) % kPage);
        const size_t want = std::min(bytes - done, to_page_end);
        const ssize_t put =
            ::write(writer.get(), reinterpret_cast<const void*>(address + done), want);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) break;
        for (ssize_t got = 0; got < put;) {
            const ssize_t n = ::read(reader.get(), out + done, static_cast<size_t>(put - got));
            if (n < 0 && errno == EINTR) continue;
            if (n <= 0) return done;
            got += n;
            done += static_cast<size_t>(n);
        }
    }
    return done;
}

// One call over page-aligned pieces: the kernel stops between pieces, so everything before a hole
// arrives.
ssize_t read_pieces(uint64_t address, std::byte* out, size_t bytes) {
    iovec remote[kPieces];
    size_t count = 0;
    size_t planned = 0;
    while (planned < bytes && count < kPieces) {
        const size_t to_page_end = kPage - static_cast<size_t>((address + planned) % kPage);
        // Middle pieces may be long: only the first must end on a page for the rest to be aligned.
        const size_t piece = std::min(bytes - planned, count == 0 ? to_page_end : kPage * 16);
        remote[count++] = {reinterpret_cast<void*>(address + planned), piece};
        planned += piece;
    }
    const iovec local{out, planned};
    return ::process_vm_readv(::getpid(), &local, 1, remote, count, 0);
}

}  // namespace

size_t read_foreign(uint64_t address, void* out, size_t bytes) {
    if (address == 0 || address + bytes < address) return 0;
    auto* const to = static_cast<std::byte*>(out);
    size_t done = 0;
    while (done < bytes) {
        const ssize_t n = read_pieces(address + done, to + done, bytes - done);
        if (n > 0) {
            done += static_cast<size_t>(n);
            continue;
        }
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno != EFAULT)
            return done + read_through_pipe(address + done, to + done, bytes - done);
        break;
    }
    return done;
}

}  // namespace ttt::image
