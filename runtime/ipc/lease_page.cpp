#include "ipc/lease_page.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <new>
#include <utility>

namespace ttt::ipc {
namespace {
constexpr size_t kBytes = 4096;
static_assert(sizeof(LeaseWords) <= kBytes);
}  // namespace

Result<LeasePage> LeasePage::create(int lowest) {
    LeasePage page;
    const Fd made(::memfd_create("ttt-lease", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    page.fd_ = Fd(::fcntl(made.get(), F_DUPFD_CLOEXEC, lowest));
    // Sealed, so that no process can make another's mapping fault by cutting the file.
    if (!page.fd_.valid() || ::ftruncate(page.fd_.get(), kBytes) != 0 ||
        ::fcntl(page.fd_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        return make_error(Code::kIo, "cannot make the lease page");
    TTT_CHECK_OK(page.attach());
    new (page.words_) LeaseWords;
    return page;
}

Result<LeasePage> LeasePage::map(Fd fd) {
    LeasePage page;
    struct stat st {};
    if (!fd.valid() || ::fstat(fd.get(), &st) != 0 || st.st_size != static_cast<off_t>(kBytes))
        return make_error(Code::kProtocol, "no lease page");
    const int seals = ::fcntl(fd.get(), F_GET_SEALS);
    if (seals < 0 || (seals & F_SEAL_SHRINK) == 0)
        return make_error(Code::kProtocol, "a lease page that could be cut");
    page.fd_ = std::move(fd);
    TTT_CHECK_OK(page.attach());
    return page;
}

Status LeasePage::attach() {
    void* at = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
    if (at == MAP_FAILED) return make_error(Code::kIo, "cannot map the lease page");
    words_ = static_cast<LeaseWords*>(at);
    return ok_status();
}

LeasePage& LeasePage::operator=(LeasePage&& other) noexcept {
    if (this == &other) return *this;
    if (words_ != nullptr) ::munmap(words_, kBytes);
    fd_ = std::move(other.fd_);
    words_ = std::exchange(other.words_, nullptr);
    return *this;
}

LeasePage::~LeasePage() {
    if (words_ != nullptr) ::munmap(words_, kBytes);
}

bool LeasePage::granted(std::chrono::nanoseconds work) const {
    // The session clears `until` before it clears `busy`, so a quiet word read first cannot be
    // followed by an `until` from before the arrival.
    if (words_->busy.load(std::memory_order_acquire) != 0) return false;
    const uint64_t until = words_->until_ns.load(std::memory_order_acquire);
    const uint64_t beat = words_->beat_ns.load(std::memory_order_relaxed);
    const uint64_t now = lease_clock_ns();
    const auto stale = static_cast<uint64_t>(std::chrono::nanoseconds(kStale).count());
    if (now > beat && now - beat > stale) return false;
    return until > now && static_cast<uint64_t>(work.count()) <= until - now;
}

void LeasePage::begin_proof() const {
    words_->proofs.store((words_->proofs.load(std::memory_order_relaxed) + 1) | 1,
                         std::memory_order_release);
}

void LeasePage::end_proof() const {
    words_->proofs.store((words_->proofs.load(std::memory_order_relaxed) + 1) & ~uint64_t{1},
                         std::memory_order_release);
}

}  // namespace ttt::ipc
