#include "driver_table/fault_plan.h"

#include <charconv>
#include <cmath>
#include <cstdlib>

namespace ttt::driver_table {
namespace {

template <typename T>
std::optional<T> number(std::string_view text) {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

}  // namespace

FaultPlan::FaultPlan(std::string_view text) {
    while (!text.empty()) {
        const size_t end = text.find(';');
        const std::string_view rule = text.substr(0, end);
        text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
        if (rule.empty() || add(rule)) continue;
        problems_ += (problems_.empty() ? "" : ", ") + std::string("bad fault rule '");
        problems_ += std::string(rule) + "'";
    }
}

bool FaultPlan::add(std::string_view rule) {
    const size_t colon = rule.find(':');
    const size_t equals = rule.find('=', colon == std::string_view::npos ? 0 : colon);
    if (colon == std::string_view::npos || equals == std::string_view::npos) return false;
    const std::string_view name = rule.substr(0, colon);
    std::string_view when = rule.substr(colon + 1, equals - colon - 1);
    const std::string_view what = rule.substr(equals + 1);
    if (when == "slow") return add_slowdown(name, what);
    uint64_t first = 1, last = ~uint64_t{0};
    if (when != "*") {
        const bool open = when.ends_with('+');
        if (open) when.remove_suffix(1);
        const auto n = number<uint64_t>(when);
        if (!n || *n == 0) return false;
        first = *n;
        if (!open) last = first;
    }
    const auto code =
        what == "fault" && name == "launch" ? std::optional<int>(kFault) : number<int>(what);
    if (name.empty() || !code || *code == 0 || (*code < 0 && *code != kFault)) return false;
    Rule& added = rules_.emplace_back();
    added.name = name;
    added.first = first;
    added.last = last;
    added.code = *code;
    return true;
}

bool FaultPlan::add_slowdown(std::string_view name, std::string_view factor) {
    const auto value = number<double>(factor);
    if (!value || !std::isfinite(*value) || *value <= 0) return false;
    if (name == "copy") {
        copy_slowdown_ = *value;
    } else if (name == "launch") {
        launch_slowdown_ = *value;
    } else {
        return false;
    }
    return true;
}

int FaultPlan::count(Rule& rule) {
    const uint64_t n = rule.calls.fetch_add(1, std::memory_order_relaxed) + 1;
    return n >= rule.first && n <= rule.last ? rule.code : 0;
}

int FaultPlan::on_call(std::string_view base, std::string_view symbol) {
    int code = 0;
    for (Rule& rule : rules_) {
        if (rule.name != base && rule.name != symbol) continue;
        const int hit = count(rule);  // every rule counts, whichever one decides
        if (code == 0) code = hit;
    }
    return code;
}

int FaultPlan::on_launch() { return on_call("launch", "launch"); }

FaultPlan& process_fault_plan() {
    static FaultPlan* plan = [] {
        const char* text = std::getenv("TTT_EMU_FAULT");
        return new FaultPlan(text != nullptr ? text : "");  // lives as long as the driver's calls
    }();
    return *plan;
}

}  // namespace ttt::driver_table
