// `ttt status`, `ttt explain PID`, `ttt off` and `ttt on`: questions to the tuners of running
// processes.
#include <fmt/format.h>

#include "commands.h"
#include "report.h"
#include "tuner_socket.h"

namespace ttt::cli {
namespace {

Result<Json> ask(int pid, std::string_view what) {
    TTT_TRY(const std::string answer, ask_tuner(pid, what));
    Json json = Json::parse(answer, nullptr, false);
    if (json.is_discarded())
        return make_error(Code::kProtocol,
                          fmt::format("process {}: its tuner's answer is no JSON", pid));
    return json;
}

void print_process(int pid, const Json& j) {
    const auto word = [&j](const char* key) {
        return j.contains(key) && j[key].is_string() ? j[key].get<std::string>() : std::string("?");
    };
    fmt::print("{}  {}  mode {}  {}\n", pid, word("exe"), word("mode"), word("device"));
    if (j.contains("sites") && j["sites"].is_array()) fmt::print("{}", table(j["sites"]));
}

void print_verdict(const Json& v) {
    const auto word = [&v](const char* key) {
        return v.is_object() && v.contains(key) && v[key].is_string() ? v[key].get<std::string>()
                                                                      : std::string();
    };
    const std::string gain = v.is_object() && v.contains("speedup") && v["speedup"].is_number()
                                 ? fmt::format(", {:.3f}x", v["speedup"].get<double>())
                                 : "";
    fmt::print("  {:<8} {}{}: {} {}\n", word("outcome"), word("recipe"), gain, word("gate"),
               word("evidence"));
}

}  // namespace

int status(const StatusOptions& options) {
    if (options.pid > 0) {
        const auto answer = ask(options.pid, "status");
        if (!answer.ok()) return complain(kFailed, answer.error().str());
        if (options.json)
            fmt::print("{}\n", dump(*answer));
        else
            print_process(options.pid, *answer);
        return kOk;
    }
    Json all = Json::array();
    for (int pid : tuned_processes()) {
        auto answer = ask(pid, "status");
        if (!answer.ok()) continue;  // ended between the listing and the question
        if (options.json)
            all.push_back({{"pid", pid}, {"status", std::move(*answer)}});
        else
            print_process(pid, *answer);
        if (!options.json) all.push_back(pid);
    }
    if (options.json)
        fmt::print("{}\n", dump({{"processes", all}}));
    else if (all.empty())
        fmt::print("no process of yours runs under libttt.so\n");
    return kOk;
}

int explain_process(int pid, bool json) {
    const auto answer = ask(pid, "explain");
    if (!answer.ok()) return complain(kFailed, answer.error().str());
    if (json) {
        fmt::print("{}\n", dump(*answer));
        return kOk;
    }
    if (!answer->contains("sites")) {
        fmt::print("{}\n", answer->dump(2, ' ', false, Json::error_handler_t::replace));
        return kOk;
    }
    fmt::print("{}", table((*answer)["sites"]));
    for (const auto& site : (*answer)["sites"]) {
        if (!site.contains("verdicts") || !site["verdicts"].is_array()) continue;
        fmt::print("{}:\n", site.contains("name") && site["name"].is_string()
                                ? site["name"].get<std::string>()
                                : "?");
        for (const auto& v : site["verdicts"]) print_verdict(v);
    }
    return kOk;
}

int switch_process(int pid, std::string_view command, bool json) {
    const auto answer = ask(pid, command);
    if (!answer.ok()) return complain(kFailed, answer.error().str());
    if (json)
        fmt::print("{}\n", dump(*answer));
    else
        fmt::print("{}: {}\n", pid,
                   command == "off" ? "originals restored, tuning stopped" : "tuning on");
    return kOk;
}

}  // namespace ttt::cli
