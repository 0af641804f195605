// Launch specs that cannot be right: one line naming what is wrong, exit code 2, nothing executed,
// no crash.
#include <gtest/gtest.h>

#include "command.h"

namespace ttt::cli_test {
namespace {

struct Bad {
    const char* what;
    const char* json;
    const char* mentions;
};

class BadSpec : public testing::TestWithParam<Bad> {};

TEST_P(BadSpec, OneLineAndTwo) {
    const auto spec = scratch_file("bad.json", GetParam().json);
    for (const Words& command : {Words{"ptx", "exec"}, Words{"variants"}, Words{"tune"}}) {
        Words args = command;
        args.insert(args.end(), {data("hazards/r01_exit.ptx"), "--launch", spec, "--json"});
        const Ran r = ttt(args);
        EXPECT_EQ(r.rc, 2) << command[0] << ": " << r.out << r.err;
        EXPECT_EQ(r.out, "") << command[0];
        EXPECT_TRUE(is_one_line(r.err)) << command[0] << ": " << r.err;
        EXPECT_NE(r.err.find(GetParam().mentions), std::string::npos)
            << command[0] << ": " << r.err;
    }
}

INSTANTIATE_TEST_SUITE_P(
    All, BadSpec,
    testing::Values(
        Bad{"Empty", "", ""}, Bad{"NotJson", "{\"entry\":", ""}, Bad{"Array", "[1,2]", ""},
        Bad{"NoEntry", R"({"grid":[1,1,1],"block":[1,1,1],"args":[]})", "entry"},
        Bad{"NoGrid", R"({"entry":"k","block":[1,1,1],"args":[]})", "grid"},
        Bad{"NoBlock", R"({"entry":"k","grid":[1,1,1],"args":[]})", "block"},
        Bad{"EntryNumber", R"({"entry":5,"grid":[1,1,1],"block":[1,1,1],"args":[]})", "entry"},
        Bad{"GridText", R"({"entry":"k","grid":"big","block":[1,1,1],"args":[]})", "grid"},
        Bad{"GridZero",
            R"({"entry":"k","grid":[0,1,1],"block":[1,1,1],"args":[{"buffer":{"bytes":64}},{"u32":4}]})",
            "grid"},
        Bad{"GridNegative", R"({"entry":"k","grid":[-1,1,1],"block":[1,1,1],"args":[]})", "grid"},
        Bad{"GridHuge", R"({"entry":"k","grid":[99999999999,1,1],"block":[1,1,1],"args":[]})",
            "grid"},
        Bad{"BlockTooBig",
            R"({"entry":"k","grid":[1,1,1],"block":[1024,2,1],"args":[{"buffer":{"bytes":64}},{"u32":4}]})",
            "block"},
        Bad{"SharedNegative",
            R"({"entry":"k","grid":[1,1,1],"block":[1,1,1],"shared":-4,"args":[]})", "shared"},
        Bad{"ArgsObject", R"({"entry":"k","grid":[1,1,1],"block":[1,1,1],"args":{}})", "args"},
        Bad{"ArgUnknown", R"({"entry":"k","grid":[1,1,1],"block":[1,1,1],"args":[{"u33":1}]})",
            "u33"},
        Bad{"BufferNegative",
            R"({"entry":"k","grid":[1,1,1],"block":[1,1,1],"args":[{"buffer":{"bytes":-1}},{"u32":4}]})",
            "bytes"},
        Bad{"BufferHuge",
            R"({"entry":"k","grid":[1,1,1],"block":[1,1,1],"args":[{"buffer":{"bytes":18446744073709551615}},{"u32":4}]})",
            ""},
        Bad{"BufferText",
            R"({"entry":"k","grid":[1,1,1],"block":[1,1,1],"args":[{"buffer":{"bytes":"64"}},{"u32":4}]})",
            "bytes"},
        Bad{"HexOdd",
            R"({"entry":"k","grid":[1,1,1],"block":[1,1,1],"args":[{"buffer":{"bytes":64,"hex":"abc"}},{"u32":4}]})",
            "hex"},
        Bad{"HexTooLong",
            R"({"entry":"k","grid":[1,1,1],"block":[1,1,1],"args":[{"buffer":{"bytes":1,"hex":"abcd"}},{"u32":4}]})",
            "hex"},
        Bad{"FillUnknown",
            R"({"entry":"k","grid":[1,1,1],"block":[1,1,1],"args":[{"buffer":{"bytes":64,"fill":{"type":"f33"}}},{"u32":4}]})",
            "f33"},
        Bad{"TooFewArgs",
            R"({"entry":"k","grid":[1,1,1],"block":[1,1,1],"args":[{"buffer":{"bytes":64}}]})", ""},
        Bad{"TooManyArgs",
            R"({"entry":"k","grid":[1,1,1],"block":[1,1,1],"args":[{"buffer":{"bytes":64}},{"u32":4},{"u32":5}]})",
            ""},
        Bad{"ArgWrongSize",
            R"({"entry":"k","grid":[1,1,1],"block":[1,1,1],"args":[{"buffer":{"bytes":64}},{"u64":4}]})",
            ""},
        Bad{"OtherEntry", R"({"entry":"nobody","grid":[1,1,1],"block":[1,1,1],"args":[]})",
            "nobody"}),
    [](const auto& wrong) { return wrong.param.what; });

TEST(Spec, MissingFilesAreNamed) {
    const Ran spec =
        ttt({"ptx", "exec", data("hazards/r01_exit.ptx"), "--launch", "/nonexistent.json"});
    EXPECT_EQ(spec.rc, 2);
    EXPECT_NE(spec.err.find("/nonexistent.json"), std::string::npos) << spec.err;
    const Ran ptx =
        ttt({"ptx", "exec", "/nonexistent.ptx", "--launch", data("hazards/r01_exit.json")});
    EXPECT_EQ(ptx.rc, 2);
    EXPECT_NE(ptx.err.find("/nonexistent.ptx"), std::string::npos) << ptx.err;
    const Ran folder =
        ttt({"ptx", "exec", data("hazards"), "--launch", data("hazards/r01_exit.json")});
    EXPECT_EQ(folder.rc, 2);
    EXPECT_TRUE(is_one_line(folder.err)) << folder.err;
}

}  // namespace
}  // namespace ttt::cli_test
