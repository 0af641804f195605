// `ttt ptx check`: does every file parse, and does printing lose nothing?
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "commands.h"
#include "ptx/check.h"

namespace ttt::cli {
namespace {

void print_json(const ptx::CheckReport& report) {
    nlohmann::ordered_json failures = nlohmann::ordered_json::array();
    for (const auto& f : report.failures)
        failures.push_back({{"file", f.file},
                            {"line", f.error.line},
                            {"column", f.error.column},
                            {"message", f.error.str()}});
    const nlohmann::ordered_json out{{"files", report.files},
                                     {"entries", report.entries},
                                     {"opaque", report.opaque},
                                     {"failures", failures}};
    fmt::print("{}\n", out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

void print_text(const ptx::CheckReport& report) {
    for (const auto& f : report.failures)
        fmt::print("{}:{}:{}: {}\n", f.file, f.error.line, f.error.column, f.error.str());
    fmt::print("{} files, {} entries, {} opaque, {} failures\n", report.files, report.entries,
               report.opaque, report.failures.size());
}

}  // namespace

int ptx_check(const std::vector<std::string>& files, bool json) {
    const ptx::CheckReport report = ptx::check(files);
    if (json)
        print_json(report);
    else
        print_text(report);
    return report.failures.empty() ? kOk : kFailed;
}

}  // namespace ttt::cli
