// The tuner's JSON report: waited for, checked for shape, printed as a table.
#pragma once

#include <sys/types.h>

#include <nlohmann/json.hpp>
#include <string>

#include "base/result.h"

namespace ttt::cli {

using Json = nlohmann::ordered_json;

// Waits for the report of a program that has just ended: at most `seconds` while its tuner is at
// work, a moment when there is none. kTimeout or kNotFound when no report came, kParse when it is
// not a JSON object with a list `sites`.
Result<Json> wait_for_report(const std::string& path, pid_t program, double seconds);

// The site with every key of the report format, in its order; missing ones get null, [] or false.
Json complete_site(const Json& site);
bool is_final(const Json& site);  // nothing more will happen to it
std::string table(const Json& sites);
std::string dump(const Json& json);  // one line; bytes that are not UTF-8 are replaced

// A private folder under TMPDIR, removed with its contents.
class TemporaryFolder {
  public:
    TemporaryFolder();
    ~TemporaryFolder();
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    bool ok() const { return !path_.empty(); }
    std::string file(const char* name) const { return path_ + "/" + name; }

  private:
    std::string path_;
};

}  // namespace ttt::cli
