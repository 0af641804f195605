// Local store of winners (SQLite file). Keyed by kernel, site, guard, GPU, driver and compiler;
// nothing of the user's data is in it. A damaged or newer file is an error the caller logs; tuning
// goes on without it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/result.h"

namespace ttt::store {

struct Key {
    Hash128 kernel, site;
    std::string guard, gpu, driver, compiler;
};
struct Winner {
    std::string recipe;
    double speedup = 1;
    std::string evidence;
};

class Store {
  public:
    // Creates the file and its directory; `path` ":memory:" for tests.
    static Result<std::unique_ptr<Store>> open(const std::string& path);
    virtual ~Store() = default;
    virtual Status put(const Key& key, const Winner& winner) = 0;
    virtual Result<std::optional<Winner>> get(const Key& key) = 0;
    virtual Status remove(const Key& key) = 0;
};

}  // namespace ttt::store
