// Which registers an instruction writes and reads, above all where its modifiers decide that.
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>

#include "ptx/dataflow.h"

namespace ttt::ptx {
namespace {

struct Form {
    const char* text;
    const char* written;  // names without %, in operand order
    const char* read;
};

// What a failure shows.
void PrintTo(const Form& form, std::ostream* out) { *out << form.text; }

class Registers : public testing::TestWithParam<Form> {};

Module module_of(const std::string& instruction) {
    auto module = parse(
        ".version 8.8\n.target sm_100a\n.address_size 64\n.entry k() {\n"
        ".reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .b128 %q<2>; .reg .f32 %f<9>;\n"
        ".shared .align 8 .b64 bar;\n" +
        instruction + "\nret; }");
    EXPECT_TRUE(module.ok()) << module.error().str();
    return std::move(module).value();
}

std::string names(const Module& module, const std::vector<Sym>& registers) {
    std::string out;
    for (Sym r : registers)
        out += (out.empty() ? "" : " ") + std::string(module.at(r).name.substr(1));
    return out;
}

TEST_P(Registers, AreThoseOfTheForm) {
    const Module module = module_of(GetParam().text);
    ASSERT_EQ(module.opaque_count, 0u) << GetParam().text;
    EXPECT_TRUE(verify(module).ok());
    const std::vector<Stmt>& body = module.functions[0].body;
    const auto stmt = std::find_if(
        body.begin(), body.end(), [](const Stmt& s) { return s.kind == Stmt::Kind::kInstruction; });
    ASSERT_NE(stmt, body.end());
    std::vector<Sym> registers;
    written_registers(*stmt, registers);
    EXPECT_EQ(names(module, registers), GetParam().written);
    read_registers(module, *stmt, registers);
    EXPECT_EQ(names(module, registers), GetParam().read);
}

INSTANTIATE_TEST_SUITE_P(
    Usual, Registers,
    testing::Values(
        Form{"@%p1 add.u32 %r1, %r2, 7;", "r1", "p1 r2"},
        Form{"setp.lt.and.u32 %p1|%p2, %r1, %r2, %p3;", "p1 p2", "r1 r2 p3"},
        Form{"shfl.sync.up.b32 %r1|%p1, %r2, %r3, 0, -1;", "r1 p1", "r2 r3"},
        Form{"match.all.sync.b32 %r1|%p1, %r2, -1;", "r1 p1", "r2"},
        Form{"ld.global.v2.u32 {%r1, %r2}, [%d1+8];", "r1 r2", "d1"},
        Form{"st.global.v2.u32 [%d1], {%r1, %r2};", "", "d1 r1 r2"},
        Form{"mov.b64 {%r1, _}, %d1;", "r1", "d1"},
        Form{"atom.global.add.u32 %r1, [%d1], %r2;", "r1", "d1 r2"},
        Form{"red.global.add.u32 [%d1], %r2;", "", "d1 r2"},
        Form{
            "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%d1, %d2}, {%d3}, {%d4}, {%d5, %d6};",
            "d1 d2", "d3 d4 d5 d6"},
        Form{"stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r1], {%r2};", "", "r1 r2"}));

INSTANTIATE_TEST_SUITE_P(
    ModifiersDecide, Registers,
    testing::Values(
        Form{"bar.sync 0;", "", ""}, Form{"bar.red.popc.u32 %r1, 0, %p1;", "r1", "p1"},
        Form{"barrier.cta.red.and.pred %p1, 0, !%p2;", "p1", "p2"},
        Form{"wmma.load.a.sync.aligned.row.m16n16k16.global.f16 "
             "{%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%d1];",
             "r1 r2 r3 r4 r5 r6 r7 r8", "d1"},
        Form{"wmma.load.b.sync.aligned.col.m16n16k8.global.tf32 {%r1, %r2, %r3, %r4}, [%d1];",
             "r1 r2 r3 r4", "d1"},
        Form{"wmma.store.d.sync.aligned.row.m16n16k16.global.f32 "
             "[%d1], {%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8};",
             "", "d1 f1 f2 f3 f4 f5 f6 f7 f8"},
        Form{"wgmma.fence.sync.aligned;", "", ""},
        Form{"wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8 {%r1, %r2, %r3, %r4}, %d1, %d2, %p1;",
             "r1 r2 r3 r4", "r1 r2 r3 r4 d1 d2 p1"},
        Form{"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %d1, %d2, "
             "%p1, "
             "1, 1, 0, 0;",
             "f1 f2 f3 f4", "f1 f2 f3 f4 d1 d2 p1"},
        Form{"multimem.ld_reduce.global.add.u32 %r1, [%d1];", "r1", "d1"},
        Form{"multimem.red.global.add.u32 [%d1], %r1;", "", "d1 r1"},
        Form{"mbarrier.init.shared.b64 [bar], %r1;", "", "r1"},
        Form{"mbarrier.arrive.shared.b64 %d1, [bar];", "d1", ""},
        Form{"mbarrier.arrive.shared::cluster.b64 _, [%r1];", "", "r1"},
        Form{"mbarrier.test_wait.shared.b64 %p1, [bar], %d1;", "p1", "d1"},
        Form{"mbarrier.try_wait.parity.shared.b64 %p1, [bar], %r1;", "p1", "r1"},
        Form{"mbarrier.pending_count.b64 %r1, %d1;", "r1", "d1"},
        Form{"tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r1, %r2}, [%r3];", "r1 r2", "r3"},
        Form{"tcgen05.st.sync.aligned.32x32b.x2.b32 [%r3], {%r1, %r2};", "", "r3 r1 r2"},
        Form{"clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p1, %q1;", "p1", "q1"}));

}  // namespace
}  // namespace ttt::ptx
