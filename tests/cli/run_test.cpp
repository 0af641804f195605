// `ttt run` around a program that uses no GPU: environment, exit codes, signals, reports; and
// questions to nobody.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "command.h"

namespace ttt::cli_test {
namespace {

const std::string kLibrary = TTT_BINARY_DIR "/lib/libcli_preload.so";
const Environment kEnvironment{{"TTT_LIBRARY", kLibrary}, {"XDG_RUNTIME_DIR", "/nonexistent"}};

Ran run_child(const Words& options, const Words& child, Environment extra = {}) {
    Words args{"run"};
    args.insert(args.end(), options.begin(), options.end());
    args.insert(args.end(), {"--", binary("cli_child")});
    args.insert(args.end(), child.begin(), child.end());
    extra.insert(kEnvironment.begin(), kEnvironment.end());
    return ttt(args, extra);
}

TEST(Run, ExitCodeIsTheProgramsOwn) {
    for (int code : {0, 1, 2, 77, 255})
        EXPECT_EQ(run_child({}, {"exit", std::to_string(code)}).rc, code);
    for (int signal : {SIGKILL, SIGSEGV, SIGABRT})
        EXPECT_EQ(run_child({}, {"kill", std::to_string(signal)}).rc, 128 + signal);
}

TEST(Run, SignalsReachTheProgram) {
    EXPECT_EQ(run_child({}, {"signal-parent", std::to_string(SIGTERM)}).rc, 43);
    EXPECT_EQ(run_child({}, {"signal-parent", std::to_string(SIGUSR1)}).rc, 44);
}

TEST(Run, MissingProgramIs127) {
    const Ran r = ttt({"run", "--", "/nonexistent/program"}, kEnvironment);
    EXPECT_EQ(r.rc, 127);
    EXPECT_TRUE(is_one_line(r.err)) << r.err;
    EXPECT_EQ(ttt({"run", "--", "/etc/passwd"}, kEnvironment).rc, 126);
}

TEST(Run, ArgumentsOfTheProgramAreUntouched) {
    const Ran r = run_child({}, {"args", "--json", "--mode", "x y", "", "--", "-h"});
    EXPECT_EQ(r.rc, 0);
    EXPECT_EQ(r.out, "[--json]\n[--mode]\n[x y]\n[]\n[--]\n[-h]\n");
}

TEST(Run, PreloadGoesBeforeTheUsersOwn) {
    EXPECT_EQ(run_child({}, {"env", "LD_PRELOAD"}).out, kLibrary + "\n");
    // The user's list is kept, in order.
    const std::string other =
        std::filesystem::path(kLibrary).parent_path() / "../lib/libcli_preload.so";
    EXPECT_EQ(run_child({}, {"env", "LD_PRELOAD"}, {{"LD_PRELOAD", other}}).out,
              kLibrary + ":" + other + "\n");
}

TEST(Run, LibraryThatCannotBePreloadedIsSaid) {
    const std::string spaced = scratch_path("with space.so");
    std::filesystem::create_symlink(kLibrary, spaced);
    const Ran r = ttt({"run", "--", "/bin/true"}, {{"TTT_LIBRARY", spaced}});
    EXPECT_EQ(r.rc, 1);
    EXPECT_TRUE(is_one_line(r.err)) << r.err;
    EXPECT_NE(r.err.find("space"), std::string::npos) << r.err;
    const Ran doctor = ttt({"doctor", "--json"}, {{"TTT_LIBRARY", spaced}});
    EXPECT_NE(doctor.out.find("folder without space"), std::string::npos) << doctor.out;
}

TEST(Run, OptionsBecomeEnvironment) {
    EXPECT_EQ(run_child({"--mode", "observe"}, {"env", "TTT_MODE"}).out, "observe\n");
    EXPECT_EQ(run_child({"--foreground", "2.5"}, {"env", "TTT_FOREGROUND"}).out, "2.5\n");
    EXPECT_EQ(run_child({}, {"env", "TTT_FOREGROUND"}).out, "(unset)\n");
    EXPECT_EQ(run_child({}, {"env", "TTT_MODE"}, {{"TTT_MODE", "tune"}}).out,
              "tune\n");  // the user's own stays
    EXPECT_NE(run_child({}, {"env", "TTT_REPORT"}).out, "(unset)\n");
}

const char kReport[] =
    R"({"sites":[{"name":"k","grid":[1,2,3],"block":[32,1,1],"launches":7,"share":0.5,"base_us":2.0,"best_us":1.0,"speedup":2.0,"bit_exact":true,"state":"committed"}]})";

TEST(Run, ReportAsTableAndAsJson) {
    const Ran text = run_child({}, {"report", kReport});
    EXPECT_EQ(text.rc, 0);
    EXPECT_EQ(text.out, "");
    EXPECT_NE(text.err.find("1x2x3"), std::string::npos) << text.err;
    EXPECT_NE(text.err.find("committed"), std::string::npos) << text.err;
    const Ran json = run_child({"--json"}, {"report", kReport});
    EXPECT_EQ(json.json()["sites"][0]["speedup"], 2.0) << json.out;
    const auto file = scratch_file("report.json", "an old one");
    EXPECT_EQ(run_child({"--report", file}, {"report", kReport}).rc, 0);
    EXPECT_TRUE(std::filesystem::file_size(file) > 20);
}

TEST(Run, NoReportIsSaidAndHarmsNothing) {
    const auto file = scratch_file("stale.json", kReport);
    const Ran r = run_child({"--report", file}, {"exit", "5"});
    EXPECT_EQ(r.rc, 5);
    EXPECT_TRUE(is_one_line(r.err)) << r.err;
    const auto written = nlohmann::json::parse(std::ifstream(file));
    EXPECT_TRUE(written["sites"].empty()) << "an old report is never shown as new: " << written;
    EXPECT_NE(written["reason"].get<std::string>().find("no report"), std::string::npos);
    EXPECT_EQ(run_child({}, {"report", "[1,2]"}).rc, 0);
    const std::string folder = file + ".d";
    std::filesystem::create_directory(folder);
    EXPECT_EQ(run_child({"--report", folder}, {"exit", "0"}).rc, 2);
    EXPECT_TRUE(std::filesystem::exists(folder)) << "an empty folder was deleted";
    EXPECT_EQ(run_child({"--report", "/dev/null"}, {"exit", "0"}).rc, 2);
    EXPECT_EQ(run_child({}, {"report", R"({"sites":[3]})"}).rc, 0);
}

TEST(Process, NobodyThere) {
    const std::string pid = std::to_string(::getpid());
    for (const Words& args :
         {Words{"status", pid}, Words{"explain", pid}, Words{"off", pid}, Words{"on", pid}}) {
        const Ran r = ttt(args, kEnvironment);
        EXPECT_EQ(r.rc, 1) << args[0];
        EXPECT_TRUE(is_one_line(r.err)) << r.err;
    }
    const Ran all = ttt({"status", "--json"}, kEnvironment);
    EXPECT_EQ(all.rc, 0);
    EXPECT_TRUE(all.json()["processes"].is_array()) << all.out;
}

TEST(Doctor, NamesEveryCheckWithAdviceForWhatIsMissing) {
    const Ran r =
        ttt({"doctor", "--json"}, {{"TTT_FOREGROUND", "soon"}, {"TTT_TUNER", "/nonexistent"}});
    const auto j = r.json();
    ASSERT_TRUE(j.is_object()) << r.out << r.err;
    ASSERT_GE(j["checks"].size(), 8u);
    EXPECT_EQ(r.rc, j["healthy"].get<bool>() ? 0 : 1);
    for (const auto& c : j["checks"]) {
        EXPECT_FALSE(c["name"].get<std::string>().empty());
        const bool fine = c["result"] == "ok";
        EXPECT_TRUE(fine || !c["advice"].get<std::string>().empty()) << c;
        const bool settings = c["name"] == "settings";
        EXPECT_TRUE(!settings || c["result"] == "warning") << c;
    }
}

}  // namespace
}  // namespace ttt::cli_test
