// `ttt ptx check`: does every file parse, and does printing lose nothing?
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "commands.h"
#include "kernel_file.h"

namespace ttt::cli {
namespace {

struct Totals {
    uint64_t files = 0, entries = 0, opaque = 0;
    nlohmann::ordered_json failures = nlohmann::ordered_json::array();
};

Status round_trip(const ptx::Module& module) {
    TTT_CHECK_OK(ptx::verify(module));
    const std::string once = ptx::print(module);
    TTT_TRY(const auto again, ptx::parse(once));
    if (ptx::print(again) != once) return make_error(Code::kInternal, "printing is not a fixpoint");
    return ok_status();
}

void check_file(const std::string& path, Totals& totals) {
    ++totals.files;
    auto module = read_module(path);
    Status status = module.ok() ? round_trip(*module) : Status(module.error());
    if (module.ok()) {
        for (const auto& f : module->functions) totals.entries += f.is_entry && f.has_body ? 1 : 0;
        totals.opaque += module->opaque_count;
    }
    if (status.ok()) return;
    const Error& e = status.error();
    totals.failures.push_back(
        {{"file", path}, {"line", e.line}, {"column", e.column}, {"message", e.message}});
}

}  // namespace

int ptx_check(const std::vector<std::string>& files, bool json) {
    Totals totals;
    for (const auto& f : files) check_file(f, totals);
    if (json) {
        const nlohmann::ordered_json out{{"files", totals.files},
                                         {"entries", totals.entries},
                                         {"opaque", totals.opaque},
                                         {"failures", totals.failures}};
        fmt::print("{}\n", out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    } else {
        for (const auto& f : totals.failures)
            fmt::print("{}:{}:{}: {}\n", f["file"].get<std::string>(), f["line"].get<uint32_t>(),
                       f["column"].get<uint32_t>(), f["message"].get<std::string>());
        fmt::print("{} files, {} entries, {} opaque, {} failures\n", totals.files, totals.entries,
                   totals.opaque, totals.failures.size());
    }
    return totals.failures.empty() ? kOk : kFailed;
}

}  // namespace ttt::cli
