#include "ptx/check.h"

#include <fstream>
#include <iterator>

namespace ttt::ptx {
namespace {

void count(const Module& module, CheckReport& report) {
    for (const Function& f : module.functions) {
        if (!f.has_body) continue;
        ++report.functions;
        if (f.is_entry) ++report.entries;
        for (const Stmt& s : f.body)
            if (s.kind == Stmt::Kind::kInstruction) ++report.instructions;
    }
    report.opaque += module.opaque_count;
}

Status check_module(std::string text, CheckReport& report) {
    report.bytes += text.size();
    std::string printed;
    {
        TTT_TRY(const Module module, parse(std::move(text)));
        count(module, report);
        TTT_CHECK_OK(verify(module));
        printed = print(module);
    }
    auto again = parse(printed);
    if (!again.ok()) return std::move(again).error().with("parsing what was printed");
    if (print(*again) != printed)
        return make_error(Code::kInternal, "printing is not a fixpoint: please report this file");
    return ok_status();
}

}  // namespace

void check_text(std::string_view name, std::string text, CheckReport& report) {
    ++report.files;
    Status status = check_module(std::move(text), report);
    if (!status.ok()) report.failures.push_back({std::string(name), std::move(status).error()});
}

CheckReport check(std::span<const std::string> paths) {
    CheckReport report;
    for (const std::string& path : paths) {
        std::ifstream file(path, std::ios::binary);
        std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
        if (!file.is_open() || file.bad()) {
            ++report.files;
            report.failures.push_back({path, make_error(Code::kIo, "cannot read " + path)});
            continue;
        }
        check_text(path, std::move(text), report);
    }
    return report;
}

}  // namespace ttt::ptx
