// Does our front end read these files? Behind `ttt ptx check`: parse, print, parse again, verify.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ptx/ir.h"

namespace ttt::ptx {

struct CheckFailure {
    std::string file;
    Error error;  // line and column set for a syntax fault
};

struct CheckReport {
    uint64_t files = 0;    // looked at, failed ones included
    uint64_t entries = 0;  // entry functions with a body
    uint64_t functions = 0;
    uint64_t instructions = 0;
    uint64_t opaque = 0;  // instructions and directives kept as text because unknown
    uint64_t bytes = 0;   // of PTX text
    std::vector<CheckFailure> failures;
};

// Never throws; a file that cannot be read or parsed is a failure, the others are still checked.
CheckReport check(std::span<const std::string> paths);

// The same for one text already in memory; adds to `report`.
void check_text(std::string_view name, std::string text, CheckReport& report);

}  // namespace ttt::ptx
