#include "report.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <thread>

#include "installation.h"
#include "tuner_socket.h"

namespace ttt::cli {
namespace {

using Clock = std::chrono::steady_clock;

// nullopt-like: a discarded value while the file is missing or half written.
Json read_json(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) return Json(nlohmann::detail::value_t::discarded);
    return Json::parse(in, nullptr, false);
}

bool final_one(const Json& report) {
    return !report.contains("final") || !report["final"].is_boolean() ||
           report["final"].get<bool>();
}

bool has_shape(const Json& report) {
    if (!report.is_object() || !report.contains("sites") || !report["sites"].is_array())
        return false;
    return std::all_of(report["sites"].begin(), report["sites"].end(),
                       [](const Json& s) { return s.is_object(); });
}

std::string number(const Json& value, const char* format) {
    return value.is_number() ? fmt::format(fmt::runtime(format), value.get<double>()) : "-";
}

std::string text(const Json& value) { return value.is_string() ? value.get<std::string>() : ""; }

std::string extent(const Json& value) {
    if (!value.is_array() || value.size() != 3) return "?";
    std::string out;
    for (const auto& v : value) out += (out.empty() ? "" : "x") + v.dump();
    return out;
}

std::string clip(std::string s, size_t width) {
    return s.size() <= width ? s : s.substr(0, width - 3) + "...";
}

}  // namespace

Result<Json> wait_for_report(const std::string& path, pid_t program, double seconds) {
    constexpr auto kGrace = std::chrono::milliseconds(200);  // after the tuner's socket has gone
    const auto start = Clock::now();
    const auto end =
        start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    auto last_seen = start;
    for (;;) {
        const Json report = read_json(path);
        const bool there = !report.is_discarded();
        if (there && !has_shape(report))
            return make_error(Code::kParse,
                              path + ": not a report (an object with a list `sites`)");
        // The tuner rewrites its report as it goes; the last one is marked.
        if (there && final_one(report)) return report;
        const auto now = Clock::now();
        if (has_tuner(program)) last_seen = now;
        if (now > end || now > last_seen + kGrace) {
            if (there) return report;  // of a tuner that was killed, or is stuck
            if (now > end)
                return make_error(
                    Code::kTimeout,
                    fmt::format("the tuner wrote no report within {:.0f} s", seconds));
            return make_error(Code::kNotFound,
                              "no report: the program launched no CUDA kernel, or the tuner did "
                              "not start (see ttt doctor)");
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
}

Json complete_site(const Json& site) {
    Json out;
    const std::array<std::pair<const char*, Json>, 15> keys{{{"name", ""},
                                                             {"grid", Json::array()},
                                                             {"block", Json::array()},
                                                             {"shared", 0},
                                                             {"launches", 0},
                                                             {"share", nullptr},
                                                             {"eligible", false},
                                                             {"reason", ""},
                                                             {"tried", 0},
                                                             {"verdicts", Json::array()},
                                                             {"base_us", nullptr},
                                                             {"best_us", nullptr},
                                                             {"speedup", nullptr},
                                                             {"bit_exact", nullptr},
                                                             {"state", "unknown"}}};
    for (const auto& [key, missing] : keys) out[key] = site.contains(key) ? site[key] : missing;
    for (const auto& [key, value] : site.items())
        if (!out.contains(key)) out[key] = value;
    return out;
}

bool is_final(const Json& site) {
    static constexpr std::array kFinal{"ineligible", "observed",    "validated", "committed",
                                       "kept",       "rolled_back", "failed"};
    const std::string state = site.contains("state") ? text(site["state"]) : "";
    return std::find(kFinal.begin(), kFinal.end(), state) != kFinal.end();
}

std::string table(const Json& sites) {
    std::string out = fmt::format(
        "{:<28} {:>12} {:>10} {:>9} {:>6} {:>10} {:>10} {:>8} {:>5}  {}\n", "kernel", "grid",
        "block", "launches", "share", "before us", "after us", "speedup", "bits", "state");
    for (const auto& raw : sites) {
        const Json s = complete_site(raw);
        const std::string share =
            s["share"].is_number() ? fmt::format("{:.0f}%", 100 * s["share"].get<double>()) : "-";
        const std::string bits =
            s["bit_exact"].is_boolean() ? (s["bit_exact"].get<bool>() ? "same" : "DIFF") : "-";
        const std::string reason = text(s["reason"]);
        out += fmt::format("{:<28} {:>12} {:>10} {:>9} {:>6} {:>10} {:>10} {:>8} {:>5}  {}{}\n",
                           clip(text(s["name"]), 28), extent(s["grid"]), extent(s["block"]),
                           s["launches"].dump(), share, number(s["base_us"], "{:.2f}"),
                           number(s["best_us"], "{:.2f}"), number(s["speedup"], "{:.3f}"), bits,
                           text(s["state"]), reason.empty() ? "" : ": " + reason);
    }
    return out;
}

std::string dump(const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

TemporaryFolder::TemporaryFolder() {
    std::string folder = environment("TMPDIR");
    folder = (folder.empty() ? "/tmp" : folder) + "/ttt-run-XXXXXX";
    if (::mkdtemp(folder.data()) != nullptr) path_ = folder;
}

TemporaryFolder::~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace ttt::cli
