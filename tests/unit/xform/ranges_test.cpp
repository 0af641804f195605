// Ranges of registers, against what the interpreter finds in them; and comparisons they decide.
#include "xform/transforms/ranges.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "kernel_run.h"

namespace ttt::xform {
namespace {

using test::contains;
using test::KernelCase;

constexpr Dim3 kGrid{5, 3, 2}, kBlock{32, 4, 2};

// `steps` leave a value in %r9; more than one block writes it.
KernelCase valued(std::string_view steps) {
    KernelCase kernel(
        "(.param .u64 a){ .reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<20>; .reg .b64 %d<8>; "
        ".reg .b32 %cell<9>; "
        "ld.param.u64 %d1,[a]; mov.u32 %r1,%tid.x; mov.u32 %r2,%ctaid.x; mov.u32 %r3,%ntid.x; "
        "mov.u32 %r4,%tid.y; mov.u32 %r5,%ctaid.z; mov.u32 %r6,%nctaid.y; ld.global.u32 %r7,[%d1]; "
        "mad.lo.s32 %r8,%r2,%r3,%r1; " +
        std::string(steps) +
        " mov.u32 %cell1,%ctaid.y; mad.lo.u32 %cell2,%r5,3,%cell1; mad.lo.u32 %cell3,%cell2,5,%r2; "
        "mov.u32 %cell4,%tid.z; mad.lo.u32 %cell5,%cell4,4,%r4; mad.lo.u32 %cell6,%cell5,32,%r1; "
        "mad.lo.u32 %cell7,%cell3,256,%cell6; mul.wide.u32 %d2,%cell7,8; add.u64 %d3,%d1,%d2; "
        "st.global.u32 [%d3+8],%r9; ret; }");
    kernel.facts.grid = kGrid;
    kernel.facts.block = kBlock;
    return kernel;
}

ptx::Operand reg(const ptx::Module& module, std::string_view name) {
    ptx::Operand out;
    out.kind = ptx::Operand::Kind::kRegister;
    for (ptx::Sym s = 0; s < module.symbols.size(); ++s)
        if (module.at(s).name == name) out.sym = s;
    return out;
}

std::vector<uint64_t> values(const ptx::Module& module) {
    std::vector<uint64_t> memory(1 + kGrid.count() * kBlock.count(), 0);
    memory = test::run_kernel(module, kGrid, kBlock, std::move(memory));
    memory.erase(memory.begin());
    return memory;
}

TEST(Ranges, HoldEveryValueAndAreTightWhereTheyCanBe) {
    struct Case {
        const char* steps;
        uint64_t low, high;
    };
    const Case cases[] = {
        {"mov.u32 %r9,%r1;", 0, 31},
        {"mov.u32 %r9,%r3;", 32, 32},
        {"mov.u32 %r9,%r6;", 3, 3},
        {"mov.u32 %r9,%r8;", 0, 159},
        {"add.s32 %r9,%r8,7;", 7, 166},
        {"add.s32 %r10,%r8,7; add.s32 %r9,%r10,-7;", 0, 159},
        {"add.s32 %r9,%r1,-32;", 0xFFFFFFE0, 0xFFFFFFFF},
        {"add.s32 %r10,%r8,7; sub.s32 %r9,%r10,%r4;", 4, 166},
        {"mul.lo.s32 %r9,%r8,%r3;", 0, 5088},
        {"shl.b32 %r9,%r8,4;", 0, 2544},
        {"add.u32 %r10,%r8,64; shr.u32 %r9,%r10,5;", 2, 6},
        {"add.u32 %r10,%r8,64; div.s32 %r9,%r10,10;", 6, 22},
        {"rem.s32 %r9,%r8,10;", 0, 9},
        {"rem.u32 %r9,%r8,1000;", 0, 159},
        {"and.b32 %r9,%r8,24;", 0, 24},
        {"or.b32 %r9,%r8,256;", 0, 511},
        {"xor.b32 %r9,%r8,%r1;", 0, 255},
        {"min.s32 %r9,%r8,40;", 0, 40},
        {"max.u32 %r9,%r8,40;", 40, 159},
        {"cvt.u64.u32 %d4,%r8; add.s64 %d5,%d4,3; cvt.u32.u64 %r9,%d5;", 3, 162},
        {"mul.wide.s32 %d4,%r8,100; cvt.u32.u64 %r9,%d4;", 0, 15900},
        {"cvt.u16.u32 %h1,%r8; cvt.u32.u16 %r9,%h1;", 0, 159},
        {"mad.wide.u32 %d4,%r8,4,9; cvt.u32.u64 %r9,%d4;", 9, 645},
    };
    for (const Case& c : cases) {
        const KernelCase kernel = valued(c.steps);
        Ranges ranges(kernel.module(), 0, kGrid, kBlock);
        const auto found = ranges.of(reg(kernel.module(), "%r9"), 32);
        ASSERT_TRUE(found) << c.steps;
        EXPECT_EQ(found->low, c.low) << c.steps;
        EXPECT_EQ(found->high, c.high) << c.steps;
        for (uint64_t v : values(kernel.module())) {
            ASSERT_GE(v, found->low) << c.steps;
            ASSERT_LE(v, found->high) << c.steps;
        }
    }
}

TEST(Ranges, AreNoneWhereAnythingIsUnknownOrWraps) {
    for (const char* steps : {
             "mov.u32 %r9,%r7;",
             "add.s32 %r9,%r8,%r7;",
             "and.b32 %r9,%r7,15;",
             "add.s32 %r9,%r8,-7;",
             "sub.s32 %r9,%r1,%r4;",
             "mul.lo.s32 %r9,%r8,100000000;",
             "shl.b32 %r9,%r8,31;",
             "shl.b32 %r9,%r8,32;",
             "shr.u32 %r9,%r8,%r1;",
             "div.u32 %r9,%r8,%r1;",
             "mul.hi.u32 %r9,%r8,%r8;",
             "add.sat.s32 %r9,%r8,7;",
             "mov.u32 %r9,%laneid;",
             "add.s32 %r10,%r1,-32; shr.s32 %r9,%r10,1;",
             "add.s32 %r10,%r1,-32; div.s32 %r9,%r10,3;",
             "add.s32 %r10,%r1,-32; min.s32 %r9,%r10,3;",
             "add.s32 %r10,%r1,-32; mul.wide.s32 %d4,%r10,3; cvt.u32.u64 %r9,%d4;",
             "add.s32 %r10,%r1,-32; cvt.s64.s32 %d4,%r10; cvt.u32.u64 %r9,%d4;",
             "add.u32 %r10,%r1,250; cvt.u32.u8 %r9,%r10;",
             "mov.u32 %r9,0; add.s32 %r9,%r9,1;",
             "setp.lt.u32 %p1,%r7,3; @%p1 mov.u32 %r9,1;",
             "add.s32 %r9,%r9,1;",
         }) {
        const KernelCase kernel = valued(steps);
        Ranges ranges(kernel.module(), 0, kGrid, kBlock);
        EXPECT_FALSE(ranges.of(reg(kernel.module(), "%r9"), 32)) << steps;
    }
}

TEST(Ranges, DecideAComparisonExactlyWhenEveryThreadAgrees) {
    // %r8 takes every value from 0 to 159, %r10 every one from -32 to -1.
    uint32_t decided = 0;
    for (const char* type : {"s32", "u32", "b32"}) {
        for (const char* op : {"eq", "ne", "lt", "le", "gt", "ge"}) {
            if (type[0] == 'b' && op[0] != 'e' && op[0] != 'n') continue;
            for (const char* left : {"%r8", "%r10"}) {
                for (int64_t right :
                     {-33, -32, -31, -2, -1, 0, 1, 158, 159, 160, 100, 2147483647}) {
                    const KernelCase kernel =
                        valued(fmt::format("add.s32 %r10,%r1,-32; setp.{}.{} %p1,{},{}; "
                                           "selp.u32 %r9,1,0,%p1;",
                                           op, type, left, right));
                    bool always = true, never = true;
                    for (uint64_t v : values(kernel.module())) (v != 0 ? never : always) = false;
                    Ranges ranges(kernel.module(), 0, kGrid, kBlock);
                    const auto& body = kernel.module().find("k")->body;
                    const auto setp =
                        std::find_if(body.begin(), body.end(),
                                     [](const ptx::Stmt& s) { return s.is(ptx::Opcode::kSetp); });
                    const auto got = ranges.decided(*setp);
                    const std::optional<bool> want = always  ? std::optional(true)
                                                     : never ? std::optional(false)
                                                             : std::nullopt;
                    EXPECT_EQ(got, want) << op << '.' << type << ' ' << left << ' ' << right;
                    decided += got.has_value();
                }
            }
        }
    }
    EXPECT_GT(decided, 100u);
}

// ---- what fold makes of them

TEST(FoldRanges, BoundsChecksGoAndTheGuardHoldsTheSizes) {
    const KernelCase checked(
        "(.param .u64 a){ .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %d<4>; ld.param.u64 "
        "%d1,[a]; "
        "mov.u32 %r1,%tid.x; mov.u32 %r2,%ctaid.x; mad.lo.s32 %r3,%r2,256,%r1; "
        "setp.ge.s32 %p1,%r3,1024; setp.ge.s32 %p2,%r1,256; or.pred %p3,%p1,%p2; @%p3 bra DONE; "
        "mul.wide.s32 %d2,%r3,4; add.s64 %d3,%d1,%d2; st.global.u32 [%d3],%r3; DONE: ret; }");
    EXPECT_TRUE(contains(checked.text("fold"), "nothing to fold"));
    const auto folded = checked.apply("fold(ranges)");
    ASSERT_TRUE(folded.ok()) << folded.error().str();
    const std::string text = ptx::print(folded->module);
    for (const char* gone : {"setp", "or.pred", "bra"}) EXPECT_FALSE(contains(text, gone)) << text;
    EXPECT_EQ(folded->guard.grid, checked.facts.grid);
    EXPECT_EQ(folded->guard.block, checked.facts.block);
    const std::vector<uint64_t> memory(512, 1);
    EXPECT_EQ(test::run_kernel(folded->module, {4, 1, 1}, {256, 1, 1}, memory),
              test::run_kernel(checked.module(), {4, 1, 1}, {256, 1, 1}, memory));
}

TEST(FoldRanges, ACheckThatSomeThreadFailsStays) {
    const KernelCase kernel(
        "(.param .u64 a){ .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %d<4>; ld.param.u64 "
        "%d1,[a]; "
        "mov.u32 %r1,%tid.x; mov.u32 %r2,%ctaid.x; mad.lo.s32 %r3,%r2,256,%r1; "
        "setp.ge.s32 %p1,%r3,1023; setp.ge.s32 %p2,%r1,256; or.pred %p3,%p1,%p2; @%p3 bra DONE; "
        "mul.wide.s32 %d2,%r3,4; add.s64 %d3,%d1,%d2; st.global.u32 [%d3],%r3; DONE: ret; }");
    const auto folded = kernel.apply("fold(ranges)");
    ASSERT_TRUE(folded.ok()) << folded.error().str();
    const std::string text = ptx::print(folded->module);
    EXPECT_TRUE(contains(text, "setp.ge.s32 %p1, %r3, 1023")) << text;
    EXPECT_TRUE(contains(text, "mov.pred %p3, %p1")) << text;  // the other half is known
    const std::vector<uint64_t> memory(512, 1);
    EXPECT_EQ(test::run_kernel(folded->module, {4, 1, 1}, {256, 1, 1}, memory),
              test::run_kernel(kernel.module(), {4, 1, 1}, {256, 1, 1}, memory));
}

TEST(FoldRanges, NothingToDecideAddsNoGuard) {
    const KernelCase kernel(
        "(.param .u64 a){ .reg .b32 %r<9>; .reg .b64 %d<4>; ld.param.u64 %d1,[a]; mov.u32 %r2,3; "
        "add.u32 %r1,%r2,4; st.global.u32 [%d1],%r1; ret; }");
    const auto folded = kernel.apply("fold(divide,ranges)");
    ASSERT_TRUE(folded.ok()) << folded.error().str();
    EXPECT_FALSE(folded->guard.grid || folded->guard.block);
}

TEST(FoldRanges, ValuesThatWouldReachAnApproximationForbidThem) {
    // Decided, the bounds check leaves rcp.approx one constant operand.
    const KernelCase kernel(
        "(.param .u64 a){ .reg .pred %p; .reg .b32 %r<9>; .reg .f32 %f<4>; .reg .b64 %d<4>; "
        "ld.param.u64 %d1,[a]; mov.u32 %r1,%tid.x; mov.f32 %f1,0f40400000; "
        "setp.ge.u32 %p,%r1,256; @%p bra L; mov.f32 %f1,0f40A00000; L: rcp.approx.f32 %f2,%f1; "
        "st.global.f32 [%d1],%f2; ret; }");
    EXPECT_TRUE(contains(kernel.text("fold(ranges)"), "approximate operation"));
    const KernelCase chosen(
        "(.param .u64 a){ .reg .pred %p; .reg .b32 %r<9>; .reg .f32 %f<4>; .reg .b64 %d<4>; "
        "ld.param.u64 %d1,[a]; mov.u32 %r1,%ctaid.x; setp.ge.u32 %p,%r1,4; "
        "selp.b32 %r2,3,5,%p; cvt.rn.f32.u32 %f1,%r2; rcp.approx.f32 %f2,%f1; "
        "st.global.f32 [%d1],%f2; ret; }");
    EXPECT_TRUE(contains(chosen.text("fold(ranges)"), "approximate operation"));
    EXPECT_TRUE(contains(chosen.text("fold"), "nothing to fold"));
}

TEST(FoldRanges, ASelectionByADecidedComparisonIsACopy) {
    const KernelCase kernel(
        "(.param .u64 a){ .reg .pred %p; .reg .b32 %r<9>; .reg .b64 %d<4>; ld.param.u64 %d1,[a]; "
        "mov.u32 %r1,%tid.x; ld.global.u32 %r3,[%d1]; setp.lt.u32 %p,%r1,256; "
        "selp.b32 %r2,%r3,%r1,%p; st.global.u32 [%d1+4],%r2; ret; }");
    const std::string text = kernel.text("fold(ranges)");
    EXPECT_TRUE(contains(text, "mov.b32 %r2, %r3;")) << text;
}

}  // namespace
}  // namespace ttt::xform
