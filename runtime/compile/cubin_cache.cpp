#include "compile/cubin_cache.h"

namespace ttt::compile {
namespace {

// The kernel's text points into the image: a copy must point into its own.
Compiled copy(const Compiled& from) {
    Compiled to = from;
    if (from.code.text.empty() || from.image.empty()) return to;
    const auto offset = static_cast<size_t>(from.code.text.data() - from.image.data());
    to.code.text = std::span<const std::byte>(to.image).subspan(offset, from.code.text.size());
    return to;
}

size_t cost(const Compiled& c) { return c.image.size() + c.log.size() + sizeof(Compiled); }

}  // namespace

Hash128 cache_key(std::string_view ptx, std::string_view entry, std::string_view arch,
                  const xform::CompileControls& controls) {
    Hash128 key = hash_combine(hash_combine(hash_text(ptx), hash_text(entry)), hash_text(arch));
    key = hash_combine(key, hash_text(std::to_string(effective_registers(controls.max_registers))));
    for (const auto& option : controls.ptxas_options) key = hash_combine(key, hash_text(option));
    return key;
}

std::optional<Compiled> CubinCache::find(const Hash128& key) {
    const std::lock_guard lock(x_mutex);
    const auto found = x_index.find(key);
    if (found == x_index.end()) return std::nullopt;
    x_items.splice(x_items.begin(), x_items, found->second);
    return copy(found->second->compiled);
}

void CubinCache::add(const Hash128& key, const Compiled& compiled) {
    const std::lock_guard lock(x_mutex);
    if (x_index.contains(key) || cost(compiled) > x_max_bytes) return;
    x_items.push_front({key, copy(compiled)});
    x_index.emplace(key, x_items.begin());
    x_bytes += cost(compiled);
    while (x_bytes > x_max_bytes) {
        x_bytes -= cost(x_items.back().compiled);
        x_index.erase(x_items.back().key);
        x_items.pop_back();
    }
}

}  // namespace ttt::compile
