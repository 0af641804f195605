// Options of one process, read once from the environment through the table in options.def.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace ttt {

struct Config {
    using Text = std::string;
    using Int = int64_t;
    using Real = double;
#define TTT_OPTION(field, type, env, def, help) type field = def;
#include "base/options.def"
#undef TTT_OPTION

    // Unparsable values keep their default and are named in the error list; never throws or prints.
    static Config from_environment(std::string* problems = nullptr);
};

}  // namespace ttt
