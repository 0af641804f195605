#include "emulator/emu_log.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace ttt::emulator {
namespace {

std::FILE* open_log() {
    const char* path = std::getenv("TTT_EMU_LOG");
    if (path == nullptr || *path == '\0') return nullptr;
    return std::strcmp(path, "stderr") == 0 ? stderr : std::fopen(path, "ae");
}

std::FILE* log_file() {
    static std::FILE* file = open_log();
    return file;
}

}  // namespace

bool log_enabled() { return log_file() != nullptr; }

void log_line(std::string_view line) {
    if (std::FILE* file = log_file()) {
        std::fprintf(file, "emulator: %.*s\n", static_cast<int>(line.size()), line.data());
        std::fflush(file);  // the program may end by a signal
    }
}

}  // namespace ttt::emulator
