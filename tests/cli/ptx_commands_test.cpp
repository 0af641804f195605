// `ttt ptx check`, `ttt ptx apply`, `ttt variants` and `ttt explain FILE`.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "command.h"

namespace ttt::cli_test {
namespace {

using nlohmann::json;

std::string suite(const std::string& name) { return data("suite/" + name); }

TEST(Check, CountsFilesAndEntries) {
    const Ran r = ttt({"ptx", "check", suite("kernels.ptx"),
                       data("hazards/r12_local_entry_nolinkage.ptx"), "--json"});
    EXPECT_EQ(r.rc, 0) << r.out;
    const json j = r.json();
    ASSERT_EQ(j.size(), 4u) << r.out;
    EXPECT_EQ(j["files"], 2);
    EXPECT_EQ(j["entries"], 12 + 2);
    EXPECT_EQ(j["opaque"], 0);
    EXPECT_TRUE(j["failures"].empty()) << j["failures"];
}

TEST(Check, FailuresHaveAPlace) {
    const auto bad = scratch_file(
        "bad.ptx", ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k( {\n");
    const Ran r = ttt({"ptx", "check", bad, suite("kernels.ptx"), "/nonexistent.ptx", "--json"});
    EXPECT_EQ(r.rc, 1);
    const json j = r.json();
    EXPECT_EQ(j["files"], 3);
    ASSERT_EQ(j["failures"].size(), 2u) << r.out;
    const json& f = j["failures"][0];
    ASSERT_EQ(f.size(), 4u);
    EXPECT_EQ(f["file"], bad);
    EXPECT_EQ(f["line"], 4);
    EXPECT_GT(f["column"].get<int>(), 0);
    EXPECT_FALSE(f["message"].get<std::string>().empty());
    EXPECT_EQ(j["failures"][1]["file"], "/nonexistent.ptx");
}

TEST(Check, FuturePtxParses) {
    EXPECT_EQ(ttt({"ptx", "check", data("hazards/r22_future_version.ptx")}).rc, 0);
}

// What a recipe makes of a kernel computes the same bits.
void expect_same_outputs(const std::string& kernel, const std::string& recipe) {
    SCOPED_TRACE(kernel + ": " + recipe);
    const auto spec = suite(kernel + ".small.json");
    const auto pinned = scratch_path("pinned.ptx"), out = scratch_path("variant.ptx");
    const Ran base = ttt({"ptx", "apply", suite("kernels.ptx"), "--launch", spec, "--recipe",
                          "pin_rounding", "-o", pinned});
    ASSERT_EQ(base.rc, 0) << base.err;
    const Ran applied = ttt({"ptx", "apply", suite("kernels.ptx"), "--launch", spec, "--recipe",
                             recipe, "-o", out, "--json"});
    ASSERT_EQ(applied.rc, 0) << applied.err;
    EXPECT_EQ(applied.json()["entry"], kernel);
    EXPECT_EQ(ttt({"ptx", "check", out}).rc, 0);
    const json a = ttt({"ptx", "exec", pinned, "--launch", spec, "--json"}).json();
    const json b = ttt({"ptx", "exec", out, "--launch", spec, "--json"}).json();
    ASSERT_TRUE(a.is_object() && b.is_object());
    EXPECT_TRUE(a["error"].is_null()) << a["error"];
    EXPECT_EQ(a["error"], b["error"]);
    EXPECT_EQ(a["buffers"], b["buffers"]);
}

TEST(Apply, RoundTripKeepsTheBits) {
    expect_same_outputs("gemm_naive", "pin_rounding | specialise(scalars,ntid)");
    expect_same_outputs("conv_naive", "pin_rounding | specialise(scalars) | memory.nc");
    expect_same_outputs("stencil27",
                        "pin_rounding | specialise(scalars,ntid) | registers(max=48,reqntid)");
}

TEST(Apply, IsDeterministic) {
    const Words args{"ptx",
                     "apply",
                     suite("kernels.ptx"),
                     "--launch",
                     suite("gemv.small.json"),
                     "--recipe",
                     "pin_rounding | memory.nc",
                     "-o",
                     "-"};
    const Ran a = ttt(args), b = ttt(args);
    EXPECT_EQ(a.rc, 0) << a.err;
    EXPECT_FALSE(a.out.empty());
    EXPECT_EQ(a.out, b.out);
}

TEST(Apply, BadRecipesAreTwo) {
    for (const char* recipe :
         {"", "frobnicate", "pin_rounding |", "registers(max=", "pin_rounding pin_rounding"}) {
        const Ran r = ttt({"ptx", "apply", suite("kernels.ptx"), "--launch",
                           suite("tiny.small.json"), "--recipe", recipe, "-o", "-"});
        EXPECT_EQ(r.rc, 2) << recipe << ": " << r.err;
        EXPECT_TRUE(is_one_line(r.err)) << recipe << ": " << r.err;
        EXPECT_EQ(r.out, "") << recipe;
    }
}

TEST(Apply, SeveralKernelsNeedAName) {
    const Ran r =
        ttt({"ptx", "apply", suite("kernels.ptx"), "--recipe", "pin_rounding", "-o", "-"});
    EXPECT_EQ(r.rc, 2);
    EXPECT_NE(r.err.find("gemm_naive"), std::string::npos) << r.err;
    EXPECT_EQ(ttt({"ptx", "apply", suite("kernels.ptx"), "--entry", "tiny", "--recipe",
                   "pin_rounding", "-o", "-"})
                  .rc,
              0);
}

TEST(Apply, UnwritableOutputIsTwo) {
    const Ran r = ttt({"ptx", "apply", suite("kernels.ptx"), "--entry", "tiny", "--recipe",
                       "pin_rounding", "-o", "/nonexistent/x.ptx"});
    EXPECT_EQ(r.rc, 2);
    EXPECT_NE(r.err.find("/nonexistent/x.ptx"), std::string::npos) << r.err;
}

TEST(Variants, ListsRecipesAndReasons) {
    const Ran r = ttt(
        {"variants", suite("kernels.ptx"), "--launch", suite("gemm_naive.small.json"), "--json"});
    ASSERT_EQ(r.rc, 0) << r.err;
    const json j = r.json();
    EXPECT_EQ(j["entry"], "gemm_naive");
    EXPECT_EQ(j["eligible"], true);
    ASSERT_GT(j["variants"].size(), 3u);
    for (const auto& v : j["variants"])
        for (const char* key : {"recipe", "guard", "grid", "block", "shared", "pinned", "notes"})
            EXPECT_TRUE(v.contains(key)) << key;
    for (const auto& s : j["skipped"]) EXPECT_FALSE(s["reason"].get<std::string>().empty()) << s;
}

TEST(Variants, LeavesIneligibleKernelsAlone) {
    const Ran r = ttt({"variants", data("hazards/r20_setp_ptr_dependent.ptx"), "--launch",
                       data("hazards/r20_setp_ptr_dependent.json"), "--json"});
    ASSERT_EQ(r.rc, 0) << r.err;
    EXPECT_EQ(r.json()["eligible"], false);
    EXPECT_FALSE(r.json()["reason"].get<std::string>().empty());
    EXPECT_TRUE(r.json()["variants"].empty());
}

TEST(Explain, SaysWhatEachKernelDoes) {
    const Ran r = ttt({"explain", suite("kernels.ptx"), "--json"});
    ASSERT_EQ(r.rc, 0) << r.err;
    const json j = r.json();
    ASSERT_EQ(j["entries"].size(), 12u);
    for (const auto& e : j["entries"]) {
        if (e["name"] != "gemv") continue;
        EXPECT_EQ(e["eligible"], true);
        ASSERT_EQ(e["pointers"].size(), 3u) << e;
        EXPECT_EQ(e["pointers"][2]["written"], true);
        EXPECT_EQ(e["params"].size(), 5u);
    }
    const Ran text = ttt({"explain", data("hazards/r20_setp_ptr_dependent.ptx")});
    EXPECT_EQ(text.rc, 0);
    EXPECT_NE(text.out.find("left alone"), std::string::npos) << text.out;
}

TEST(Explain, MalformedFileIsOneWithItsPlace) {
    const auto bad = scratch_file("bad2.ptx", ".version 8.0\n.target sm_90\n\x01\n");
    const Ran r = ttt({"explain", bad});
    EXPECT_EQ(r.rc, 1);
    EXPECT_TRUE(is_one_line(r.err)) << r.err;
    EXPECT_NE(r.err.find("line 3"), std::string::npos) << r.err;
}

}  // namespace
}  // namespace ttt::cli_test
