// Names in nested scopes while a module is parsed. Look-up is one hash chain, innermost scope
// first; leaving a scope costs what was declared in it. Register ranges (%r<100>) hold no symbol
// until one of their registers is used.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "ptx/ir.h"

namespace ttt::ptx {

struct RegisterRange {
    Name prefix;
    uint64_t count = 0;
    Type type = Type::kNone;
    uint8_t vector = 1;
};

class Scopes {
  public:
    // `names` keeps the spellings that the text itself does not have (%r1 for %r01).
    Scopes(std::vector<Symbol>& symbols, std::deque<std::string>& names);

    void enter() { logs_.emplace_back(); }
    void leave();
    uint32_t depth() const { return static_cast<uint32_t>(logs_.size() - 1); }

    void declare(Name name, Sym sym);  // in the innermost scope
    void declare_range(RegisterRange range);

    struct Found {
        Sym sym = kNoSym;
        uint32_t depth = 0;
    };
    // The innermost declaration of `name`; makes the symbol (of `function`) when a range declares
    // it.
    Found find(Name name, uint32_t function);
    Sym find_here(Name name) const;  // innermost scope only, ranges ignored

  private:
    static constexpr uint32_t kNone = 0xFFFFFFFFu;
    struct Entry {
        uint32_t hash = 0, depth = 0, next = kNone;
        uint32_t target = 0;  // symbol, or index of a range
        bool range = false;
    };
    static uint32_t hash_of(Name name);
    uint32_t& bucket(uint32_t hash) { return buckets_[hash & (buckets_.size() - 1)]; }
    uint32_t bucket(uint32_t hash) const { return buckets_[hash & (buckets_.size() - 1)]; }
    const Entry* lookup(Name key, uint32_t hash, bool range) const;
    const Entry* lookup_range(Name name, uint32_t above) const;
    Name without_leading_zeros(Name name);
    Sym make_register(const Entry& range, Name name, uint32_t function);
    void insert(uint32_t hash, uint32_t depth, uint32_t target, bool range);
    void link(uint32_t entry);
    void grow();

    std::vector<Symbol>& symbols_;
    std::deque<std::string>& names_;
    std::string canonical_;  // scratch of without_leading_zeros
    std::vector<RegisterRange> ranges_;
    std::vector<Entry> entries_;
    std::vector<uint32_t> free_;
    std::vector<uint32_t> buckets_;
    std::vector<std::vector<uint32_t>> logs_;  // entries of each open scope
    std::vector<uint32_t> range_counts_;       // ranges declared per depth
    uint32_t deepest_range_ = 0;
    size_t live_ = 0;
};

}  // namespace ttt::ptx
