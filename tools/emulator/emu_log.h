// Diagnostics of the emulated GPU: TTT_EMU_LOG names a file, or is "stderr"; nothing is written
// without it.
#pragma once

#include <fmt/format.h>

#include <string_view>

namespace ttt::emulator {

bool log_enabled();
void log_line(std::string_view line);

template <typename... A>
void note(fmt::format_string<A...> format, A&&... args) {
    if (log_enabled()) log_line(fmt::format(format, std::forward<A>(args)...));
}

}  // namespace ttt::emulator
