#include "session/dispatch.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace ttt::session {
namespace {

constexpr size_t kCachedPointers = 8;

// The last answer per dispatch and thread. Exact: an answer counts only for equal pointers and an
// unchanged table.
struct OverlapCache {
    const Dispatch* dispatch = nullptr;
    uint64_t generation = 0;
    std::array<uint64_t, kCachedPointers> pointers{};
    bool distinct = false;
};
constexpr size_t kCacheEntries = 8;
__attribute__((
    tls_model("initial-exec"))) thread_local constinit std::array<OverlapCache, kCacheEntries>
    t_overlap{};

uint64_t pointer_at(const ParamView& view, const ParamField& f, bool* ok) {
    const std::byte* p = view.at(f);
    if (p == nullptr) {
        *ok = false;
        return 0;
    }
    uint64_t v = 0;
    std::memcpy(&v, p, sizeof v);
    return v;
}

}  // namespace

bool Dispatch::enter(DispatchMode next) const {
    DispatchMode now = mode.load();
    while (now != DispatchMode::kRetired)
        if (mode.compare_exchange_weak(now, next)) return true;
    return false;
}

Status Dispatch::compile_guard(const ipc::GuardDef* guard, const ParamLayout& layout,
                               Dispatch* out) {
    if (guard == nullptr) return ok_status();
    auto field = [&](uint32_t offset, size_t size, ParamField* f) {
        return size != 0 && size <= 4096 && locate(layout, offset, static_cast<uint32_t>(size), f);
    };
    const Error outside =
        make_error(Code::kInvalidArgument, "guard names bytes outside the kernel's parameters");
    if (const auto* g = guard->grid()) out->need_grid = Dim3{g->x(), g->y(), g->z()};
    if (const auto* b = guard->block()) out->need_block = Dim3{b->x(), b->y(), b->z()};
    if (guard->shared() >= 0) out->need_shared = static_cast<uint32_t>(guard->shared());
    for (size_t i = 0; guard->scalars() != nullptr && i < guard->scalars()->size(); ++i) {
        const auto* s = guard->scalars()->Get(static_cast<uint32_t>(i));
        Scalar c;
        if (s->bytes() == nullptr || !field(s->offset(), s->bytes()->size(), &c.field))
            return outside;
        for (uint8_t v : *s->bytes()) c.bytes.push_back(std::byte{v});
        out->scalars.push_back(std::move(c));
    }
    for (size_t i = 0; guard->aligned() != nullptr && i < guard->aligned()->size(); ++i) {
        const auto* a = guard->aligned()->Get(static_cast<uint32_t>(i));
        const uint32_t alignment = a->alignment();
        Aligned c{};
        if (alignment == 0 || (alignment & (alignment - 1)) != 0 ||
            !field(a->offset(), 8, &c.field))
            return outside;
        c.mask = uint64_t{alignment} - 1;
        out->aligned.push_back(c);
    }
    for (size_t i = 0; guard->no_overlap() != nullptr && i < guard->no_overlap()->size(); ++i) {
        const auto* n = guard->no_overlap()->Get(static_cast<uint32_t>(i));
        Overlap c{};
        if (!field(n->read_offset(), 8, &c.read) || !field(n->write_offset(), 8, &c.write))
            return outside;
        out->overlaps.push_back(c);
    }
    return ok_status();
}

bool Dispatch::holds(const Dim3& g, const Dim3& b, uint32_t shared_bytes, const ParamView& view,
                     const Allocations& allocations) const {
    if (need_grid && !(*need_grid == g)) return false;
    if (need_block && !(*need_block == b)) return false;
    if (need_shared && *need_shared != shared_bytes) return false;
    for (const Scalar& s : scalars) {
        const std::byte* p = view.at(s.field);
        if (p == nullptr || std::memcmp(p, s.bytes.data(), s.bytes.size()) != 0) return false;
    }
    bool ok = true;
    for (const Aligned& a : aligned)
        if ((pointer_at(view, a.field, &ok) & a.mask) != 0 || !ok) return false;
    return overlaps.empty() || distinct(view, allocations);
}

bool Dispatch::distinct(const ParamView& view, const Allocations& allocations) const {
    const size_t used = overlaps.size() * 2;
    std::array<uint64_t, kCachedPointers> p{};
    bool ok = true;
    for (size_t i = 0; i < std::min(used, kCachedPointers); i += 2) {
        p[i] = pointer_at(view, overlaps[i / 2].read, &ok);
        p[i + 1] = pointer_at(view, overlaps[i / 2].write, &ok);
    }
    if (!ok) return false;
    const uint64_t generation = allocations.generation();
    OverlapCache& cached = t_overlap[(reinterpret_cast<uintptr_t>(this) >> 6) % kCacheEntries];
    const bool cacheable = used <= kCachedPointers;
    if (cacheable && cached.dispatch == this && cached.generation == generation &&
        cached.pointers == p)
        return cached.distinct;
    bool answer = true;
    for (const Overlap& o : overlaps) {
        Allocation a, b;
        answer = answer && allocations.find(pointer_at(view, o.read, &ok), &a) &&
                 allocations.find(pointer_at(view, o.write, &ok), &b) && ok && a.base != b.base;
    }
    if (cacheable) cached = {this, generation, p, answer};
    return answer;
}

}  // namespace ttt::session
