// `ttt ptx exec`: right answers, errors with a place, counters, big buffers.
#include <gtest/gtest.h>

#include <fstream>

#include "command.h"
#include "spec/launch_spec.h"
#include "spec/sha256.h"

namespace ttt::cli_test {
namespace {

using nlohmann::json;

json exec_json(const std::string& ptx, const std::string& spec, int* rc = nullptr) {
    const Ran r = ttt({"ptx", "exec", ptx, "--launch", spec, "--json"});
    if (rc != nullptr) *rc = r.rc;
    EXPECT_EQ(r.err, "");
    const json j = r.json();
    EXPECT_TRUE(j.is_object()) << r.out;
    return j;
}

const char kStoreTid[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .entry store_tid(.param .u64 p) {\n"
    ".reg .b32 %r<2>; .reg .b64 %d<4>;\n"
    "ld.param.u64 %d1, [p]; mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 4;\n"
    "add.s64 %d3, %d1, %d2;\n"
    "st.global.u32 [%d3], %r1;\n"
    "ret; }\n";

TEST(Exec, Hazards) {
    std::ifstream in(data("hazards/answers.json"));
    const json cases = json::parse(in);
    ASSERT_GE(cases.size(), 12u);
    for (const auto& c : cases) {
        SCOPED_TRACE(c["launch"].get<std::string>());
        int rc = -1;
        const json j = exec_json(data("hazards/" + c["ptx"].get<std::string>()),
                                 data("hazards/" + c["launch"].get<std::string>()), &rc);
        EXPECT_EQ(rc, 0);
        EXPECT_TRUE(j["error"].is_null()) << j["error"];
        for (const auto& a : c["answers"]) {
            const auto want = a["hex"].get<std::string>();
            const auto hex = j["buffers"][a["arg"].get<size_t>()]["hex"].get<std::string>();
            EXPECT_EQ(hex.substr(2 * a["offset"].get<size_t>(), want.size()), want);
        }
    }
}

TEST(Exec, JsonShapeAndCounters) {
    const auto ptx = scratch_file("store_tid.ptx", kStoreTid);
    const auto spec = scratch_file(
        "store_tid.json",
        R"({"entry":"store_tid","grid":[1,1,1],"block":[32,1,1],"shared":0,"args":[{"buffer":{"bytes":128}}]})");
    const json j = exec_json(ptx, spec);
    ASSERT_EQ(j.size(), 3u);
    EXPECT_TRUE(j["error"].is_null());
    ASSERT_EQ(j["buffers"].size(), 1u);
    EXPECT_EQ(j["buffers"][0]["arg"], 0);
    EXPECT_EQ(j["buffers"][0]["hex"].get<std::string>().substr(0, 24), "000000000100000002000000");
    EXPECT_EQ(j["counters"]["thread_instructions"], 6 * 32);
    EXPECT_EQ(j["counters"]["global_sectors_read"], 0);
    EXPECT_EQ(j["counters"]["global_sectors_written"], 4);
}

TEST(Exec, AccessOutsideTheBufferIsExitOneAndNamesTheThread) {
    const auto ptx = scratch_file("store_tid.ptx", kStoreTid);
    const auto spec = scratch_file(
        "short.json",
        R"({"entry":"store_tid","grid":[1,1,1],"block":[32,1,1],"args":[{"buffer":{"bytes":40}}]})");
    int rc = 0;
    const json j = exec_json(ptx, spec, &rc);
    EXPECT_EQ(rc, 1);
    ASSERT_TRUE(j["error"].is_string());
    const auto error = j["error"].get<std::string>();
    EXPECT_NE(error.find("illegal address"), std::string::npos) << error;
    EXPECT_NE(error.find("(10,0,0)"), std::string::npos) << error;
}

TEST(Exec, MalformedPtxIsExitOneWithItsPlace) {
    const auto ptx = scratch_file("broken.ptx",
                                  ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry "
                                  "k() { add.u32 %r1 ; ret; }\n");
    const auto spec =
        scratch_file("broken.json", R"({"entry":"k","grid":[1,1,1],"block":[1,1,1],"args":[]})");
    int rc = 0;
    const json j = exec_json(ptx, spec, &rc);
    EXPECT_EQ(rc, 1);
    ASSERT_TRUE(j["error"].is_string());
    EXPECT_NE(j["error"].get<std::string>().find("line 4"), std::string::npos) << j["error"];
}

TEST(Exec, BuffersOverOneMebibyteAreHashed) {
    const auto ptx = scratch_file("store_tid.ptx", kStoreTid);
    const auto spec = scratch_file(
        "big.json",
        R"({"entry":"store_tid","grid":[1,1,1],"block":[1,1,1],"args":[{"buffer":{"bytes":1048580}}]})");
    const json j = exec_json(ptx, spec);
    EXPECT_FALSE(j["buffers"][0].contains("hex"));
    EXPECT_EQ(j["buffers"][0]["sha256"], spec::sha256_hex(std::vector<std::byte>(1048580)));
    const auto exact = scratch_file(
        "exact.json",
        R"({"entry":"store_tid","grid":[1,1,1],"block":[1,1,1],"args":[{"buffer":{"bytes":1048576}}]})");
    EXPECT_EQ(exec_json(ptx, exact)["buffers"][0]["hex"].get<std::string>().size(), 2u << 20);
}

TEST(Exec, WholeSuiteRuns) {
    for (const char* name :
         {"conv_naive", "gemm_naive", "gemv", "heavy", "nbody", "permute4", "relu_u8", "saxpy_h",
          "softmax_row", "stencil27", "tiny", "transpose"}) {
        SCOPED_TRACE(name);
        int rc = -1;
        const json j = exec_json(data("suite/kernels.ptx"),
                                 data(std::string("suite/") + name + ".small.json"), &rc);
        EXPECT_EQ(rc, 0) << j["error"];
        EXPECT_GT(j["counters"]["thread_instructions"].get<uint64_t>(), 0u);
    }
}

TEST(Exec, TextFormSaysTheSame) {
    const Ran r = ttt({"ptx", "exec", data("hazards/r16_nested_scope_shadow.ptx"), "--launch",
                       data("hazards/r16_nested_scope_shadow.json")});
    EXPECT_EQ(r.rc, 0);
    EXPECT_NE(r.out.find("arg 0: 0100000002000000"), std::string::npos) << r.out;
    EXPECT_NE(r.out.find("thread_instructions: "), std::string::npos) << r.out;
}

}  // namespace
}  // namespace ttt::cli_test
