// Strong loads, stores and fences: what a block publishes reaches a block on another host thread,
// and every type moves as it does weakly. The first is a test of the thread sanitizer's too.
#include <fmt/format.h>

#include <algorithm>

#include "interpreter_fixture.h"

namespace ttt::ptx {
namespace {

// Block 1 publishes 1..31 behind a flag; block 0 waits for the flag and sums them up.
std::string message(const std::string& publish, const std::string& look) {
    std::string fill, sum = "mov.u32 %r4, 0;\n";
    for (int i = 1; i < 32; ++i) {
        fill += fmt::format("st.global.u32 [%d1+{}], {};\n", 64 + 4 * i, i);
        sum += fmt::format("ld.global.u32 %r5, [%d1+{}];\nadd.u32 %r4, %r4, %r5;\n", 64 + 4 * i);
    }
    return "mov.u32 %r2, %ctaid.x;\nsetp.eq.u32 %p1, %r2, 1;\n@%p1 bra PUBLISH;\nSPIN:\n" + look +
           "setp.eq.u32 %p2, %r3, 0;\n@%p2 bra SPIN;\n" + sum +
           "st.global.u32 [%d1+4], %r4;\nbra END;\nPUBLISH:\n" + fill + publish + "END:";
}

struct Protocol {
    const char *publish, *look;
};

class Message : public testing::TestWithParam<Protocol> {};

TEST_P(Message, IsCompleteWhenTheFlagIsSeen) {
    Bench b(message(GetParam().publish, GetParam().look));
    LaunchRequest request;
    request.grid = {2, 1, 1};
    request.host_threads = 2;
    for (int round = 0; round < 50; ++round) {
        std::fill(b.buffer.begin(), b.buffer.end(), std::byte{0});
        ASSERT_FALSE(b.run(1, request).fault);
        ASSERT_EQ(b.word(1), 31u * 32 / 2) << round;
    }
}

constexpr Protocol kProtocols[] = {
    {"membar.gl;\nst.volatile.global.u32 [%d1], 1;\n",
     "ld.volatile.global.u32 %r3, [%d1];\nmembar.gl;\n"},
    {"fence.acq_rel.gpu;\nst.relaxed.gpu.global.u32 [%d1], 1;\n",
     "ld.relaxed.gpu.global.u32 %r3, [%d1];\nfence.acq_rel.gpu;\n"},
    {"st.release.gpu.global.u32 [%d1], 1;\n", "ld.acquire.gpu.global.u32 %r3, [%d1];\n"},
    {"st.release.gpu.u32 [%d1], 1;\n", "ld.acquire.gpu.u32 %r3, [%d1];\n"},
    {"membar.gl;\natom.global.exch.b32 %r6, [%d1], 1;\n",
     "atom.global.or.b32 %r3, [%d1], 0;\nmembar.gl;\n"},
};
INSTANTIATE_TEST_SUITE_P(Interpreter, Message, testing::ValuesIn(kProtocols));

// Loads 0xF1F2…, stores it, as `kind` of access; gives the bytes stored.
std::vector<std::byte> moved(const std::string& kind, const char* type, const char* reg) {
    Bench b(
        fmt::format("ld.{0}global.{1} {2}, [%d1];\nst.global.b64 [%d1+64], {3};\n"
                    "st.{0}global.{1} [%d1+128], {2};",
                    kind, type, reg, reg[1] == 'd' ? reg : "%d1"));
    for (size_t i = 0; i < 16; ++i) b.buffer[i] = std::byte(0xF0 + i);
    EXPECT_FALSE(b.run(1).fault);
    return {b.buffer.begin() + 64, b.buffer.begin() + 144};
}

TEST(Interpreter, StrongAccessesMoveEveryTypeAsWeakOnes) {
    for (const char* type : {"u8", "s8", "u16", "s16", "u32", "s32", "b64", "s64"}) {
        const auto weak = moved("", type, "%d3");
        for (const char* kind : {"volatile.", "relaxed.gpu."})
            EXPECT_EQ(moved(kind, type, "%d3"), weak) << kind << type;
    }
    for (const char* type : {"v2.u32", "v4.u32"}) {
        const char* regs = type[1] == '2' ? "{%r3, %r4}" : "{%r3, %r4, %r5, %r6}";
        EXPECT_EQ(moved("volatile.", type, regs), moved("", type, regs)) << type;
    }
}

}  // namespace
}  // namespace ttt::ptx
