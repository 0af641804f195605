// Wrong arguments: one clear line on stderr, nothing on stdout, exit code 2.
#include <gtest/gtest.h>

#include "command.h"

namespace ttt::cli_test {
namespace {

struct Wrong {
    const char* what;
    Words args;
    const char* mentions;
};

class WrongArguments : public testing::TestWithParam<Wrong> {};

TEST_P(WrongArguments, OneLineAndTwo) {
    const Ran r = ttt(GetParam().args);
    EXPECT_EQ(r.rc, 2) << r.out << r.err;
    EXPECT_TRUE(is_one_line(r.err)) << r.err;
    EXPECT_EQ(r.out, "");
    EXPECT_NE(r.err.find(GetParam().mentions), std::string::npos) << r.err;
}

INSTANTIATE_TEST_SUITE_P(
    All, WrongArguments,
    testing::Values(
        Wrong{"NoCommand", {}, "subcommand"}, Wrong{"UnknownCommand", {"frobnicate"}, "frobnicate"},
        Wrong{"UnknownOption", {"status", "--colour"}, "--colour"},
        Wrong{"RunWithoutCommand", {"run"}, "--"},
        Wrong{"RunWithEmptyCommand", {"run", "--"}, "--"},
        Wrong{"RunCommandWithoutDashes", {"run", "ls"}, "ls"},
        Wrong{"RunBadMode", {"run", "--mode", "turbo", "--", "true"}, "turbo"},
        Wrong{"RunNegativeForeground", {"run", "--foreground", "-1", "--", "true"}, "foreground"},
        Wrong{"RunForegroundNotANumber", {"run", "--foreground", "soon", "--", "true"}, "soon"},
        Wrong{"RunUnknownProfile", {"run", "--emulate", "v100", "--", "true"}, "v100"},
        Wrong{"CommandElsewhere", {"doctor", "--", "true"}, "run"},
        Wrong{"StatusNotAPid", {"status", "abc"}, "abc"},
        Wrong{"StatusNegative", {"status", "0"}, "PID"}, Wrong{"OffWithoutPid", {"off"}, "PID"},
        Wrong{"OnNotAPid", {"on", "x"}, "x"}, Wrong{"ExplainNothing", {"explain"}, "TARGET"},
        Wrong{"ExplainMissingFile", {"explain", "/nonexistent.ptx"}, "/nonexistent.ptx"},
        Wrong{"ExplainPidWithSpec", {"explain", "1", "--launch", "x.json"}, "--launch"},
        Wrong{"SpecIsAFolder", {"ptx", "exec", "x.ptx", "--launch", "/tmp"}, "is a directory"},
        Wrong{"PtxAlone", {"ptx"}, "subcommand"}, Wrong{"CheckNothing", {"ptx", "check"}, "FILE"},
        Wrong{"ExecWithoutSpec", {"ptx", "exec", "x.ptx"}, "--launch"},
        Wrong{"ApplyWithoutRecipe", {"ptx", "apply", "x.ptx", "-o", "y"}, "--recipe"},
        Wrong{"ApplyWithoutOutput", {"ptx", "apply", "x.ptx", "--recipe", "pin_rounding"}, "-o"},
        Wrong{"VariantsWithoutSpec", {"variants", "x.ptx"}, "--launch"},
        Wrong{"TuneWithoutSpec", {"tune", "x.ptx"}, "--launch"},
        Wrong{"TuneZeroBudget", {"tune", "x.ptx", "--launch", "y", "--budget", "0"}, "budget"},
        Wrong{"BenchAlone", {"bench"}, "subcommand"},
        Wrong{"BenchWhat", {"bench", "everything"}, "everything"}),
    [](const auto& wrong) { return wrong.param.what; });

TEST(Arguments, HelpAndVersionAreNoErrors) {
    for (const char* option : {"--help", "--version"}) {
        const Ran r = ttt({option});
        EXPECT_EQ(r.rc, 0) << option;
        EXPECT_FALSE(r.out.empty()) << option;
        EXPECT_EQ(r.err, "") << option;
    }
    EXPECT_NE(ttt({"run", "--help"}).out.find("--foreground"), std::string::npos);
}

}  // namespace
}  // namespace ttt::cli_test
