#include "session/allocations.h"

namespace ttt::session {

void Allocations::add(uint64_t base, uint64_t bytes, MemoryKind kind) {
    if (base == 0 || bytes == 0) return;
    const std::scoped_lock lock(mutex_);
    by_base_[base] = {base, bytes, kind};
    generation_.fetch_add(1, std::memory_order_release);
}

void Allocations::remove(uint64_t base) {
    const std::scoped_lock lock(mutex_);
    if (by_base_.erase(base) != 0) generation_.fetch_add(1, std::memory_order_release);
}

void Allocations::remove_range(uint64_t base, uint64_t bytes) {
    const std::scoped_lock lock(mutex_);
    auto it = by_base_.lower_bound(base);
    while (it != by_base_.end() && it->first < base + bytes) it = by_base_.erase(it);
    generation_.fetch_add(1, std::memory_order_release);
}

void Allocations::clear() {
    const std::scoped_lock lock(mutex_);
    by_base_.clear();
    generation_.fetch_add(1, std::memory_order_release);
}

bool Allocations::find(uint64_t address, Allocation* out) const {
    const std::scoped_lock lock(mutex_);
    auto it = by_base_.upper_bound(address);
    if (it == by_base_.begin()) return false;
    --it;
    if (address >= it->second.end()) return false;
    *out = it->second;
    return true;
}

size_t Allocations::size() const {
    const std::scoped_lock lock(mutex_);
    return by_base_.size();
}

}  // namespace ttt::session
