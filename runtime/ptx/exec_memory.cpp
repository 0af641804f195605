// Addresses to host memory, loads, stores and copies.
#include "ptx/exec_memory.h"

#include <fmt/format.h>

#include <algorithm>

namespace ttt::ptx::exec {
namespace {

struct Lanes {
    uint64_t address[kLanes];
};

void addresses(const Context& c, const Place& place, Lanes& out) {
    const uint64_t base = place.offset + (place.frame_relative ? c.frame->local_base : 0);
    if (place.address.width == Width::kWord) {
        const auto* a = c.read<uint32_t>(place.address);
        for (uint32_t i = 0; i < kLanes; ++i) out.address[i] = a[i] + base;
    } else {
        const auto* a = c.read<uint64_t>(place.address);
        for (uint32_t i = 0; i < kLanes; ++i) out.address[i] = a[i] + base;
    }
    // 32-bit addresses wrap at 32 bits within shared, local and parameter space.
    if (place.address.width == Width::kWord)
        for (uint64_t& a : out.address) a &= 0xFFFFFFFF;
}

std::string_view verb(Use use) {
    return use == Use::kLoad ? "load" : use == Use::kStore ? "store" : "atomic";
}

bool illegal(const Context& c, const Op& op, uint32_t lane, uint64_t address, uint32_t bytes,
             Use use, std::string_view where) {
    c.fault(Fault::Kind::kIllegalAddress, lane, op, address,
            fmt::format("illegal address 0x{:x} ({}-byte {}{})", address, bytes, verb(use), where));
    return false;
}

bool misaligned(const Context& c, const Op& op, uint32_t lane, uint64_t address, uint32_t bytes,
                Use use) {
    c.fault(Fault::Kind::kMisaligned, lane, op, address,
            fmt::format("misaligned address 0x{:x} ({}-byte {})", address, bytes, verb(use)));
    return false;
}

// The 128-byte lines that the lanes' aligned accesses touch, each once, with its sectors as bits.
struct Lines {
    uint64_t number[kLanes];
    uint32_t sectors[kLanes];
    uint32_t count = 0;
};

// Sectors of the one line that all accesses lie in.
uint32_t sectors_of_line(const Lanes& lanes, uint32_t mask, uint32_t width) {
    uint32_t bits = 0;
    if (mask == ~uint32_t{0}) {
        for (const uint64_t a : lanes.address)
            bits |= width << (static_cast<uint32_t>(a) / kSectorBytes % 4);
    } else {
        for_lanes(mask, [&](uint32_t i) {
            bits |= width << (static_cast<uint32_t>(lanes.address[i]) / kSectorBytes % 4);
        });
    }
    return bits;
}

void merge_equal(Lines& lines) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < lines.count; ++i) {
        uint32_t k = 0;
        while (k < kept && lines.number[k] != lines.number[i]) ++k;
        if (k < kept) {
            lines.sectors[k] |= lines.sectors[i];
            continue;
        }
        lines.number[kept] = lines.number[i];
        lines.sectors[kept++] = lines.sectors[i];
    }
    lines.count = kept;
}

void collect_lines(const Lanes& lanes, uint32_t mask, uint32_t width, Lines& out) {
    bool ascending = true;
    uint64_t line = lanes.address[std::countr_zero(mask)] / kLineBytes;
    uint32_t bits = 0, n = 0;
    for_lanes(mask, [&](uint32_t i) {
        const uint64_t next = lanes.address[i] / kLineBytes;
        if (next != line) {
            ascending = ascending && line < next;
            out.number[n] = line;
            out.sectors[n++] = bits;
            line = next;
            bits = 0;
        }
        bits |= width << (static_cast<uint32_t>(lanes.address[i]) / kSectorBytes % 4);
    });
    out.number[n] = line;
    out.sectors[n++] = bits;
    out.count = n;
    if (!ascending) merge_equal(out);
}

// Counts the sectors `wanted` of one line.
inline void count_line(const Context& c, uint64_t line, uint32_t wanted, Use use) {
    Counters& counters = c.worker->counters;
    const auto sectors = static_cast<uint64_t>(std::popcount(wanted));
    ++counters.global_lines;
    if (use == Use::kLoad) {
        counters.global_sectors_read += sectors;
        const uint32_t cold = c.block->lines->miss(line, wanted);
        if (cold == 0) return;
        counters.cold_sectors_read += static_cast<uint64_t>(std::popcount(cold));
    } else {  // these go on to the second-level cache in any case
        counters.global_sectors_written += sectors;
        if (use == Use::kAtomic) {
            counters.global_sectors_read += sectors;
            counters.cold_sectors_read += sectors;
        }
    }
    c.worker->sectors.add_mask(line * (kLineBytes / kSectorBytes), wanted);
}

// `low`, `high`: least and greatest address of the lanes.
void count_global(const Context& c, const Lanes& lanes, uint32_t mask, uint32_t bytes, uint64_t low,
                  uint64_t high, Use use) {
    Worker& w = *c.worker;
    ++w.counters.global_requests;
    const uint32_t width = (1u << std::max(bytes / kSectorBytes, 1u)) - 1;
    if (low / kLineBytes == high / kLineBytes) {
        count_line(c, low / kLineBytes, sectors_of_line(lanes, mask, width), use);
    } else {
        Lines lines;
        collect_lines(lanes, mask, width, lines);
        for (uint32_t i = 0; i < lines.count; ++i)
            count_line(c, lines.number[i], lines.sectors[i], use);
    }
    if (!w.launch->request->want_footprint) return;
    for_lanes(mask, [&](uint32_t i) {
        if (use != Use::kStore) w.read.add(lanes.address[i], bytes);
        if (use != Use::kLoad) w.written.add(lanes.address[i], bytes);
    });
}

bool refill(const Context& c, AllocationCache& cache, uint64_t address, uint32_t bytes) {
    const AddressSpace::Allocation* a = c.worker->launch->space->find(address, bytes);
    if (a == nullptr) return false;
    cache = {a->base, a->size, a->host, a->readable, a->writable};
    return true;
}

bool permitted(const AllocationCache& cache, Use use) {
    return (use == Use::kStore || cache.readable) && (use == Use::kLoad || cache.writable);
}

bool global_lane(const Context& c, const Op& op, uint32_t lane, uint64_t address, uint32_t bytes,
                 Use use, std::byte*& pointer) {
    AllocationCache& cache = c.worker->caches[op.cache];
    const uint64_t offset = address - cache.base;
    if ((offset >= cache.size || bytes > cache.size - offset) && !refill(c, cache, address, bytes))
        return illegal(c, op, lane, address, bytes, use, "");
    if (!permitted(cache, use))
        return illegal(c, op, lane, address, bytes, use, " to read-only memory");
    pointer = cache.host + (address - cache.base);
    return true;
}

bool resolve_global(const Context& c, const Op& op, const Lanes& lanes, uint32_t mask,
                    uint32_t bytes, Use use, bool counted, std::byte* (&pointers)[kLanes]) {
    uint64_t low = ~uint64_t{0}, high = 0, all = 0;
    for_lanes(mask, [&](uint32_t i) {
        const uint64_t a = lanes.address[i];
        low = std::min(low, a);
        high = std::max(high, a);
        all |= a;
    });
    if ((all & (bytes - 1)) != 0) {
        uint32_t lane = 0;
        for_lanes(mask,
                  [&](uint32_t i) { lane = (lanes.address[i] & (bytes - 1)) != 0 ? i : lane; });
        return misaligned(c, op, lane, lanes.address[lane], bytes, use);
    }
    AllocationCache& cache = c.worker->caches[op.cache];
    if (low < cache.base || high - cache.base >= cache.size) refill(c, cache, low, bytes);
    const bool inside = low >= cache.base && high - cache.base < cache.size &&
                        bytes <= cache.size - (high - cache.base) && permitted(cache, use);
    if (inside) {
        std::byte* host = cache.host;
        const uint64_t base = cache.base;
        if (mask == ~uint32_t{0}) {
            for (uint32_t i = 0; i < kLanes; ++i) pointers[i] = host + (lanes.address[i] - base);
        } else {
            for_lanes(mask, [&](uint32_t i) { pointers[i] = host + (lanes.address[i] - base); });
        }
    } else {
        for (uint32_t m = mask; m != 0; m &= m - 1) {
            const auto i = static_cast<uint32_t>(std::countr_zero(m));
            if (!global_lane(c, op, i, lanes.address[i], bytes, use, pointers[i])) return false;
        }
    }
    if (counted) count_global(c, lanes, mask, bytes, low, high, use);
    return true;
}

// A window of private or block memory: offsets below `size` from `host`.
bool resolve_window(const Context& c, const Op& op, uint32_t lane, uint64_t offset, uint64_t size,
                    std::byte* host, uint32_t bytes, Use use, std::string_view where,
                    std::byte*& pointer) {
    if (offset >= size || bytes > size - offset)
        return illegal(c, op, lane, offset, bytes, use, where);
    if ((offset & (bytes - 1)) != 0) return misaligned(c, op, lane, offset, bytes, use);
    pointer = host + offset;
    return true;
}

bool resolve_shared(const Context& c, const Op& op, uint32_t lane, uint64_t offset, uint32_t bytes,
                    Use use, std::byte*& pointer) {
    return resolve_window(c, op, lane, offset, c.block->shared_bytes, c.block->shared, bytes, use,
                          " of shared memory", pointer);
}

bool resolve_local(const Context& c, const Op& op, uint32_t lane, uint64_t offset, uint32_t bytes,
                   Use use, std::byte*& pointer) {
    const uint64_t stride = c.worker->launch->local_stride;
    return resolve_window(c, op, lane, offset, stride, c.warp->local + lane * stride, bytes, use,
                          " of local memory", pointer);
}

bool resolve_param(const Context& c, const Op& op, uint32_t lane, uint64_t offset, uint32_t bytes,
                   Use use, std::byte*& pointer) {
    if (use != Use::kLoad) return illegal(c, op, lane, offset, bytes, use, " to kernel parameters");
    const auto params = c.worker->launch->request->params;
    // Kernel parameters are only ever read through this pointer.
    return resolve_window(c, op, lane, offset, params.size(), const_cast<std::byte*>(params.data()),
                          bytes, use, " of kernel parameters", pointer);
}

bool resolve_window_lane(const Context& c, const Op& op, Space space, uint32_t lane,
                         uint64_t offset, uint32_t bytes, Use use, std::byte*& pointer) {
    switch (space) {
        case Space::kShared:
            return resolve_shared(c, op, lane, offset, bytes, use, pointer);
        case Space::kLocal:
            return resolve_local(c, op, lane, offset, bytes, use, pointer);
        default:
            return resolve_param(c, op, lane, offset, bytes, use, pointer);
    }
}

bool resolve_windows(const Context& c, const Op& op, Space space, const Lanes& lanes, uint32_t mask,
                     uint32_t bytes, Use use, std::byte* (&pointers)[kLanes]) {
    if (space == Space::kShared) ++c.worker->counters.shared_accesses;
    for (uint32_t m = mask; m != 0; m &= m - 1) {
        const auto i = static_cast<uint32_t>(std::countr_zero(m));
        if (!resolve_window_lane(c, op, space, i, lanes.address[i], bytes, use, pointers[i]))
            return false;
    }
    return true;
}

Space space_of_address(uint64_t address) {
    if (address - kSharedWindow < kWindowBytes) return Space::kShared;
    if (address - kLocalWindow < kWindowBytes) return Space::kLocal;
    if (address - kParamWindow < kWindowBytes) return Space::kParam;
    return Space::kGlobal;
}
uint64_t window_of(Space space) {
    return space == Space::kShared  ? kSharedWindow
           : space == Space::kLocal ? kLocalWindow
                                    : kParamWindow;
}

// Generic addresses: each space's lanes in turn.
bool resolve_generic(const Context& c, const Op& op, Lanes& lanes, uint32_t mask, uint32_t bytes,
                     Use use, std::byte* (&pointers)[kLanes]) {
    static constexpr Space kSpaces[4] = {Space::kGlobal, Space::kShared, Space::kLocal,
                                         Space::kParam};
    uint32_t in_space[4] = {};
    for (uint32_t m = mask; m != 0; m &= m - 1) {
        const Space space = space_of_address(lanes.address[std::countr_zero(m)]);
        const auto k = std::find(kSpaces, kSpaces + 4, space) - kSpaces;
        in_space[k] |= m & (0 - m);
    }
    if (in_space[0] != 0 && !resolve_global(c, op, lanes, in_space[0], bytes, use, true, pointers))
        return false;
    for (uint32_t k = 1; k < 4; ++k) {
        if (in_space[k] == 0) continue;
        const uint64_t window = window_of(kSpaces[k]);
        for_lanes(in_space[k], [&](uint32_t i) { lanes.address[i] -= window; });
        if (!resolve_windows(c, op, kSpaces[k], lanes, in_space[k], bytes, use, pointers))
            return false;
    }
    return true;
}

// Weak accesses. Blocks on other host threads may use the same bytes: a program, or a candidate
// that is wrong, may race with itself. So each element is one relaxed access of the host, which
// costs what a copy does, and a race gives some value instead of undefined behaviour here.
template <typename T>
T fetch(const std::byte* p) {
    return __atomic_load_n(reinterpret_cast<const T*>(p), __ATOMIC_RELAXED);
}
template <typename T>
void put(std::byte* p, const std::byte* value) {
    T v;
    std::memcpy(&v, value, sizeof v);
    __atomic_store_n(reinterpret_cast<T*>(p), v, __ATOMIC_RELAXED);
}
void put_element(std::byte* p, const std::byte* value, uint32_t bytes) {
    switch (bytes) {
        case 1:
            return put<uint8_t>(p, value);
        case 2:
            return put<uint16_t>(p, value);
        case 4:
            return put<uint32_t>(p, value);
        case 8:
            return put<uint64_t>(p, value);
        default:
            put<uint64_t>(p, value);
            return put<uint64_t>(p + 8, value + 8);
    }
}

template <typename M, typename R>
void load_as(const Context& c, const Dest& d, uint32_t mask, std::byte* const (&p)[kLanes],
             uint32_t at) {
    auto* out = c.write<R>(d);
    const auto one = [&](uint32_t i) { out[i] = static_cast<R>(fetch<M>(p[i] + at)); };
    if (mask == ~uint32_t{0}) {
        for (uint32_t i = 0; i < kLanes; ++i) one(i);
    } else {
        for_lanes(mask, one);
    }
}

// Values of memory type M, sign- or zero-extended to the register.
template <typename M>
void load_into(const Context& c, const Dest& d, uint32_t mask, std::byte* const (&p)[kLanes],
               uint32_t at) {
    switch (d.width) {
        case Width::kHalf:
            load_as<M, uint16_t>(c, d, mask, p, at);
            break;
        case Width::kWord:
            load_as<M, uint32_t>(c, d, mask, p, at);
            break;
        case Width::kLong:
            load_as<M, uint64_t>(c, d, mask, p, at);
            break;
        default:
            for_lanes(mask, [&](uint32_t i) {
                c.set_lane(d, i, static_cast<uint64_t>(fetch<M>(p[i] + at)));
            });
            break;
    }
}

void load_element(const Context& c, const Op& op, const Dest& d, uint32_t mask,
                  std::byte* const (&p)[kLanes], uint32_t at) {
    const bool sign = is_signed(op.type);
    switch (op.element_bytes) {
        case 1:
            return sign ? load_into<int8_t>(c, d, mask, p, at)
                        : load_into<uint8_t>(c, d, mask, p, at);
        case 2:
            return sign ? load_into<int16_t>(c, d, mask, p, at)
                        : load_into<uint16_t>(c, d, mask, p, at);
        case 4:
            return sign ? load_into<int32_t>(c, d, mask, p, at)
                        : load_into<uint32_t>(c, d, mask, p, at);
        case 8:
            return load_into<uint64_t>(c, d, mask, p, at);
        default:
            for_lanes(mask, [&](uint32_t i) {
                uint64_t* out = c.write<uint64_t>(d) + 2 * i;
                out[0] = fetch<uint64_t>(p[i] + at);
                out[1] = fetch<uint64_t>(p[i] + at + 8);
            });
    }
}

void store_element(const Context& c, const Op& op, const Source& s, uint32_t mask,
                   std::byte* const (&p)[kLanes], uint32_t at) {
    if (op.element_bytes == 4 && s.width == Width::kWord) {
        const auto* v = c.read<uint32_t>(s);
        for_lanes(mask, [&](uint32_t i) {
            __atomic_store_n(reinterpret_cast<uint32_t*>(p[i] + at), v[i], __ATOMIC_RELAXED);
        });
        return;
    }
    const uint32_t register_bytes = slot_bytes(s.width) / kLanes;
    if (s.width != Width::kPred &&
        register_bytes >= op.element_bytes) {  // little endian: the low part leads
        const std::byte* v = c.bank[s.bank] + s.offset;
        for_lanes(mask, [&](uint32_t i) {
            put_element(p[i] + at, v + i * register_bytes, op.element_bytes);
        });
        return;
    }
    for_lanes(mask, [&](uint32_t i) {
        const uint64_t bits = c.lane(s, i);
        put_element(p[i] + at, reinterpret_cast<const std::byte*>(&bits), op.element_bytes);
    });
}

Place place_of(const Op& op) { return {op.src[0], op.imm, op.space, op.frame_relative}; }

}  // namespace

bool resolve(Context& c, const Op& op, const Place& place, uint32_t mask, uint32_t bytes, Use use,
             std::byte* (&pointers)[kLanes]) {
    Lanes lanes;
    addresses(c, place, lanes);
    switch (place.space) {
        case Space::kGlobal:
            return resolve_global(c, op, lanes, mask, bytes, use, true, pointers);
        case Space::kConst:
            return resolve_global(c, op, lanes, mask, bytes, use, false, pointers);
        case Space::kGeneric:
            return resolve_generic(c, op, lanes, mask, bytes, use, pointers);
        default:
            return resolve_windows(c, op, place.space, lanes, mask, bytes, use, pointers);
    }
}

void run_load(Context& c, const Op& op, uint32_t mask) {
    std::byte* p[kLanes];
    const uint32_t bytes = uint32_t{op.element_bytes} * op.elements;
    if (!resolve(c, op, place_of(op), mask, bytes, Use::kLoad, p)) return;
    if (op.elements == 1) return load_element(c, op, op.dst[0], mask, p, 0);
    const auto& dests = c.code->dests[op.table];
    for (uint32_t k = 0; k < op.elements; ++k)
        if (dests[k].offset != kNowhere)
            load_element(c, op, dests[k], mask, p, k * op.element_bytes);
}

void run_store(Context& c, const Op& op, uint32_t mask) {
    std::byte* p[kLanes];
    const uint32_t bytes = uint32_t{op.element_bytes} * op.elements;
    if (!resolve(c, op, place_of(op), mask, bytes, Use::kStore, p)) return;
    if (op.elements == 1) return store_element(c, op, op.src[1], mask, p, 0);
    const auto& values = c.code->values[op.table];
    for (uint32_t k = 0; k < op.elements; ++k)
        store_element(c, op, values[k], mask, p, k * op.element_bytes);
}

void run_copy(Context& c, const Op& op, uint32_t mask) {
    std::byte *to[kLanes], *from[kLanes] = {};
    const uint32_t bytes = op.sub;
    uint32_t count[kLanes];
    uint32_t reading = 0;
    for_lanes(mask, [&](uint32_t i) {
        const uint64_t asked = op.sources == 3 ? c.lane(op.src[2], i) & 0xFFFFFFFF : bytes;
        count[i] = static_cast<uint32_t>(std::min<uint64_t>(asked, bytes));
        if (count[i] != 0) reading |= 1u << i;
    });
    const Place source{op.src[1], static_cast<uint64_t>(static_cast<int32_t>(op.target)),
                       Space::kGlobal, false};
    if (!resolve(c, op, {op.src[0], op.imm, Space::kShared, false}, mask, bytes, Use::kStore, to))
        return;
    if (reading != 0 && !resolve(c, op, source, reading, bytes, Use::kLoad, from)) return;
    for_lanes(mask, [&](uint32_t i) {
        if (count[i] != 0) std::memcpy(to[i], from[i], count[i]);
        std::memset(to[i] + count[i], 0, bytes - count[i]);
    });
}

}  // namespace ttt::ptx::exec
