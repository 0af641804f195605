// Recipes: ordered, serialisable, hashable lists of transforms with their knobs.
// Text form: "pin_rounding | specialise(scalars,ntid,nctaid) | memory.nc |
// registers(max=48,reqntid)".
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/result.h"

namespace ttt::xform {

struct Step {
    std::string transform;                     // "registers"
    std::map<std::string, std::string> knobs;  // "max" → "48"; a bare knob has the value ""
    friend bool operator==(const Step&, const Step&) = default;
};

struct Recipe {
    std::vector<Step> steps;
    static Result<Recipe> parse(std::string_view text);  // error names the column
    std::string str() const;                             // canonical; parse(str()) == *this
    Hash128 hash() const;
    friend bool operator==(const Recipe&, const Recipe&) = default;
};

}  // namespace ttt::xform
