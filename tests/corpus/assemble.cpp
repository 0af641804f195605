#include "assemble.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "image/elf.h"

namespace ttt::corpus {
namespace {

namespace fs = std::filesystem;

class TemporaryFolder {
  public:
    TemporaryFolder() {
        std::string pattern = (fs::temp_directory_path() / "ttt-assemble-XXXXXX").string();
        if (::mkdtemp(pattern.data()) != nullptr) path_ = pattern;
    }
    ~TemporaryFolder() {
        std::error_code ignored;
        if (!path_.empty()) fs::remove_all(path_, ignored);
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    std::string file(const char* name) const { return path_ + "/" + name; }

  private:
    std::string path_;
};

std::string read_file(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// Exit status of the command, its output in `log`; -1 when it could not be run.
int run(const std::vector<std::string>& command, const std::string& log) {
    std::vector<char*> argv;
    for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                       0600);
    ::posix_spawn_file_actions_adddup2(&actions, 1, 2);
    pid_t child = 0;
    const int failed = ::posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    int status = 0;
    if (failed != 0 || ::waitpid(child, &status, 0) != child) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// First word after .target, the architecture: "sm_90a".
std::string target_of(const std::string& ptx) {
    size_t at = ptx.find(".target");
    if (at == std::string::npos) return "sm_90";
    at = ptx.find_first_not_of(" \t", at + 7);
    return ptx.substr(at, ptx.find_first_of(" \t\r\n,;/", at) - at);
}

Result<std::map<std::string, std::string>> text_sections(const std::string& cubin) {
    TTT_TRY(const image::ElfFile elf, image::read_elf(std::as_bytes(std::span(cubin))));
    std::map<std::string, std::string> sections;
    for (const image::Section& s : elf.sections)
        if (s.name.starts_with(".text"))
            sections.emplace(
                s.name, std::string(reinterpret_cast<const char*>(s.data.data()), s.data.size()));
    return sections;
}

}  // namespace

std::string find_ptxas() {
    std::vector<fs::path> places;
    if (const char* path = std::getenv("TTT_PTXAS")) places.emplace_back(path);
    if (const char* home = std::getenv("CUDA_HOME")) places.push_back(fs::path(home) / "bin/ptxas");
    places.emplace_back("/usr/local/cuda/bin/ptxas");
    std::string list = std::getenv("PATH") != nullptr ? std::getenv("PATH") : "";
    for (size_t begin = 0; begin < list.size();) {
        const size_t end = std::min(list.find(':', begin), list.size());
        places.push_back(fs::path(list.substr(begin, end - begin)) / "ptxas");
        begin = end + 1;
    }
    for (const fs::path& place : places)
        if (::access(place.c_str(), X_OK) == 0) return place.string();
    return {};
}

Result<std::map<std::string, std::string>> machine_code(const std::string& ptxas,
                                                        const std::string& ptx) {
    const TemporaryFolder folder;
    const std::string in = folder.file("in.ptx"), out = folder.file("out.cubin"),
                      log = folder.file("log");
    std::ofstream(in, std::ios::binary) << ptx;
    const std::string arch = "-arch=" + target_of(ptx);
    int status = run({ptxas, arch, in, "-o", out}, log);
    // Modules that call functions of other modules assemble only as relocatable objects.
    if (status != 0 && read_file(log).find("nresolved extern") != std::string::npos)
        status = run({ptxas, arch, "-c", in, "-o", out}, log);
    if (status != 0) {
        const std::string said = read_file(log);
        return make_error(Code::kCompile, said.substr(0, said.find('\n')));
    }
    return text_sections(read_file(out));
}

}  // namespace ttt::corpus
