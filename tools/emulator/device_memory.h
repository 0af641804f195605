// Memory of the emulated GPU: device addresses, the host bytes behind them, and what programs may
// ask about them. Device allocations lie at addresses that are not mapped in the process, so a
// program that dereferences one crashes as it would on hardware; pinned and managed memory has the
// same address on both sides. Every allocation is followed by an unused page, so an overrun is a
// fault. Callers hold the call lock.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/fd.h"
#include "ptx/interpreter.h"

namespace ttt::emulator {

struct Context;

// Hands out address ranges; the most recently freed range of a size is reused first, as allocators
// on hardware do.
class AddressRanges {
  public:
    AddressRanges(uint64_t begin, uint64_t end) : begin_(begin), end_(end), next_(begin) {}
    uint64_t take(uint64_t bytes, uint64_t align);  // 0 when exhausted
    bool take_at(uint64_t address, uint64_t bytes);
    void give_back(uint64_t address);

  private:
    bool is_free(uint64_t address, uint64_t bytes) const;
    uint64_t begin_, end_, next_;
    std::map<uint64_t, uint64_t> used_;
    std::unordered_map<uint64_t, std::vector<uint64_t>> recycled_;
};

// Bytes of a cuMemCreate allocation: shared memory, so that another process can map them.
struct Physical {
    Fd fd;
    uint64_t bytes = 0;
    int handles = 1, mappings = 0;
};

struct Allocation {
    enum class Kind : uint8_t { kDevice, kPinned, kRegistered, kManaged, kMapped };
    Kind kind = Kind::kDevice;
    uint64_t address = 0, bytes = 0;
    std::byte* host = nullptr;
    uint64_t host_address = 0;  // where the program sees it; 0 for device memory
    Context* context = nullptr;
    uint64_t id = 0;  // unique for the life of the process
    Physical* physical = nullptr;
    uint64_t physical_offset = 0;
    bool accessible = true;  // kMapped: cuMemSetAccess has been called
    void* pool = nullptr;
};

class DeviceMemory {
  public:
    explicit DeviceMemory(uint64_t capacity);

    CUresult allocate(Context* context, uint64_t bytes, uint64_t* address, void* pool = nullptr);
    CUresult allocate_shared(Context* context, Allocation::Kind kind, uint64_t bytes,
                             uint64_t* address);
    CUresult register_host(Context* context, void* pointer, uint64_t bytes);
    CUresult free(uint64_t address, std::initializer_list<Allocation::Kind> kinds);
    void free_context(const Context* context);

    CUresult create(uint64_t bytes, Physical** out);
    CUresult import(int fd, Physical** out);
    bool owns(const Physical* physical) const;  // as a handle that has not been released
    void release_handle(Physical* physical);
    void release_mapping(Physical* physical);
    CUresult reserve(uint64_t bytes, uint64_t align, uint64_t hint, uint64_t* address);
    CUresult unreserve(uint64_t address, uint64_t bytes);
    CUresult map(Context* context, uint64_t address, uint64_t bytes, uint64_t offset,
                 Physical* physical);
    CUresult unmap(uint64_t address, uint64_t bytes);
    CUresult set_access(uint64_t address, uint64_t bytes, bool readable, bool writable);

    // The allocation that holds `address` (device or, for pinned memory, host address), or nullptr.
    const Allocation* find(uint64_t address) const;
    bool is_device(uint64_t address) const { return space_.find(address) != nullptr; }
    // Copies between any two addresses; what is no device address is taken as a host pointer. False
    // when a device range is not fully accessible (nothing is copied then).
    bool copy(uint64_t to, uint64_t from, uint64_t bytes);
    bool fill(uint64_t to, uint32_t value, unsigned value_bytes, uint64_t count);
    // Address range for a module's variables.
    uint64_t variable_base(uint64_t bytes);
    void release_variables(uint64_t base) { variables_.give_back(base); }

    ptx::AddressSpace& space() { return space_; }
    uint64_t capacity() const { return capacity_; }
    uint64_t used() const { return used_; }

  private:
    using Table = std::map<uint64_t, Allocation>;
    void drop_unused(Physical* physical);
    bool reachable(uint64_t address, uint64_t bytes, bool write) const;
    CUresult add(Allocation allocation);
    void drop(Table::iterator it);
    Table::iterator mapped_at(uint64_t address);

    ptx::AddressSpace space_;
    AddressRanges device_, shared_, virtual_, variables_, aliases_;
    Table table_;                           // by device address
    std::map<uint64_t, uint64_t> by_host_;  // registered memory whose device address differs
    std::map<uint64_t, uint64_t> reservations_;
    std::vector<std::unique_ptr<Physical>> physical_;
    uint64_t capacity_, used_ = 0, next_id_ = 1;
};

}  // namespace ttt::emulator
