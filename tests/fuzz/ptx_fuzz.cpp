// The PTX front end: parse, verify, flow graph, print; what was printed must parse and print the
// same.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "ptx/cfg.h"
#include "ptx/ir.h"

namespace {

void demand(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "ptx_fuzz: %s\n", what);
    std::abort();
}

void check_place(const ttt::Error& error) {
    demand(error.line >= 1 && error.column >= 1, "error without a place");
    demand(error.message.size() < 300, "endless message");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const auto module = ttt::ptx::parse(std::string(reinterpret_cast<const char*>(data), size));
    if (!module.ok()) {
        check_place(module.error());
        return 0;
    }
    (void)ttt::ptx::verify(*module);
    for (const auto& f : module->functions) {
        (void)ttt::ptx::build_cfg(*module, f);
        (void)ttt::ptx::param_layout(*module, f);
    }
    const std::string printed = ttt::ptx::print(*module);
    demand(ttt::ptx::print(module->clone()) == printed, "a clone prints differently");
    const auto again = ttt::ptx::parse(printed);
    demand(again.ok(), "what was printed does not parse");
    demand(ttt::ptx::print(*again) == printed, "printing is no fixpoint");
    return 0;
}
