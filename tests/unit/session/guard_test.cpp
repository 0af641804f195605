// Guards as the tuner sends them: what is accepted, what is refused.
#include <gtest/gtest.h>

#include "session/dispatch.h"

namespace ttt::session {
namespace {

struct Case {
    uint32_t scalar_offset = 16, scalar_bytes = 4, align_offset = 0, alignment = 16, read = 0,
             write = 8;
};

Status compile(const Case& c, Dispatch* out) {
    ParamLayout layout;
    layout.params = {{0, 8}, {8, 8}, {16, 4}};
    layout.known = true;
    flatbuffers::FlatBufferBuilder b;
    std::vector<flatbuffers::Offset<ipc::ScalarGuard>> scalars{ipc::CreateScalarGuard(
        b, c.scalar_offset, b.CreateVector(std::vector<uint8_t>(c.scalar_bytes, 1)))};
    auto sv = b.CreateVector(scalars);
    auto av = b.CreateVectorOfStructs(std::vector<ipc::AlignGuard>{{c.align_offset, c.alignment}});
    auto ov = b.CreateVectorOfStructs(std::vector<ipc::OverlapGuard>{{c.read, c.write}});
    const ipc::Dim3 grid(3, 2, 1);
    b.Finish(ipc::CreateGuardDef(b, &grid, nullptr, 64, sv, av, ov));
    return Dispatch::compile_guard(flatbuffers::GetRoot<ipc::GuardDef>(b.GetBufferPointer()),
                                   layout, out);
}

TEST(Guard, CompilesWhatLiesInsideTheParameters) {
    Dispatch d;
    ASSERT_TRUE(compile({}, &d).ok());
    EXPECT_EQ(d.need_grid, (Dim3{3, 2, 1}));
    EXPECT_FALSE(d.need_block.has_value());
    EXPECT_EQ(d.need_shared, 64u);
    EXPECT_EQ(d.scalars.size(), 1u);
    EXPECT_EQ(d.aligned[0].mask, 15u);
    EXPECT_EQ(d.overlaps.size(), 1u);
}

TEST(Guard, RefusesEverythingElse) {
    for (const Case& c :
         {Case{.scalar_offset = 18}, Case{.scalar_offset = 400}, Case{.scalar_bytes = 0},
          Case{.scalar_bytes = 5000}, Case{.align_offset = 4}, Case{.alignment = 0},
          Case{.alignment = 12}, Case{.read = 16}, Case{.write = 0xFFFFFFFF}}) {
        Dispatch d;
        EXPECT_FALSE(compile(c, &d).ok());
    }
}

TEST(Guard, NoGuardIsNoCondition) {
    Dispatch d;
    EXPECT_TRUE(Dispatch::compile_guard(nullptr, {}, &d).ok());
    EXPECT_TRUE(d.scalars.empty());
}

}  // namespace
}  // namespace ttt::session
