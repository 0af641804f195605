#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/hash.h"
#include "spec/launch_spec.h"
#include "spec/sha256.h"

namespace ttt::spec {
namespace {

std::string error_of(const std::string& json) {
    auto spec = parse(json);
    return spec.ok() ? "" : spec.error().message;
}
std::string with_args(const std::string& args) {
    return R"({"entry":"k","grid":[1],"block":[1],"args":[)" + args + "]}";
}

TEST(LaunchSpec, ReadsEverything) {
    auto spec = parse(R"({"entry":"k","grid":[2,3],"block":[32,1,1],"shared":16,"args":[
        {"buffer":{"bytes":8,"hex":"00ff"}},{"u8":255},{"s16":-2},{"u64":18446744073709551615},{"s64":-9223372036854775808},
        {"f16":1.5},{"bf16":-2},{"f32":0.1},{"f64":0.1},{"bytes":"0102"}],
        "variables":{"taps":{"bytes":4,"hex":"0102"}}})");
    ASSERT_TRUE(spec.ok()) << spec.error().str();
    EXPECT_EQ(spec->entry, "k");
    EXPECT_EQ(spec->grid, (Dim3{2, 3, 1}));
    EXPECT_EQ(spec->shared, 16u);
    const char* hex[] = {"00ff", "ff",   "feff",     "ffffffffffffffff", "0000000000000080",
                         "003e", "00c0", "cdcccc3d", "9a9999999999b93f", "0102"};
    ASSERT_EQ(spec->args.size(), 10u);
    for (size_t i = 0; i < 10; ++i) EXPECT_EQ(to_hex(spec->args[i].data), hex[i]) << i;
    EXPECT_EQ(to_hex(*materialise(spec->args[0])), "00ff000000000000");
    ASSERT_EQ(spec->variables.size(), 1u);
    EXPECT_EQ(spec->variables[0].first, "taps");
    EXPECT_EQ(to_hex(*materialise(spec->variables[0].second)), "01020000");
    auto again = parse(to_json(*spec));
    ASSERT_TRUE(again.ok()) << again.error().str();
    ASSERT_EQ(again->variables.size(), 1u);
    EXPECT_EQ(again->variables[0].second.data, spec->variables[0].second.data);
    for (size_t i = 0; i < 10; ++i) EXPECT_EQ(again->args[i].data, spec->args[i].data) << i;
}

TEST(LaunchSpec, ErrorsNameTheKey) {
    const std::pair<std::string, std::string> cases[] = {
        {"{", "not valid JSON"},
        {R"({"grid":[1],"block":[1]})", "\"entry\""},
        {R"({"entry":"k","block":[1]})", "\"grid\""},
        {R"({"entry":"k","grid":[0],"block":[1]})", "\"grid\""},
        {R"({"entry":"k","grid":[1],"block":[32,33]})", "\"block\""},
        {R"({"entry":"k","grid":[1],"block":[1073741824,1073741824,16]})", "\"block\""},
        {R"({"entry":"k","grid":[1],"block":[1],"shraed":1})", "\"shraed\""},
        {R"({"entry":"k","grid":[1],"block":[1],"shared":-1})", "\"shared\""},
        {R"({"entry":"k","grid":[1],"block":[1],"args":{}})", "\"args\""},
        {R"({"entry":"k","grid":[1],"block":[1],"variables":[]})", "\"variables\""},
        {R"({"entry":"k","grid":[1],"block":[1],"variables":{"v":{}}})", "variables.v.bytes"},
        {R"({"entry":"k","grid":[1],"block":[1],"variables":{"v":{"bytes":0}}})", "variables.v"},
        {with_args("4"), "args[0]"},
        {with_args(R"({"u8":256})"), "args[0].u8"},
        {with_args(R"({"u32":1},{"s8":-129})"), "args[1].s8"},
        {with_args(R"({"u32":1.5})"), "args[0].u32"},
        {with_args(R"({"f32":"x"})"), "args[0].f32"},
        {with_args(R"({"u128":1})"), "args[0].u128"},
        {with_args(R"({"bytes":"0"})"), "args[0].bytes"},
        {with_args(R"({"buffer":{}})"), "args[0].buffer.bytes"},
        {with_args(R"({"buffer":{"bytes":1,"hex":"0000"}})"), "args[0].buffer.hex"},
        {with_args(R"({"buffer":{"bytes":1,"hex":"zz"}})"), "args[0].buffer.hex"},
        {with_args(R"({"buffer":{"bytes":4,"hex":"00","fill":{"type":"f32"}}})"),
         "args[0].buffer.fill"},
        {with_args(R"({"buffer":{"bytes":4,"fill":{"type":"f33"}}})"), "args[0].buffer.fill.type"},
        {with_args(R"({"buffer":{"bytes":4,"fill":{"type":"f32","seed":-1}}})"),
         "args[0].buffer.fill.seed"},
    };
    for (const auto& [json, part] : cases) {
        const std::string message = error_of(json);
        EXPECT_NE(message.find(part), std::string::npos) << json << " → " << message;
    }
}

TEST(LaunchSpec, FillFollowsItsFormula) {
    auto spec =
        parse(with_args(R"({"buffer":{"bytes":18,"fill":{"type":"f32","min":-1,"max":3,"seed":5}}},
        {"buffer":{"bytes":4,"fill":{"type":"u8","min":-10,"max":300,"seed":1}}})"));
    ASSERT_TRUE(spec.ok());
    auto data = materialise(spec->args[0]);
    ASSERT_TRUE(data.ok());
    for (uint64_t i = 0; i < 4; ++i) {
        const double u = static_cast<double>(splitmix64(5 + i) >> 11) / 9007199254740992.0;
        float got = 0;
        std::memcpy(&got, data->data() + 4 * i, 4);
        EXPECT_EQ(got, static_cast<float>(-1 + 4 * u));
    }
    EXPECT_EQ((*data)[16], std::byte{0});  // no whole element left
    auto bytes = materialise(spec->args[1]);
    for (uint64_t i = 0; i < 4; ++i) {
        const double u = static_cast<double>(splitmix64(1 + i) >> 11) / 9007199254740992.0;
        const double x = -10 + 310 * u;
        const double want = x < 0 ? 0 : x > 255 ? 255 : std::nearbyint(x);
        EXPECT_EQ(static_cast<double>((*bytes)[i]), want);
    }
}

TEST(LaunchSpec, PacksParametersWhereTheEntryWantsThem) {
    auto module = ptx::parse(
        ".version 8.7\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u8 a, .param "
        ".u64 b, .param .u32 c){ret;}\n");
    ASSERT_TRUE(module.ok());
    const ptx::Function& entry = *module->find("k");
    auto spec = parse(with_args(R"({"u8":7},{"buffer":{"bytes":4}},{"u32":9})"));
    const uint64_t address[] = {0x1122334455667788ull};
    auto packed = pack_params(*module, entry, *spec, address);
    ASSERT_TRUE(packed.ok()) << packed.error().str();
    EXPECT_EQ(to_hex(*packed), "0700000000000000887766554433221109000000");
    auto few = pack_params(*module, entry, *parse(with_args(R"({"u8":7})")), address);
    ASSERT_FALSE(few.ok());
    auto wide =
        pack_params(*module, entry,
                    *parse(with_args(R"({"u32":7},{"buffer":{"bytes":4}},{"u32":9})")), address);
    ASSERT_FALSE(wide.ok());
    EXPECT_NE(wide.error().message.find("args[0]"), std::string::npos);
}

TEST(Sha256, KnownDigests) {
    const auto digest = [](std::string_view text) {
        return sha256_hex(std::as_bytes(std::span(text.data(), text.size())));
    };
    EXPECT_EQ(digest(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_EQ(digest("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(digest(std::string(1000, 'x')),
              "44f8354494a5ba03ba1792a8d3e9c534c47a9181980fde7a3f44b06ef2ae7c7f");
}

}  // namespace
}  // namespace ttt::spec
