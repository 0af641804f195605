#include "base/log.h"

#define SPDLOG_FMT_EXTERNAL
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <memory>
#include <string>

namespace ttt::log {
namespace {

// Leaked on purpose: no static destructor may run while the host program still logs through us at
// exit.
std::atomic<spdlog::logger*> g_logger{nullptr};
std::atomic<int> g_level{static_cast<int>(Level::kInfo)};

spdlog::level::level_enum to_spd(Level level) {
    switch (level) {
        case Level::kDebug:
            return spdlog::level::debug;
        case Level::kInfo:
            return spdlog::level::info;
        case Level::kWarn:
            return spdlog::level::warn;
        case Level::kError:
            return spdlog::level::err;
    }
    return spdlog::level::info;
}

}  // namespace

void init(std::string_view process_name, std::string_view path, bool to_stderr, Level level) {
    try {
        spdlog::sink_ptr sink;
        if (!path.empty())
            sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(std::string(path));
        else if (to_stderr)
            sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
        if (!sink) return;
        auto* logger = new spdlog::logger(std::string(process_name), sink);
        logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e %n[%P] %l: %v");
        logger->set_level(to_spd(level));
        logger->flush_on(spdlog::level::info);
        g_level.store(static_cast<int>(level));
        g_logger.store(logger);
    } catch (...) {  // an unwritable log file never stops anything
    }
}

bool enabled(Level level) {
    return g_logger.load(std::memory_order_acquire) != nullptr &&
           static_cast<int>(level) >= g_level.load(std::memory_order_relaxed);
}

void write(Level level, std::string_view message) {
    spdlog::logger* logger = g_logger.load(std::memory_order_acquire);
    if (logger == nullptr) return;
    try {
        logger->log(to_spd(level), "{}", message);
    } catch (...) {
    }
}

}  // namespace ttt::log
