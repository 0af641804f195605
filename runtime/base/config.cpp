#include "base/config.h"

#include <cmath>
#include <cstdlib>

namespace ttt {
namespace {

bool parse(const char* text, std::string& out) {
    out = text;
    return true;
}
// No option is negative or without a bound.
bool parse(const char* text, int64_t& out) {
    char* end = nullptr;
    const long long v = std::strtoll(text, &end, 10);
    if (end == text || *end != 0 || v < 0) return false;
    out = v;
    return true;
}
bool parse(const char* text, double& out) {
    char* end = nullptr;
    const double v = std::strtod(text, &end);
    if (end == text || *end != 0 || !std::isfinite(v) || v < 0) return false;
    out = v;
    return true;
}

}  // namespace

Config Config::from_environment(std::string* problems) {
    Config c;
#define TTT_OPTION(field, type, env, def, help)                    \
    if (const char* v = std::getenv(env); v != nullptr && *v != 0) \
        if (!parse(v, c.field) && problems != nullptr)             \
            *problems += std::string(env) + "=" + v + ": not a " #type "; ";
#include "base/options.def"
#undef TTT_OPTION
    return c;
}

}  // namespace ttt
