// Program that `ttt run` is tested with: child WHAT [ARG].
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

void on_signal(int signal) { _exit(signal == SIGTERM ? 43 : 44); }

}  // namespace

int main(int argc, char** argv) {
    const char* what = argc > 1 ? argv[1] : "";
    const char* value = argc > 2 ? argv[2] : "";
    if (std::strcmp(what, "exit") == 0) return std::atoi(value);
    if (std::strcmp(what, "kill") == 0) {
        signal(std::atoi(value), SIG_DFL);  // a sanitizer has handlers of its own
        return kill(getpid(), std::atoi(value));
    }
    if (std::strcmp(what, "env") == 0) {
        const char* found = std::getenv(value);
        std::printf("%s\n", found != nullptr ? found : "(unset)");
        return 0;
    }
    if (std::strcmp(what, "args") == 0) {
        for (int i = 2; i < argc; ++i) std::printf("[%s]\n", argv[i]);
        return 0;
    }
    if (std::strcmp(what, "report") == 0) {  // plays the tuner
        FILE* f = std::fopen(std::getenv("TTT_REPORT"), "w");
        if (f == nullptr) return 9;
        std::fputs(value, f);
        return std::fclose(f);
    }
    if (std::strcmp(what, "signal-parent") == 0) {  // has the signal forwarded to itself
        signal(SIGTERM, on_signal);
        signal(SIGUSR1, on_signal);
        kill(getppid(), std::atoi(value));
        sleep(20);
        return 99;
    }
    return 98;
}
