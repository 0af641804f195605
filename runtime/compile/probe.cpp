#include <charconv>

#include "compile/backend.h"

namespace ttt::compile {
namespace {

constexpr std::string_view kImpossible = ".version 99.9\n.target sm_80\n.address_size 64\n";
constexpr std::string_view kTiny =
    ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry ttt_probe() { ret; }\n";

uint32_t number(std::string_view text, size_t& at) {
    uint32_t value = 0;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), value);
    at = static_cast<size_t>(end - text.data());
    return error == std::errc() ? value : 0;
}

// "… current version is '9.0'" → 90; 0 when the text says nothing like it.
uint32_t stated_version(std::string_view log) {
    constexpr std::string_view kBefore = "current version is '";
    size_t at = log.find(kBefore);
    if (at == std::string_view::npos) return 0;
    at += kBefore.size();
    const uint32_t major = number(log, at);
    if (at >= log.size() || log[at] != '.') return 0;
    ++at;
    return major * 10 + number(log, at);
}

// "Cuda compilation tools, release 13.0, V13.0.88" inside the cubin's tool note → "13.0.88".
std::string tool_version(std::string_view cubin) {
    constexpr std::string_view kBefore = "Cuda compilation tools, release ";
    size_t at = cubin.find(kBefore);
    if (at == std::string_view::npos) return {};
    at = cubin.find(", V", at);
    if (at == std::string_view::npos) return {};
    const std::string_view rest = cubin.substr(at + 3, 32);
    return std::string(rest.substr(0, rest.find_first_not_of("0123456789.")));
}

}  // namespace

Result<Probe> probe(Backend& backend) {
    Probe out;
    auto refused = backend.assemble({kImpossible, "sm_80", {}});
    if (refused.ok()) return make_error(Code::kUnsupported, "an assembler accepted PTX ISA 99.9");
    out.max_ptx_version = stated_version(refused.error().message);
    if (out.max_ptx_version == 0)
        return std::move(refused).error().with("the assembler does not state its PTX ISA");
    TTT_TRY(const Output tiny, backend.assemble({kTiny, "sm_80", {}}));
    out.version = tool_version(tiny.cubin);
    return out;
}

}  // namespace ttt::compile
