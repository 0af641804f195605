#include "emulator/device_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/sanitizer.h"

namespace ttt::emulator {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kDeviceAlign = 512;
constexpr uint64_t kGranularity = uint64_t{2} << 20;
constexpr uint64_t kTiB = uint64_t{1} << 40;

uint64_t round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }
std::byte* pointer(uint64_t address) { return reinterpret_cast<std::byte*>(address); }

// Lazily committed, so that a program may reserve as much as the real device has.
std::byte* map_anonymous(uint64_t bytes, uint64_t at) {
    const int flags =
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at != 0 ? MAP_FIXED_NOREPLACE : 0);
    void* memory = ::mmap(pointer(at), bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    if (at != 0 && memory != pointer(at)) {  // a kernel that does not know NOREPLACE
        ::munmap(memory, bytes);
        return nullptr;
    }
    return static_cast<std::byte*>(memory);
}

}  // namespace

bool AddressRanges::is_free(uint64_t address, uint64_t bytes) const {
    if (address < begin_ || bytes > end_ - begin_ || address > end_ - bytes) return false;
    const auto next = used_.lower_bound(address);
    if (next != used_.end() && next->first < address + bytes) return false;
    if (next == used_.begin()) return true;
    const auto previous = std::prev(next);
    return previous->first + previous->second <= address;
}

bool AddressRanges::take_at(uint64_t address, uint64_t bytes) {
    if (!is_free(address, bytes)) return false;
    used_[address] = bytes;
    return true;
}

uint64_t AddressRanges::take(uint64_t bytes, uint64_t align) {
    auto& same = recycled_[bytes];
    while (!same.empty()) {
        const uint64_t address = same.back();
        same.pop_back();
        if (address % align == 0 && take_at(address, bytes)) return address;
    }
    for (uint64_t at = round_up(next_, align); at < end_;) {
        if (take_at(at, bytes)) {
            next_ = at + bytes;
            return at;
        }
        const auto next = used_.upper_bound(at);
        const uint64_t blocker =
            next == used_.begin() || std::prev(next)->first + std::prev(next)->second <= at
                ? (next == used_.end() ? end_ : next->first + next->second)
                : std::prev(next)->first + std::prev(next)->second;
        at = round_up(blocker, align);
    }
    return 0;
}

void AddressRanges::give_back(uint64_t address) {
    const auto found = used_.find(address);
    if (found == used_.end()) return;
    recycled_[found->second].push_back(address);
    used_.erase(found);
}

DeviceMemory::DeviceMemory(uint64_t capacity)
    : device_(0x300000000000, 0x300000000000 + 16 * kTiB),
      shared_(0x200000000000, 0x200000000000 + 8 * kTiB),
      virtual_(0x400000000000, 0x400000000000 + 16 * kTiB),
      variables_(0x280000000000, 0x280000000000 + 8 * kTiB),
      aliases_(0x600000000000, 0x600000000000 + 8 * kTiB),
      capacity_(capacity) {}

CUresult DeviceMemory::add(Allocation allocation) {
    if (allocation.accessible) {
        ptx::AddressSpace::Allocation visible;
        visible.base = allocation.address;
        visible.size = allocation.bytes;
        visible.host = allocation.host;
        if (!space_.add(visible).ok()) return CUDA_ERROR_INVALID_VALUE;
    }
    allocation.id = next_id_++;
    table_[allocation.address] = allocation;
    return CUDA_SUCCESS;
}

CUresult DeviceMemory::allocate(Context* context, uint64_t bytes, uint64_t* address, void* pool) {
    if (bytes == 0 || address == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (bytes > capacity_ - std::min(used_, capacity_)) return CUDA_ERROR_OUT_OF_MEMORY;
    const uint64_t at = device_.take(round_up(bytes, kDeviceAlign) + kPage, kDeviceAlign);
    if (at == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    std::byte* host = map_anonymous(round_up(bytes, kPage), 0);
    if (host == nullptr) {
        device_.give_back(at);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    Allocation made;
    made.address = at;
    made.bytes = bytes;
    made.host = host;
    made.context = context;
    made.pool = pool;
    used_ += bytes;
    *address = at;
    return add(made);
}

CUresult DeviceMemory::allocate_shared(Context* context, Allocation::Kind kind, uint64_t bytes,
                                       uint64_t* address) {
    if (bytes == 0 || address == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (bytes > capacity_ - std::min(used_, capacity_)) return CUDA_ERROR_OUT_OF_MEMORY;
    const uint64_t mapped = round_up(bytes, kPage);
    uint64_t at = shared_.take(mapped + kPage, kPage);
    std::byte* host = at != 0 && !kThreadSanitized ? map_anonymous(mapped, at) : nullptr;
    if (host == nullptr) {  // taken, or not ours to map: anywhere, under an alias
        if (at != 0) shared_.give_back(at);
        host = map_anonymous(mapped, 0);
        if (host == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
        at = aliases_.take(mapped + kPage, kPage);
        by_host_[reinterpret_cast<uint64_t>(host)] = at;
    }
    Allocation made;
    made.kind = kind;
    made.address = at;
    made.bytes = bytes;
    made.host = host;
    made.host_address = reinterpret_cast<uint64_t>(host);
    made.context = context;
    used_ += kind == Allocation::Kind::kManaged ? bytes : 0;
    *address = reinterpret_cast<uint64_t>(host);
    return add(made);
}

CUresult DeviceMemory::register_host(Context* context, void* memory, uint64_t bytes) {
    const uint64_t host = reinterpret_cast<uint64_t>(memory);
    if (memory == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    const Allocation* known = find(host);
    if (known != nullptr) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    Allocation made;
    made.kind = Allocation::Kind::kRegistered;
    made.bytes = bytes;
    made.host = static_cast<std::byte*>(memory);
    made.host_address = host;
    made.context = context;
    made.address = aliases_.take(round_up(bytes, kPage) + kPage, kPage) + host % kPage;
    by_host_[host] = made.address;
    return add(made);
}

void DeviceMemory::drop(Table::iterator it) {
    Allocation& gone = it->second;
    if (gone.accessible) space_.remove(gone.address);
    if (gone.host_address != 0) by_host_.erase(gone.host_address);
    switch (gone.kind) {
        case Allocation::Kind::kDevice:
            used_ -= gone.bytes;
            ::munmap(gone.host, round_up(gone.bytes, kPage));
            device_.give_back(gone.address);
            break;
        case Allocation::Kind::kManaged:
            used_ -= gone.bytes;
            [[fallthrough]];
        case Allocation::Kind::kPinned:
            ::munmap(gone.host, round_up(gone.bytes, kPage));
            shared_.give_back(gone.address);
            aliases_.give_back(gone.address);
            break;
        case Allocation::Kind::kRegistered:
            aliases_.give_back(gone.address - gone.host_address % kPage);
            break;
        case Allocation::Kind::kMapped:
            ::munmap(gone.host, gone.bytes);
            break;
    }
    Physical* physical = gone.physical;
    table_.erase(it);
    if (physical != nullptr) release_mapping(physical);
}

CUresult DeviceMemory::free(uint64_t address, std::initializer_list<Allocation::Kind> kinds) {
    auto it = table_.find(address);
    if (it == table_.end()) {
        const auto alias = by_host_.find(address);
        if (alias == by_host_.end()) return CUDA_ERROR_INVALID_VALUE;
        it = table_.find(alias->second);
    }
    if (it == table_.end() ||
        std::find(kinds.begin(), kinds.end(), it->second.kind) == kinds.end()) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    drop(it);
    return CUDA_SUCCESS;
}

void DeviceMemory::free_context(const Context* context) {
    for (auto it = table_.begin(); it != table_.end();) {
        const auto next = std::next(it);
        if (it->second.context == context && it->second.kind != Allocation::Kind::kMapped) drop(it);
        it = next;
    }
}

CUresult DeviceMemory::create(uint64_t bytes, Physical** out) {
    if (bytes == 0 || bytes % kGranularity != 0) return CUDA_ERROR_INVALID_VALUE;
    if (bytes > capacity_ - std::min(used_, capacity_)) return CUDA_ERROR_OUT_OF_MEMORY;
    Fd fd(::memfd_create("ttt-emulated-memory", MFD_CLOEXEC));
    if (!fd.valid() || ::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    auto made = std::make_unique<Physical>();
    made->fd = std::move(fd);
    made->bytes = bytes;
    used_ += bytes;
    *out = physical_.emplace_back(std::move(made)).get();
    return CUDA_SUCCESS;
}

CUresult DeviceMemory::import(int fd, Physical** out) {
    struct stat info {};
    if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size <= 0 ||
        static_cast<uint64_t>(info.st_size) % kGranularity != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    Fd own(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
    if (!own.valid()) return CUDA_ERROR_OUT_OF_MEMORY;
    auto made = std::make_unique<Physical>();
    made->fd = std::move(own);
    made->bytes = static_cast<uint64_t>(info.st_size);
    used_ += made->bytes;
    *out = physical_.emplace_back(std::move(made)).get();
    return CUDA_SUCCESS;
}

bool DeviceMemory::owns(const Physical* physical) const {
    return std::any_of(physical_.begin(), physical_.end(),
                       [&](const auto& p) { return p.get() == physical && p->handles > 0; });
}

void DeviceMemory::release_handle(Physical* physical) {
    --physical->handles;
    drop_unused(physical);
}

void DeviceMemory::release_mapping(Physical* physical) {
    --physical->mappings;
    drop_unused(physical);
}

void DeviceMemory::drop_unused(Physical* physical) {
    if (physical->handles > 0 || physical->mappings > 0) return;
    used_ -= physical->bytes;
    std::erase_if(physical_, [&](const auto& p) { return p.get() == physical; });
}

CUresult DeviceMemory::reserve(uint64_t bytes, uint64_t align, uint64_t hint, uint64_t* address) {
    if (bytes == 0 || bytes % kGranularity != 0 || address == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    if ((align & (align - 1)) != 0) return CUDA_ERROR_INVALID_VALUE;
    align = std::max(align, kGranularity);
    // The hint is honoured wherever the range is free, ordinary allocations' addresses included:
    // replaying a launch at its original addresses depends on it.
    uint64_t at = 0;
    if (hint != 0 && hint % kPage == 0) {
        if (virtual_.take_at(hint, bytes) || device_.take_at(hint, bytes)) at = hint;
    }
    if (at == 0) at = virtual_.take(bytes, align);
    if (at == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    reservations_[at] = bytes;
    *address = at;
    return CUDA_SUCCESS;
}

CUresult DeviceMemory::unreserve(uint64_t address, uint64_t bytes) {
    const auto found = reservations_.find(address);
    if (found == reservations_.end() || found->second != bytes) return CUDA_ERROR_INVALID_VALUE;
    const auto mapped = table_.lower_bound(address);
    if (mapped != table_.end() && mapped->first < address + bytes) return CUDA_ERROR_INVALID_VALUE;
    virtual_.give_back(address);
    device_.give_back(address);
    reservations_.erase(found);
    return CUDA_SUCCESS;
}

CUresult DeviceMemory::map(Context* context, uint64_t address, uint64_t bytes, uint64_t offset,
                           Physical* physical) {
    auto range = reservations_.upper_bound(address);
    if (range == reservations_.begin()) return CUDA_ERROR_INVALID_VALUE;
    --range;
    const uint64_t into = address - range->first;
    if (bytes == 0 || into >= range->second || bytes > range->second - into ||
        offset % kPage != 0 || offset > physical->bytes || bytes > physical->bytes - offset) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const auto next = table_.lower_bound(address);
    if (next != table_.end() && next->first < address + bytes) return CUDA_ERROR_INVALID_VALUE;
    if (next != table_.begin() &&
        std::prev(next)->first + std::prev(next)->second.bytes > address) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    void* host = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, physical->fd.get(),
                        static_cast<off_t>(offset));
    if (host == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    Allocation made;
    made.kind = Allocation::Kind::kMapped;
    made.address = address;
    made.bytes = bytes;
    made.host = static_cast<std::byte*>(host);
    made.context = context;
    made.physical = physical;
    made.physical_offset = offset;
    made.accessible = false;
    ++physical->mappings;
    return add(made);
}

CUresult DeviceMemory::unmap(uint64_t address, uint64_t bytes) {
    const uint64_t end = address + bytes;
    uint64_t at = address;
    for (auto it = table_.find(address); it != table_.end() && at < end; ++it) {
        if (it->first != at || it->second.kind != Allocation::Kind::kMapped) break;
        at += it->second.bytes;
    }
    if (at != end || bytes == 0) return CUDA_ERROR_INVALID_VALUE;  // only whole mappings
    for (auto it = table_.find(address); it != table_.end() && it->first < end;) {
        const auto next = std::next(it);
        drop(it);
        it = next;
    }
    return CUDA_SUCCESS;
}

CUresult DeviceMemory::set_access(uint64_t address, uint64_t bytes, bool readable, bool writable) {
    const uint64_t end = address + bytes;
    uint64_t at = address;
    for (auto it = table_.find(address); it != table_.end() && at < end; ++it) {
        if (it->first != at || it->second.kind != Allocation::Kind::kMapped) break;
        at += it->second.bytes;
    }
    if (at != end || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    for (auto it = table_.find(address); it != table_.end() && it->first < end; ++it) {
        Allocation& mapped = it->second;
        if (mapped.accessible) space_.remove(mapped.address);
        mapped.accessible = readable || writable;
        if (!mapped.accessible) continue;
        ptx::AddressSpace::Allocation visible;
        visible.base = mapped.address;
        visible.size = mapped.bytes;
        visible.host = mapped.host;
        visible.readable = readable;
        visible.writable = writable;
        if (!space_.add(visible).ok()) return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

const Allocation* DeviceMemory::find(uint64_t address) const {
    auto it = table_.upper_bound(address);
    if (it != table_.begin()) {
        --it;
        if (address - it->first < it->second.bytes) return &it->second;
    }
    auto alias = by_host_.upper_bound(address);
    if (alias == by_host_.begin()) return nullptr;
    --alias;
    const auto found = table_.find(alias->second);
    if (found == table_.end() || address - alias->first >= found->second.bytes) return nullptr;
    return &found->second;
}

bool DeviceMemory::reachable(uint64_t address, uint64_t bytes, bool write) const {
    while (bytes > 0) {
        const auto* piece = space_.find(address);
        if (piece == nullptr) return false;
        // Constant variables are read-only for kernels only; a mapping is read-only for copies too.
        const bool ours = find(address) != nullptr;
        if (ours && (write ? !piece->writable : !piece->readable)) return false;
        const uint64_t here = std::min(bytes, piece->base + piece->size - address);
        address += here;
        bytes -= here;
    }
    return true;
}

bool DeviceMemory::copy(uint64_t to, uint64_t from, uint64_t bytes) {
    const bool to_device = is_device(to), from_device = is_device(from);
    if ((to_device && !reachable(to, bytes, true)) ||
        (from_device && !reachable(from, bytes, false))) {
        return false;
    }
    while (bytes > 0) {  // adjacent mappings are one range to the program, but not to us
        uint64_t here = bytes;
        std::byte* target = pointer(to);
        const std::byte* source = pointer(from);
        if (to_device) {
            const auto* piece = space_.find(to);
            here = std::min(here, piece->base + piece->size - to);
            target = piece->host + (to - piece->base);
        }
        if (from_device) {
            const auto* piece = space_.find(from);
            here = std::min(here, piece->base + piece->size - from);
            source = piece->host + (from - piece->base);
        }
        std::memmove(target, source, here);
        to += here;
        from += here;
        bytes -= here;
    }
    return true;
}

bool DeviceMemory::fill(uint64_t to, uint32_t value, unsigned value_bytes, uint64_t count) {
    uint64_t bytes = count * value_bytes;
    if (!reachable(to, bytes, true)) return false;
    while (bytes > 0) {
        const auto* piece = space_.find(to);
        const uint64_t here = std::min(bytes, piece->base + piece->size - to);
        std::byte* target = piece->host + (to - piece->base);
        if (value_bytes == 1) {
            std::memset(target, static_cast<int>(value & 0xFF), here);
        } else {
            for (uint64_t i = 0; i < here; i += value_bytes)
                std::memcpy(target + i, &value, value_bytes);
        }
        to += here;
        bytes -= here;
    }
    return true;
}

uint64_t DeviceMemory::variable_base(uint64_t bytes) {
    return variables_.take(round_up(bytes, kGranularity), kGranularity);
}

}  // namespace ttt::emulator
