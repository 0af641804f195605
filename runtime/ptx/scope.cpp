#include "ptx/scope.h"

#include <algorithm>
#include <cstring>

namespace ttt::ptx {

Scopes::Scopes(std::vector<Symbol>& symbols, std::deque<std::string>& names)
    : symbols_(symbols), names_(names), buckets_(1024, kNone) {
    logs_.emplace_back();
}

uint32_t Scopes::hash_of(Name name) {
    uint64_t h = name.size() * 0x9E3779B97F4A7C15u;
    size_t i = 0;
    const auto mix = [&](uint64_t v) {
        h = (h ^ v) * 0xBF58476D1CE4E5B9u;
        h ^= h >> 29;
    };
    for (; i + 8 <= name.size(); i += 8) {
        uint64_t word = 0;
        std::memcpy(&word, name.data() + i, 8);
        mix(word);
    }
    uint64_t tail = 0;
    std::memcpy(&tail, name.data() + i, name.size() - i);
    mix(tail);
    return static_cast<uint32_t>(h ^ (h >> 32));
}

const Scopes::Entry* Scopes::lookup(Name key, uint32_t hash, bool range) const {
    for (uint32_t e = bucket(hash); e != kNone; e = entries_[e].next) {
        const Entry& entry = entries_[e];
        if (entry.hash != hash || entry.range != range) continue;
        if ((range ? ranges_[entry.target].prefix : symbols_[entry.target].name) == key)
            return &entry;
    }
    return nullptr;
}

// The declaring range may end in a digit itself (%r1<10> declares %r10 to %r19), so every split is
// tried.
const Scopes::Entry* Scopes::lookup_range(Name name, uint32_t above) const {
    uint64_t number = 0, scale = 1;
    for (size_t digits = 1; digits <= 10 && digits < name.size(); ++digits) {
        const char c = name[name.size() - digits];
        if (c < '0' || c > '9') break;
        number += static_cast<uint64_t>(c - '0') * scale;
        scale *= 10;
        if (c == '0' && digits > 1) continue;  // no leading zeros
        const Name prefix = name.substr(0, name.size() - digits);
        const Entry* entry = lookup(prefix, hash_of(prefix), true);
        if (entry != nullptr && entry->depth > above && number < ranges_[entry->target].count)
            return entry;
    }
    return nullptr;
}

Scopes::Found Scopes::find(Name name, uint32_t function) {
    const Entry* entry = lookup(name, hash_of(name), false);
    if (entry != nullptr && entry->depth >= deepest_range_) return {entry->target, entry->depth};
    const uint32_t above = entry != nullptr ? entry->depth : 0;
    if (const Entry* range = lookup_range(name, above)) {
        const uint32_t depth = range->depth;
        return {make_register(*range, name, function), depth};
    }
    if (entry != nullptr) return {entry->target, entry->depth};
    // The assembler takes %r01 for %r1 of a range.
    const Name canonical = without_leading_zeros(name);
    if (canonical.empty() || lookup_range(canonical, 0) == nullptr) return {};
    if (const Entry* known = lookup(canonical, hash_of(canonical), false);
        known != nullptr && known->depth >= lookup_range(canonical, 0)->depth)
        return {known->target, known->depth};
    const Entry* range = lookup_range(canonical, 0);
    const uint32_t depth = range->depth;
    return {make_register(*range, names_.emplace_back(canonical), function), depth};
}

// Empty when the number at the end of the name has no leading zeros.
Name Scopes::without_leading_zeros(Name name) {
    const size_t number = name.find_last_not_of("0123456789") + 1;
    if (number + 1 >= name.size() || name[number] != '0' || name.size() - number > 32) return {};
    const size_t digits = std::min(name.find_first_not_of('0', number), name.size() - 1);
    canonical_.assign(name.substr(0, number));
    canonical_.append(name.substr(digits));
    return canonical_;
}

Sym Scopes::make_register(const Entry& range, Name name, uint32_t function) {
    const RegisterRange& declared = ranges_[range.target];
    Symbol symbol;
    symbol.kind = Symbol::Kind::kRegister;
    symbol.space = Space::kReg;
    symbol.type = declared.type;
    symbol.vector = declared.vector;
    symbol.name = name;
    symbol.function = function;
    symbols_.push_back(symbol);
    const auto sym = static_cast<Sym>(symbols_.size() - 1);
    insert(hash_of(name), range.depth, sym, false);
    return sym;
}

Sym Scopes::find_here(Name name) const {
    const Entry* entry = lookup(name, hash_of(name), false);
    return entry != nullptr && entry->depth == depth() ? entry->target : kNoSym;
}

void Scopes::declare(Name name, Sym sym) { insert(hash_of(name), depth(), sym, false); }

void Scopes::declare_range(RegisterRange range) {
    ranges_.push_back(range);
    insert(hash_of(range.prefix), depth(), static_cast<uint32_t>(ranges_.size() - 1), true);
    range_counts_.resize(logs_.size(), 0);
    ++range_counts_[depth()];
    deepest_range_ = std::max(deepest_range_, depth());
}

void Scopes::insert(uint32_t hash, uint32_t depth, uint32_t target, bool range) {
    uint32_t id = 0;
    if (free_.empty()) {
        id = static_cast<uint32_t>(entries_.size());
        entries_.emplace_back();
    } else {
        id = free_.back();
        free_.pop_back();
    }
    entries_[id] = {hash, depth, kNone, target, range};
    logs_[depth].push_back(id);
    if (++live_ > buckets_.size()) {
        grow();
    } else {
        link(id);
    }
}

// Chains are sorted by depth, deepest first, so the first match is the innermost declaration.
void Scopes::link(uint32_t id) {
    uint32_t* at = &bucket(entries_[id].hash);
    while (*at != kNone && entries_[*at].depth > entries_[id].depth) at = &entries_[*at].next;
    entries_[id].next = *at;
    *at = id;
}

void Scopes::grow() {
    buckets_.assign(buckets_.size() * 2, kNone);
    for (const auto& log : logs_)
        for (uint32_t id : log) link(id);
}

void Scopes::leave() {
    for (uint32_t id : logs_.back()) {
        uint32_t* at = &bucket(entries_[id].hash);
        while (*at != id) at = &entries_[*at].next;  // near the front: nothing deeper is open
        *at = entries_[id].next;
        free_.push_back(id);
    }
    live_ -= logs_.back().size();
    if (range_counts_.size() >= logs_.size()) range_counts_.resize(logs_.size() - 1);
    logs_.pop_back();
    while (deepest_range_ > 0 &&
           (deepest_range_ >= range_counts_.size() || range_counts_[deepest_range_] == 0))
        --deepest_range_;
    if (logs_.size() <= 1) ranges_.clear();
}

}  // namespace ttt::ptx
