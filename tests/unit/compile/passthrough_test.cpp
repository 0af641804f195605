#include "compile/passthrough.h"

#include <gtest/gtest.h>

#include "compile/compiler.h"
#include "compile/pressure.h"

namespace ttt::compile {
namespace {

constexpr const char* kPtx = R"(
.version 8.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 p, .param .u32 n)
{
    .reg .b64 %rd<3>;
    .reg .b32 %r<9>;
    .reg .pred %q<2>;
    .local .align 8 .b8 scratch[48];
    .shared .align 4 .b8 tile[512];
    ld.param.u64 %rd1, [p];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, 0;
    mov.u32 %r3, 0;
LOOP:
    add.s32 %r3, %r3, %r1;
    add.s32 %r2, %r2, 1;
    setp.lt.u32 %q1, %r2, %r1;
    @%q1 bra LOOP;
    st.global.u32 [%rd1], %r3;
    ret;
}
)";

ptx::Module parsed(const char* text) {
    auto module = ptx::parse(std::string(text));
    EXPECT_TRUE(module.ok()) << module.error().str();
    return std::move(module).value();
}

TEST(Pressure, CountsWordsLiveAtOnceAndDeclaredMemory) {
    const ptx::Module module = parsed(kPtx);
    const Pressure p = estimate_pressure(module, *module.find("k"), 0);
    // pointer (2 words), limit, counter and sum live together in the loop, and 6 reserved
    EXPECT_EQ(p.registers, 11u);
    EXPECT_EQ(p.local_bytes, 48u);
    EXPECT_EQ(p.shared_bytes, 512u);
}

TEST(Pressure, RegisterTargetSpills) {
    std::string text =
        ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n.reg "
        ".b64 %rd<2>;\n.reg .f32 %f<64>;\nld.param.u64 %rd1, [p];\n";
    for (int i = 0; i < 64; ++i) text += "ld.global.f32 %f" + std::to_string(i) + ", [%rd1];\n";
    for (int i = 0; i < 64; ++i) text += "st.global.f32 [%rd1], %f" + std::to_string(i) + ";\n";
    text += "ret;\n}\n";
    const ptx::Module module = parsed(text.c_str());
    const Pressure free = estimate_pressure(module, *module.find("k"), 0);
    EXPECT_EQ(free.registers, 64u + 2 + 6);
    EXPECT_EQ(free.local_bytes, 0u);
    const Pressure tight = estimate_pressure(module, *module.find("k"), 32);
    EXPECT_EQ(tight.registers, 32u);
    EXPECT_EQ(tight.local_bytes, (free.registers - 32) * 4);
}

TEST(Passthrough, ImageIsThePtxItself) {
    const auto compiler = make_passthrough();
    auto out = compiler->compile(kPtx, "k", "sm_90", {});
    ASSERT_TRUE(out.ok()) << out.error().str();
    ASSERT_EQ(out->image.size(), std::string_view(kPtx).size() + 1);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(out->image.data())), kPtx);
    EXPECT_GT(out->registers, 0u);
    EXPECT_EQ(out->code.params.size(), 2u);
    EXPECT_EQ(out->code.param_bytes, 12u);
    EXPECT_TRUE(out->code.text.empty());
    EXPECT_EQ(compiler->identity().substr(0, 11), "passthrough");
}

TEST(Passthrough, WithoutAnAssemblerResourcesAreEstimated) {
    const auto compiler = make_passthrough_over(nullptr);
    EXPECT_EQ(compiler->identity(), "passthrough");
    auto out = compiler->compile(kPtx, "k", "sm_90", {});
    ASSERT_TRUE(out.ok()) << out.error().str();
    EXPECT_EQ(out->registers, 11u);
    EXPECT_EQ(out->local_bytes, 48u);
    EXPECT_EQ(out->shared_bytes, 512u);
    EXPECT_EQ(out->code.param_bytes, 12u);
    EXPECT_EQ(compiler->compile(kPtx, "k", "sm_90", {0, {"-o"}}).error().code,
              Code::kInvalidArgument);
    EXPECT_EQ(compiler->compile(kPtx, "nothing", "sm_90", {}).error().code, Code::kNotFound);
    EXPECT_EQ(compiler->compile(std::string(kPtx) + "{{{", "k", "sm_90", {}).error().code,
              Code::kParse);
}

// An assembler that cannot run says nothing about the text.
class BrokenAssembler final : public Compiler {
  public:
    explicit BrokenAssembler(Code code) : x_code(code) {}
    std::string identity() const override { return "broken 13.0"; }
    uint32_t major() const override { return 13; }
    uint32_t max_ptx_version() const override { return 90; }
    Result<Compiled> compile(std::string_view, std::string_view, std::string_view,
                             const xform::CompileControls&) override {
        return make_error(x_code, "broken");
    }

  private:
    Code x_code;
};

TEST(Passthrough, OnlyTheAssemblersVerdictCounts) {
    const auto timeout = make_passthrough_over(std::make_unique<BrokenAssembler>(Code::kTimeout));
    auto out = timeout->compile(kPtx, "k", "sm_90", {});
    ASSERT_TRUE(out.ok()) << out.error().str();
    EXPECT_EQ(out->registers, 11u);
    const auto refusing = make_passthrough_over(std::make_unique<BrokenAssembler>(Code::kCompile));
    EXPECT_EQ(refusing->compile(kPtx, "k", "sm_90", {}).error().code, Code::kCompile);
}

TEST(Passthrough, BadInput) {
    const auto compiler = make_passthrough();
    const std::string future =
        ".version 9.9\n.target sm_90\n.address_size 64\n.visible .entry k(){ ret; }\n";
    auto out = compiler->compile(future, "k", "sm_90", {});
    ASSERT_FALSE(out.ok());
    EXPECT_EQ(out.error().code, Code::kUnsupported);
    EXPECT_NE(out.error().message.find("9.9"), std::string::npos);
    EXPECT_FALSE(compiler->compile("garbage", "k", "sm_90", {}).ok());
    EXPECT_EQ(compiler->compile(kPtx, "nothing", "sm_90", {}).error().code, Code::kNotFound);
    EXPECT_EQ(make_compiler(true, 0).value()->identity(), compiler->identity());
}

}  // namespace
}  // namespace ttt::compile
