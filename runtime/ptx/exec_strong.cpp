// Loads, stores and fences that PTX's memory model calls strong (volatile, relaxed, acquire,
// release): blocks on other host threads may use the same bytes at the same time, so the host must
// keep the order too. Weak accesses (exec_memory.cpp) have none to keep.
#include <algorithm>
#include <atomic>

#include "ptx/exec_memory.h"

namespace ttt::ptx::exec {
namespace {

constexpr uint32_t kCell = 8;  // bytes; wider elements are moved cell by cell

// Memory that the host holds misaligned cannot be accessed atomically.
template <typename T>
bool aligned(const std::byte* p) {
    return reinterpret_cast<uintptr_t>(p) % std::atomic_ref<T>::required_alignment == 0;
}

template <typename T>
uint64_t read_as(std::byte* p, std::memory_order order) {
    if (aligned<T>(p)) return std::atomic_ref<T>(*reinterpret_cast<T*>(p)).load(order);
    T value;
    std::memcpy(&value, p, sizeof value);
    return value;
}

template <typename T>
void write_as(std::byte* p, uint64_t bits, std::memory_order order) {
    const auto value = static_cast<T>(bits);
    if (aligned<T>(p)) return std::atomic_ref<T>(*reinterpret_cast<T*>(p)).store(value, order);
    std::memcpy(p, &value, sizeof value);
}

uint64_t read_cell(std::byte* p, uint32_t bytes, std::memory_order order) {
    switch (bytes) {
        case 1:
            return read_as<uint8_t>(p, order);
        case 2:
            return read_as<uint16_t>(p, order);
        case 4:
            return read_as<uint32_t>(p, order);
        default:
            return read_as<uint64_t>(p, order);
    }
}

void write_cell(std::byte* p, uint32_t bytes, uint64_t bits, std::memory_order order) {
    switch (bytes) {
        case 1:
            return write_as<uint8_t>(p, bits, order);
        case 2:
            return write_as<uint16_t>(p, bits, order);
        case 4:
            return write_as<uint32_t>(p, bits, order);
        default:
            return write_as<uint64_t>(p, bits, order);
    }
}

uint64_t extended(const Op& op, uint64_t bits) {
    if (!is_signed(op.type) || op.element_bytes >= kCell) return bits;
    const uint32_t unused = 64 - 8u * op.element_bytes;
    return static_cast<uint64_t>(static_cast<int64_t>(bits << unused) >> unused);
}

void load_lane(const Context& c, const Op& op, const Dest& d, uint32_t i, std::byte* p) {
    const auto order = op.sub != 0 ? std::memory_order_acquire : std::memory_order_relaxed;
    const uint32_t bytes = std::min<uint32_t>(op.element_bytes, kCell);
    c.set_lane(d, i, extended(op, read_cell(p, bytes, order)));
    if (op.element_bytes > kCell)
        c.write<uint64_t>(d)[2 * i + 1] = read_cell(p + kCell, kCell, order);
}

void store_lane(const Context& c, const Op& op, const Source& s, uint32_t i, std::byte* p) {
    const auto order = op.sub != 0 ? std::memory_order_release : std::memory_order_relaxed;
    const uint32_t bytes = std::min<uint32_t>(op.element_bytes, kCell);
    write_cell(p, bytes, c.lane(s, i), order);
    if (op.element_bytes > kCell)
        write_cell(p + kCell, kCell, c.read<uint64_t>(s)[2 * i + 1], order);
}

Place place_of(const Op& op) { return {op.src[0], op.imm, op.space, op.frame_relative}; }

}  // namespace

void run_strong_load(Context& c, const Op& op, uint32_t mask) {
    std::byte* p[kLanes];
    const uint32_t bytes = uint32_t{op.element_bytes} * op.elements;
    if (!resolve(c, op, place_of(op), mask, bytes, Use::kLoad, p)) return;
    for (uint32_t k = 0; k < op.elements; ++k) {
        const Dest& d = op.elements == 1 ? op.dst[0] : c.code->dests[op.table][k];
        if (d.offset == kNowhere) continue;
        for_lanes(mask, [&](uint32_t i) { load_lane(c, op, d, i, p[i] + k * op.element_bytes); });
    }
}

void run_strong_store(Context& c, const Op& op, uint32_t mask) {
    std::byte* p[kLanes];
    const uint32_t bytes = uint32_t{op.element_bytes} * op.elements;
    if (!resolve(c, op, place_of(op), mask, bytes, Use::kStore, p)) return;
    for (uint32_t k = 0; k < op.elements; ++k) {
        const Source& s = op.elements == 1 ? op.src[1] : c.code->values[op.table][k];
        for_lanes(mask, [&](uint32_t i) { store_lane(c, op, s, i, p[i] + k * op.element_bytes); });
    }
}

// A chain of read-modify-writes is one total order in which each sees what came before it: a fence
// that, unlike std::atomic_thread_fence, a thread sanitizer understands.
void run_fence(Context&, const Op&, uint32_t) {
    static std::atomic<uint32_t> fences{0};
    fences.fetch_add(1, std::memory_order_acq_rel);
}

}  // namespace ttt::ptx::exec
