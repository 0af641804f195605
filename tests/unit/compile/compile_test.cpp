#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <thread>

#include "compile/assembler.h"
#include "compile/compiler.h"
#include "compile/controls.h"
#include "compile/toolkit.h"

namespace ttt::compile {
namespace {

constexpr const char* kPtx = R"(
.version 8.0
.target sm_75
.address_size 64
.visible .entry first(.param .u64 p, .param .f32 a)
{
    .reg .b64 %rd<4>;
    .reg .f32 %f<4>;
    .shared .align 4 .b8 tile[256];
    ld.param.u64 %rd1, [p];
    ld.param.f32 %f1, [a];
    cvta.to.global.u64 %rd2, %rd1;
    ld.global.f32 %f2, [%rd2];
    fma.rn.f32 %f3, %f1, %f2, %f1;
    st.shared.f32 [tile], %f3;
    bar.sync 0;
    ld.shared.f32 %f2, [tile+4];
    st.global.f32 [%rd2], %f2;
    ret;
}
.visible .entry second() { ret; }
)";

std::string with_version(const char* version) {
    std::string ptx = kPtx;
    return ptx.replace(ptx.find("8.0"), 3, version);
}

// The machine's compilers of every form; which of them exist is printed, and the tests need at
// least one.
struct Kind {
    const char* name;
    std::unique_ptr<Compiler> compiler;
};
std::vector<Kind>& compilers() {
    static std::vector<Kind> all = [] {
        std::vector<Kind> out;
        const auto add = [&](const char* name, Result<std::unique_ptr<Compiler>> c) {
            if (c.ok())
                out.push_back({name, std::move(c).value()});
            else
                std::printf("not on this machine: %s (%s)\n", name, c.error().str().c_str());
        };
        add("nvJitLink in a worker", make_nvjitlink({}, true));
        add("nvJitLink in process", make_nvjitlink({}, false));
        add("ptxas", make_ptxas({}));
        return out;
    }();
    return all;
}

#define REQUIRE_COMPILERS()  \
    if (compilers().empty()) \
    GTEST_SKIP() << "no CUDA toolkit on this machine: nvJitLink and ptxas not found"

TEST(Compile, ResourcesAndCounts) {
    REQUIRE_COMPILERS();
    for (auto& [name, c] : compilers()) {
        auto out = c->compile(kPtx, "first", "sm_90", {});
        ASSERT_TRUE(out.ok()) << name << ": " << out.error().str();
        EXPECT_EQ(out->entry, "first");
        EXPECT_GE(out->registers, 8u) << name;
        EXPECT_EQ(out->shared_bytes, 256u) << name;
        EXPECT_EQ(out->local_bytes, 0u) << name;
        EXPECT_EQ(out->code.ffma, 1u) << name;
        EXPECT_EQ(out->code.bar, 1u) << name;
        EXPECT_EQ(out->code.params.size(), 2u) << name;
        EXPECT_GT(out->code.text.size(), 0u) << name;
        EXPECT_GT(out->milliseconds, 0) << name;
        const auto* begin = out->image.data();
        EXPECT_TRUE(out->code.text.data() >= begin &&
                    out->code.text.data() < begin + out->image.size())
            << name;
    }
}

TEST(Compile, SecondTimeComesFromTheCacheWithItsOwnBytes) {
    REQUIRE_COMPILERS();
    for (auto& [name, c] : compilers()) {
        auto a = c->compile(kPtx, "second", "sm_80", {});
        auto b = c->compile(kPtx, "second", "sm_80", {});
        ASSERT_TRUE(a.ok() && b.ok()) << name;
        EXPECT_EQ(a->image, b->image);
        EXPECT_EQ(b->milliseconds, 0) << name;
        const auto* begin = b->image.data();
        EXPECT_TRUE(b->code.text.data() >= begin && b->code.text.data() < begin + b->image.size())
            << name;
        auto other = c->compile(kPtx, "second", "sm_90", {});
        ASSERT_TRUE(other.ok());
        EXPECT_NE(other->image, a->image) << name;
    }
}

TEST(Compile, RegisterTargetReachesTheAssembler) {
    REQUIRE_COMPILERS();
    std::string ptx =
        ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 p) {\n.reg "
        ".b64 %rd<2>;\n.reg .f32 %f<80>;\nld.param.u64 %rd1, [p];\n";
    for (int i = 0; i < 64; ++i)
        ptx += "ld.volatile.global.f32 %f" + std::to_string(i) + ", [%rd1+" +
               std::to_string(4 * i) + "];\n";
    for (int i = 63; i >= 0; --i)
        ptx += "st.volatile.global.f32 [%rd1+" + std::to_string(4 * i) + "], %f" +
               std::to_string(i) + ";\n";
    ptx += "ret;\n}\n";
    for (auto& [name, c] : compilers()) {
        auto wide = c->compile(ptx, "k", "sm_90", {});
        auto narrow = c->compile(ptx, "k", "sm_90", {32, {}});
        auto raised = c->compile(ptx, "k", "sm_90", {8, {}});
        auto ignored = c->compile(ptx, "k", "sm_90", {1000, {}});
        ASSERT_TRUE(wide.ok() && narrow.ok() && raised.ok() && ignored.ok()) << name;
        EXPECT_GT(wide->registers, 64u) << name;
        EXPECT_LE(narrow->registers, 32u) << name;
        EXPECT_GT(narrow->local_bytes, 0u) << name;
        EXPECT_EQ(raised->registers, 24u) << name;
        EXPECT_EQ(ignored->image, wide->image) << name;
        auto plain = c->compile(ptx, "k", "sm_90", {0, {"-O0"}});
        ASSERT_TRUE(plain.ok()) << name << plain.error().str();
        EXPECT_NE(plain->image, wide->image) << name;
    }
}

TEST(Compile, NewerPtxIsRefusedNamingBothVersions) {
    REQUIRE_COMPILERS();
    for (auto& [name, c] : compilers()) {
        auto out = c->compile(with_version("9.9"), "first", "sm_90", {});
        ASSERT_FALSE(out.ok()) << name;
        EXPECT_EQ(out.error().code, Code::kUnsupported);
        const uint32_t most = c->max_ptx_version();
        EXPECT_NE(out.error().message.find("9.9"), std::string::npos) << out.error().message;
        EXPECT_NE(
            out.error().message.find(std::to_string(most / 10) + "." + std::to_string(most % 10)),
            std::string::npos)
            << out.error().message;
        EXPECT_GE(most, 84u) << name;
        const std::string newest = std::to_string(most / 10) + "." + std::to_string(most % 10);
        EXPECT_TRUE(c->compile(with_version(newest.c_str()), "first", "sm_90", {}).ok())
            << name << newest;
    }
}

TEST(Compile, BadInputIsAClearError) {
    REQUIRE_COMPILERS();
    for (auto& [name, c] : compilers()) {
        const auto code = [&, &compiler = c](std::string_view ptx, const char* entry,
                                             const char* arch,
                                             xform::CompileControls controls = {}) {
            auto out = compiler->compile(ptx, entry, arch, controls);
            EXPECT_FALSE(out.ok()) << name;
            EXPECT_FALSE(!out.ok() && out.error().message.empty());
            return out.ok() ? Code::kInternal : out.error().code;
        };
        EXPECT_EQ(code("", "first", "sm_90"), Code::kParse);
        EXPECT_EQ(code("garbage", "first", "sm_90"), Code::kParse);
        EXPECT_EQ(code(std::string(kPtx) + '\0' + "x", "first", "sm_90"), Code::kParse);
        EXPECT_EQ(code(kPtx, "third", "sm_90"), Code::kNotFound);
        EXPECT_EQ(code(kPtx, "first", "sm_70"), Code::kUnsupported);
        EXPECT_EQ(code(std::string(kPtx) + "bogus statement;", "first", "sm_90"), Code::kCompile);
        for (const char* arch : {"", "90", "compute_90", "sm_", "sm_90; rm", "sm_9x", "sm_90aa"})
            EXPECT_EQ(code(kPtx, "first", arch), Code::kInvalidArgument) << arch;
        for (const char* option : {"-o", "--output-file=x", "-optf=/etc/passwd", "--options-file",
                                   "O3", "-arch=sm_80", "-O3 -o x", "", "-", "--"})
            EXPECT_EQ(code(kPtx, "first", "sm_90", {0, {option}}), Code::kInvalidArgument)
                << option;
        // After all of that it still works.
        EXPECT_TRUE(c->compile(kPtx, "first", "sm_86", {}).ok()) << name;
    }
}

TEST(Compile, IdentityHasTheVersion) {
    REQUIRE_COMPILERS();
    for (auto& [name, c] : compilers()) {
        EXPECT_NE(c->identity().find(std::to_string(c->major()) + "."), std::string::npos)
            << name << " " << c->identity();
        EXPECT_GE(c->major(), 12u);
        std::printf("%s: %s, PTX ISA up to %u\n", name, c->identity().c_str(),
                    c->max_ptx_version());
    }
}

TEST(Compile, ManyThreadsAtOnce) {
    REQUIRE_COMPILERS();
    for (auto& [name, c] : compilers()) {
        std::vector<std::thread> threads;
        std::vector<int> good(4, 0);
        for (size_t t = 0; t < good.size(); ++t)
            threads.emplace_back([&, &compiler = c, t] {
                const std::string ptx = std::string(kPtx) + "// " + std::to_string(t);
                good[t] = compiler->compile(ptx, "first", "sm_90", {}).ok() ? 1 : 0;
            });
        for (auto& t : threads) t.join();
        EXPECT_EQ(good, std::vector<int>(4, 1)) << name;
    }
}

TEST(MakeCompiler, DriverOlderThanEveryToolkitIsRefused) {
    REQUIRE_COMPILERS();
    auto out = make_compiler(false, 11000);
    ASSERT_FALSE(out.ok());
    EXPECT_NE(out.error().str().find("newer than the driver"), std::string::npos)
        << out.error().str();
    EXPECT_EQ(make_compiler(false, 0).error().code, Code::kInvalidArgument);
    auto newest = make_compiler(false, 13000);
    ASSERT_TRUE(newest.ok()) << newest.error().str();
    EXPECT_LE((*newest)->major(), 13u);
    const bool has_ptxas = make_ptxas({}).ok();
    EXPECT_EQ((*newest)->identity().substr(0, 6) == "ptxas ", has_ptxas) << (*newest)->identity();
}

TEST(Controls, EffectiveRegisters) {
    EXPECT_EQ(effective_registers(0), 0u);
    EXPECT_EQ(effective_registers(1), 24u);
    EXPECT_EQ(effective_registers(24), 24u);
    EXPECT_EQ(effective_registers(255), 255u);
    EXPECT_EQ(effective_registers(256), 0u);
}

}  // namespace
}  // namespace ttt::compile
