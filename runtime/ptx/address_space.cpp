#include <fmt/format.h>

#include <algorithm>

#include "ptx/interpreter.h"

namespace ttt::ptx {
namespace {

bool overlaps_window(uint64_t begin, uint64_t end, uint64_t window) {
    return begin < window + kWindowBytes && window < end;
}

}  // namespace

Status AddressSpace::add(Allocation allocation) {
    const uint64_t end = allocation.base + allocation.size;
    if (allocation.size == 0 || end < allocation.base)
        return make_error(Code::kInvalidArgument,
                          fmt::format("allocation of {} bytes at 0x{:x} has no valid extent",
                                      allocation.size, allocation.base));
    for (uint64_t window : {kParamWindow, kLocalWindow, kSharedWindow})
        if (overlaps_window(allocation.base, end, window))
            return make_error(
                Code::kInvalidArgument,
                fmt::format("allocation at 0x{:x} lies in a reserved window of generic addresses",
                            allocation.base));
    const auto next =
        std::upper_bound(sorted_.begin(), sorted_.end(), allocation.base,
                         [](uint64_t base, const Allocation& a) { return base < a.base; });
    const bool hits_next = next != sorted_.end() && next->base < end;
    const bool hits_previous =
        next != sorted_.begin() && std::prev(next)->base + std::prev(next)->size > allocation.base;
    if (hits_next || hits_previous)
        return make_error(Code::kInvalidArgument,
                          fmt::format("allocation of {} bytes at 0x{:x} overlaps another",
                                      allocation.size, allocation.base));
    sorted_.insert(next, allocation);
    return ok_status();
}

bool AddressSpace::remove(uint64_t base) {
    const auto it = std::lower_bound(sorted_.begin(), sorted_.end(), base,
                                     [](const Allocation& a, uint64_t b) { return a.base < b; });
    if (it == sorted_.end() || it->base != base) return false;
    sorted_.erase(it);
    return true;
}

const AddressSpace::Allocation* AddressSpace::find(uint64_t address, uint64_t bytes) const {
    auto it = std::upper_bound(sorted_.begin(), sorted_.end(), address,
                               [](uint64_t a, const Allocation& b) { return a < b.base; });
    if (it == sorted_.begin()) return nullptr;
    --it;
    const uint64_t offset = address - it->base;
    return offset < it->size && bytes <= it->size - offset ? &*it : nullptr;
}

}  // namespace ttt::ptx
