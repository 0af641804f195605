// Reading a step's knobs.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <initializer_list>
#include <optional>

#include "base/result.h"
#include "xform/recipe.h"

namespace ttt::xform {

inline bool has_knob(const Step& step, const std::string& name) {
    return step.knobs.contains(name);
}

// Error naming the first knob that is not in `known`.
inline Status only_knobs(const Step& step, std::initializer_list<std::string_view> known) {
    for (const auto& [key, value] : step.knobs) {
        bool found = false;
        for (std::string_view k : known) found = found || k == key;
        if (!found) {
            return make_error(Code::kInvalidArgument,
                              fmt::format("{} has no knob '{}'", step.transform, key));
        }
    }
    return ok_status();
}

// Value of an integer knob within [low, high]; nullopt when absent.
inline Result<std::optional<uint32_t>> integer_knob(const Step& step, const std::string& name,
                                                    uint32_t low, uint32_t high) {
    const auto it = step.knobs.find(name);
    if (it == step.knobs.end()) return std::optional<uint32_t>{};
    uint32_t value = 0;
    const char* end = it->second.data() + it->second.size();
    const auto [stop, error] = std::from_chars(it->second.data(), end, value);
    if (error != std::errc{} || stop != end || value < low || value > high) {
        return make_error(Code::kInvalidArgument,
                          fmt::format("{}: {}={} is not an integer from {} to {}", step.transform,
                                      name, it->second, low, high));
    }
    return std::optional<uint32_t>{value};
}

}  // namespace ttt::xform
