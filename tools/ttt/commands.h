// The commands of `ttt`, one function each: options in, exit code out. main.cpp fills the options
// from the command line. Results go to stdout, complaints to stderr as one line. With `json` stdout
// holds one JSON value and nothing else.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ttt::cli {

inline constexpr int kOk = 0;
inline constexpr int kFailed =
    1;  // the thing asked about failed: kernel error, malformed file, nothing to talk to
inline constexpr int kUsage = 2;  // wrong arguments or an unreadable input

struct RunOptions {
    std::string mode;       // empty: as TTT_MODE says, else apply
    double foreground = 0;  // seconds
    std::string report;     // file; empty: a temporary one
    std::string emulate;    // profile of the emulated GPU; empty: the system's driver
    std::vector<std::string> command;
    bool json = false;
};
int run(const RunOptions& options);

struct StatusOptions {
    int pid = 0;
    bool json = false;
};  // pid 0: every process of this user
int status(const StatusOptions& options);
int explain_process(int pid, bool json);
int switch_process(int pid, std::string_view command, bool json);  // "on" | "off"

struct KernelOptions {  // commands about one kernel in a file
    std::string file, spec, recipe, out, entry;
    double budget = 60;   // seconds, tune
    std::string emulate;  // tune
    std::string arch = "sm_90";
    bool json = false;
};
int ptx_check(const std::vector<std::string>& files, bool json);
int ptx_exec(const KernelOptions& options);
int ptx_apply(const KernelOptions& options);
int variants(const KernelOptions& options);
int explain_file(const KernelOptions& options);
int tune(const KernelOptions& options);

int bench_launch(bool json);
int doctor(bool json);

// "ttt: what" on stderr; returns `code`, so that a command can end with it.
int complain(int code, std::string_view what);

}  // namespace ttt::cli
