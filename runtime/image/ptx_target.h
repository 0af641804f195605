// What a PTX text says about itself in its first directives, without parsing it.
#pragma once

#include <cstdint>
#include <string_view>

namespace ttt::image {

struct PtxTarget {
    uint32_t arch = 0;     // 90 for ".target sm_90a"; 0 when there is no .target
    char suffix = 0;       // 'a', 'f' or 0
    uint32_t version = 0;  // 85 for ".version 8.5"; 0 when there is no .version
};

// Looks at the first directives only (comments skipped); never fails.
PtxTarget ptx_target(std::string_view ptx);

}  // namespace ttt::image
