#include "compile/controls.h"

#include <algorithm>

#include "compile/compiler.h"

namespace ttt::compile {
namespace {

constexpr std::string_view kSwitches[] = {
    "O0",
    "O1",
    "O2",
    "O3",
    "v",
    "dlcm",
    "dscm",
    "def-load-cache",
    "def-store-cache",
    "force-load-cache",
    "force-store-cache",
    "opt-level",
    "allow-expensive-optimizations",
    "disable-optimizer-constants",
    "fmad",
    "maxrregcount",
    "register-usage-level",
    "opt-pointers",
    "warn-spills",
    "warn-lmem-usage",
    "verbose",
    "suppress-stack-size-warning",
    "position-independent-code",
    "sp-bounds-check",
    "disable-warnings",
    "w",
    "maxntid",
    "minnctapersm",
    "O",
};

bool plain(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == ',';
}

bool is_allowed(std::string_view option) {
    const size_t dashes = option.substr(0, 2) == "--" ? 2 : 1;
    if (option.empty() || option.front() != '-' ||
        !std::all_of(option.begin(), option.end(), [](char c) { return plain(c) || c == '='; }))
        return false;
    const std::string_view body = option.substr(dashes);
    const std::string_view name = body.substr(0, body.find('='));
    return std::find(std::begin(kSwitches), std::end(kSwitches), name) != std::end(kSwitches);
}

}  // namespace

uint32_t effective_registers(uint32_t max_registers) {
    if (max_registers == 0 || max_registers > kMostRegisters) return 0;
    return std::max(max_registers, kFewestRegisters);
}

Result<std::vector<std::string>> assembler_options(const xform::CompileControls& controls) {
    std::vector<std::string> out;
    if (const uint32_t n = effective_registers(controls.max_registers); n != 0)
        out.push_back("-maxrregcount=" + std::to_string(n));
    for (const std::string& option : controls.ptxas_options) {
        if (!is_allowed(option))
            return make_error(Code::kInvalidArgument, "assembler option \"" + option +
                                                          "\" is not one that recipes may use");
        out.push_back(option);
    }
    return out;
}

Status check_arch(std::string_view arch) {
    std::string_view rest = arch;
    const bool prefixed = rest.substr(0, 3) == "sm_";
    if (prefixed) rest.remove_prefix(3);
    if (!rest.empty() && (rest.back() == 'a' || rest.back() == 'f')) rest.remove_suffix(1);
    const bool digits =
        std::all_of(rest.begin(), rest.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (prefixed && digits && (rest.size() == 2 || rest.size() == 3)) return ok_status();
    return make_error(Code::kInvalidArgument,
                      "\"" + std::string(arch) + "\" is no architecture; write it like sm_90");
}

}  // namespace ttt::compile
