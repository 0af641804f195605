// Runs `ttt` (or any program) and keeps what it printed.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace ttt::cli_test {

struct Ran {
    int rc = -1;  // 128 + signal when killed
    std::string out, err;
    nlohmann::json json() const { return nlohmann::json::parse(out, nullptr, false); }
};

using Words = std::vector<std::string>;
using Environment = std::map<std::string, std::string>;

Ran run_program(const Words& command, const Environment& environment = {});
Ran ttt(const Words& args, const Environment& environment = {});

// A file in a folder that goes away with the test program.
std::string scratch_file(const std::string& name, const std::string& content);
std::string scratch_path(const std::string& name);
std::string data(const std::string& name);    // under tests/data
std::string binary(const std::string& name);  // under bin/ of the build

// Exactly one line, starting with "ttt: ".
bool is_one_line(const std::string& err);

}  // namespace ttt::cli_test
