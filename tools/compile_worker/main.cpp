// ttt-compile LIBRARY: assembles PTX with the nvJitLink at LIBRARY for the process on descriptor 3.
#include <fcntl.h>

#include <cstdio>

#include "compile/worker.h"

int main(int argc, char** argv) {
    if (argc != 2 || ::fcntl(ttt::compile::kWorkerChannel, F_GETFD) == -1) {
        std::fputs(
            "ttt-compile is started by ttt; it takes the path of nvJitLink and a channel on "
            "descriptor 3\n",
            stderr);
        return 2;
    }
    return ttt::compile::serve(argv[1]);
}
