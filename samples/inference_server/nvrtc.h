// NVRTC, found at run time: turns kernel source into PTX for one architecture.
#pragma once

#include <optional>
#include <string>

namespace digits {

// PTX of `source` for the newest architecture that NVRTC knows up to `arch` (90 = sm_90). nullopt
// with the reason in `why` when NVRTC is not on this machine; std::runtime_error with the
// compiler's log when the source does not compile.
std::optional<std::string> compile_with_nvrtc(const std::string& source, int arch,
                                              std::string& why);

}  // namespace digits
