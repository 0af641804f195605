#include "command.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

extern char** environ;

namespace ttt::cli_test {
namespace {

struct Scratch {
    Scratch() {
        std::string pattern =
            (std::filesystem::temp_directory_path() / "ttt-cli-test-XXXXXX").string();
        if (::mkdtemp(pattern.data()) == nullptr) std::abort();
        path = pattern;
    }
    ~Scratch() {
        std::error_code ignored;
        std::filesystem::remove_all(path, ignored);
    }
    std::string path;
};
const std::string& scratch() {
    static const Scratch folder;
    return folder.path;
}

std::string slurp(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

}  // namespace

Ran run_program(const Words& command, const Environment& environment) {
    static int serial = 0;
    const std::string out = scratch_path("out" + std::to_string(++serial)), err = out + ".err";
    Words words = command, variables;
    for (char** e = environ; *e != nullptr; ++e) {
        const std::string entry = *e;
        if (environment.count(entry.substr(0, entry.find('='))) == 0) variables.push_back(entry);
    }
    for (const auto& [k, v] : environment) variables.push_back(k + "=" + v);
    std::vector<char*> argv, envp;
    for (auto& w : words) argv.push_back(w.data());
    for (auto& v : variables) envp.push_back(v.data());
    argv.push_back(nullptr);
    envp.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    pid_t pid = 0;
    Ran ran;
    if (posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), envp.data()) == 0) {
        int status = 0;
        ::waitpid(pid, &status, 0);
        ran.rc = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        ran.out = slurp(out);
        ran.err = slurp(err);
    }
    posix_spawn_file_actions_destroy(&actions);
    return ran;
}

Ran ttt(const Words& args, const Environment& environment) {
    Words command{binary("ttt")};
    command.insert(command.end(), args.begin(), args.end());
    return run_program(command, environment);
}

std::string scratch_path(const std::string& name) { return scratch() + "/" + name; }

std::string scratch_file(const std::string& name, const std::string& content) {
    std::ofstream(scratch_path(name), std::ios::binary) << content;
    return scratch_path(name);
}

std::string data(const std::string& name) { return TTT_SOURCE_DIR "/tests/data/" + name; }
std::string binary(const std::string& name) { return TTT_BINARY_DIR "/bin/" + name; }

bool is_one_line(const std::string& err) {
    return err.starts_with("ttt: ") && err.ends_with('\n') &&
           std::count(err.begin(), err.end(), '\n') == 1;
}

}  // namespace ttt::cli_test
