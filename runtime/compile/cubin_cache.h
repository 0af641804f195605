// Results of compiles, by content. Thread-safe; oldest entries leave when the byte limit is
// reached.
#pragma once

#include <list>
#include <map>
#include <mutex>
#include <optional>

#include "base/hash.h"
#include "compile/compiler.h"

namespace ttt::compile {

class CubinCache {
  public:
    explicit CubinCache(size_t max_bytes = size_t{64} << 20) : x_max_bytes(max_bytes) {}
    std::optional<Compiled> find(const Hash128& key);
    void add(const Hash128& key, const Compiled& compiled);

  private:
    struct Item {
        Hash128 key;
        Compiled compiled;
    };
    std::mutex x_mutex;
    std::list<Item> x_items;  // most recent first
    std::map<Hash128, std::list<Item>::iterator> x_index;
    size_t x_bytes = 0, x_max_bytes = 0;
};

Hash128 cache_key(std::string_view ptx, std::string_view entry, std::string_view arch,
                  const xform::CompileControls& controls);

}  // namespace ttt::compile
