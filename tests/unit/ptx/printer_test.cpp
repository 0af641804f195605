#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "ptx/ir.h"

namespace ttt::ptx {
namespace {

constexpr const char* kHead = ".version 8.7\n.target sm_90\n.address_size 64\n";

Module parsed(const std::string& text) {
    auto module = parse(text);
    EXPECT_TRUE(module.ok()) << (module.ok() ? "" : module.error().str()) << "\n" << text;
    return module.ok() ? std::move(module).value() : Module();
}

Module body(const std::string& statements) {
    return parsed(std::string(kHead) + ".entry k(.param .u64 a)\n{\n" + statements + "\n}\n");
}

std::string last_line(const Module& m) { return print(m, m.functions.at(0).body.back()); }

TEST(Printer, WholeModule) {
    const std::string text =
        std::string(kHead) + R"(.visible .global .align 4 .b8 data[4] = {1, 2, 3, 4};
.visible .entry k(.param .u64 a)
.maxntid 128, 1, 1
{
	.reg .b32 %r<3>;
	ld.param.u32 %r1, [a+4];
L:
	@!%p bra L;
	ret;
}
)";
    const Module m = parsed(text.substr(0, text.find("\tld")) + "\t.reg .pred %p;\n" +
                            text.substr(text.find("\tld")));
    std::string expected = text;
    expected.insert(text.find("\tld"), "\t.reg .pred %p;\n");
    EXPECT_EQ(print(m), expected);
}

TEST(Printer, StatementsComeBackAsWritten) {
    const std::string declarations =
        ".reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .f32 %f<9>; .reg .v4 .f32 v;\n"
        ".shared .align 4 .b8 s[64];\n";
    for (const std::string line : {
             "mad.wide.s32 %d1, %r1, 4, %d2;",
             "ld.global.nc.L1::no_allocate.L2::128B.v4.f32 {%f1, %f2, %f3, %f4}, [%d1+-16];",
             "st.shared.v2.b32 [s+8], {%r1, %r2};",
             "setp.lt.and.u32 %p1|%p2, %r1, 0xFFU, !%p3;",
             "@!%p1 add.rn.ftz.f32 %f1, %f2, 0f3F800000;",
             "mov.f32 v.x, -1.5;",
             "mov.b32 %r1, %ctaid.z;",
             "shfl.sync.bfly.b32 %r1|%p1, %r2, 16, 31, -1;",
             "atom.global.relaxed.gpu.add.u32 _, [%d1], 1;",
             "ld.shared.u32 %r1, [64];",
             "vadd.u32.u32.u32 %r1, %r2.b0, %r3.h1;",
             "cp.async.bulk.commit_group;",
             "frobnicate.v9 %r1 , [%d1] ;",
             "mov.u64 %d1, s+12;",
             "ld.shared.b32 %r1, s[2];",
             "bar.sync 0;",
         }) {
        EXPECT_EQ(last_line(body(declarations + line)), line);
    }
}

TEST(Printer, EditedImmediatesNeedNoText) {
    Module m = body(".reg .b32 %r<2>; .reg .f32 %f<2>; .reg .f64 %g<2>; mov.u32 %r1, 1; ret;");
    Operand& o = m.functions[0].body[3].operands[1];
    o.text = {};
    o.value = static_cast<uint64_t>(-7);
    EXPECT_EQ(print(m, m.functions[0].body[3]), "mov.u32 %r1, -7;");
    o.literal = Operand::Literal::kF32;
    o.value = 0x3F800000;
    EXPECT_EQ(print(m, m.functions[0].body[3]), "mov.u32 %r1, 0f3F800000;");
    o.literal = Operand::Literal::kF64;
    EXPECT_EQ(print(m, m.functions[0].body[3]), "mov.u32 %r1, 0d000000003F800000;");
}

TEST(Printer, RenamedLabelsReachTargetLists) {
    Module m =
        body(".reg .b32 %r<2>; ts: .branchtargets L0, L1; brx.idx %r1, ts; L0: ret; L1: ret;");
    for (Symbol& s : m.symbols)
        if (s.name == "L1") s.name = m.intern("L1_copy");
    const std::string text = print(m);
    EXPECT_NE(text.find(".branchtargets L0, L1_copy;"), std::string::npos);
    EXPECT_TRUE(parse(text).ok());
}

TEST(Printer, FreshRegistersAreDeclaredAndKeepIndices) {
    Module m = body(".reg .b32 %r<2>; mov.u32 %r1, 1; ret;");
    Stmt& mov = m.functions[0].body[1];
    mov.operands[0].sym = m.add_register(0, Type::kB32, "tmp");
    m.add_register(0, Type::kPred, "%q");
    const std::string text = print(m);
    EXPECT_NE(text.find(".reg .b32 %tmp$"), std::string::npos);
    EXPECT_NE(text.find(".reg .pred %q$"), std::string::npos);
    EXPECT_TRUE(verify(m).ok());
    const Module again = parsed(text);
    EXPECT_EQ(print(again), text);
    EXPECT_TRUE(verify(again).ok());
}

TEST(Printer, FreshRegisterNamesAreUnique) {
    Module m = body(".reg .b32 %x$3, %x$4; .reg .b32 %r<2>; ret;");
    std::vector<Name> names;
    for (int i = 0; i < 20; ++i) names.push_back(m.at(m.add_register(0, Type::kB32, "x")).name);
    for (const Symbol& s : m.symbols)
        EXPECT_EQ(std::count_if(m.symbols.begin(), m.symbols.end(),
                                [&](const Symbol& t) { return t.name == s.name; }),
                  1);
    EXPECT_TRUE(parse(print(m)).ok());
}

// What every compiler in tests/data/ptx emits, and the hazards: printing settles after one round.
TEST(Printer, FixpointOnCommittedFiles) {
    size_t files = 0;
    for (const char* folder : {"/tests/data/ptx", "/tests/data/hazards"}) {
        for (const auto& entry :
             std::filesystem::directory_iterator(std::string(TTT_SOURCE_DIR) + folder)) {
            if (entry.path().extension() != ".ptx") continue;
            std::ifstream in(entry.path(), std::ios::binary);
            const Module m = parsed({std::istreambuf_iterator<char>(in), {}});
            const std::string once = print(m);
            EXPECT_EQ(print(parsed(once)), once) << entry.path();
            EXPECT_EQ(print(m.clone()), once) << entry.path();
            ++files;
        }
    }
    EXPECT_GE(files, 20u);
}

}  // namespace
}  // namespace ttt::ptx
