// Structured log lines (spdlog). The in-process library logs only to the file that TTT_LOG names,
// never to the program's stdout or stderr; tools log to stderr at warning level, or to TTT_LOG.
#pragma once

#include <fmt/format.h>

#include <string_view>

namespace ttt::log {

enum class Level { kDebug, kInfo, kWarn, kError };

// Call once at start. `path` empty: stderr if `to_stderr`, else nothing is ever written.
void init(std::string_view process_name, std::string_view path, bool to_stderr,
          Level level = Level::kInfo);
bool enabled(Level level);
void write(Level level, std::string_view message);

template <typename... A>
void debug(fmt::format_string<A...> f, A&&... a) {
    if (enabled(Level::kDebug)) write(Level::kDebug, fmt::format(f, std::forward<A>(a)...));
}
template <typename... A>
void info(fmt::format_string<A...> f, A&&... a) {
    if (enabled(Level::kInfo)) write(Level::kInfo, fmt::format(f, std::forward<A>(a)...));
}
template <typename... A>
void warn(fmt::format_string<A...> f, A&&... a) {
    if (enabled(Level::kWarn)) write(Level::kWarn, fmt::format(f, std::forward<A>(a)...));
}
template <typename... A>
void error(fmt::format_string<A...> f, A&&... a) {
    if (enabled(Level::kError)) write(Level::kError, fmt::format(f, std::forward<A>(a)...));
}

}  // namespace ttt::log
