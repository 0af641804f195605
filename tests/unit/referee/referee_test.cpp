#include "referee/referee.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

namespace ttt::referee {
namespace {

constexpr const char* kHeader = ".version 8.7\n.target sm_90\n.address_size 64\n";

ptx::Module parse(const std::string& body) {
    auto parsed = ptx::parse(kHeader + body);
    EXPECT_TRUE(parsed.ok()) << (parsed.ok() ? "" : parsed.error().str());
    return parsed.ok() ? std::move(parsed).value() : ptx::Module{};
}

TEST(Gate, EveryGateHasItsOwnName) {
    std::set<std::string_view> names;
    for (uint8_t g = 0; g <= static_cast<uint8_t>(Gate::kNone); ++g)
        names.insert(name(static_cast<Gate>(g)));
    EXPECT_EQ(names.size(), static_cast<size_t>(Gate::kNone) + 1);
    EXPECT_FALSE(names.contains("unknown"));
    EXPECT_EQ(name(Gate::kOracle), "oracle");
    EXPECT_EQ(name(static_cast<Gate>(200)), "unknown");
}

TEST(JudgeTiming, OnlyALowerBoundAboveTheBarIsAccepted) {
    measure::Speedup s;
    s.median = 1.2, s.low = 1.02, s.high = 1.4, s.pairs = 30;
    EXPECT_EQ(judge_timing(s, 0.02).outcome, Outcome::kAccept);
    EXPECT_EQ(judge_timing(s, 0.03).outcome, Outcome::kUnknown);
    s.high = 1.025;
    EXPECT_EQ(judge_timing(s, 0.03).outcome, Outcome::kReject);
    EXPECT_EQ(judge_timing(s, 0.03).gate, Gate::kTiming);
    EXPECT_EQ(judge_timing(measure::Speedup{}, 0).outcome, Outcome::kUnknown);
}

// ---- static gate

constexpr const char* kPlain =
    ".visible .entry k(.param .u64 a){ .reg .f32 %f<4>; .reg .b64 %d; ld.param.u64 %d,[a]; "
    "ld.global.f32 %f1,[%d]; "
    "mul.f32 %f2,%f1,%f1; add.f32 %f3,%f2,%f1; st.global.f32 [%d],%f3; ret; }";

TEST(CheckStatic, TheSameKernelPasses) {
    const ptx::Module m = parse(kPlain);
    EXPECT_EQ(check_static(m, m, "k").outcome, Outcome::kAccept);
}

TEST(CheckStatic, PinnedRoundingPasses) {
    const ptx::Module v = parse(
        ".visible .entry k(.param .u64 a){ .reg .f32 %f<4>; .reg .b64 %d; ld.param.u64 %d,[a]; "
        "ld.global.nc.f32 %f1,[%d]; "
        "fma.rn.f32 %f3,%f1,%f1,%f1; st.global.f32 [%d],%f3; ret; }");
    EXPECT_EQ(check_static(parse(kPlain), v, "k").outcome, Outcome::kAccept);
}

TEST(CheckStatic, VariablesOnlyThroughCells) {
    const std::string head = ".visible .const .f32 taps[4]; .visible .const .u64 ttt_at_taps; ";
    const auto kernel = [&](const std::string& body) {
        return parse(head +
                     ".visible .entry k(.param .u64 a){ .reg .f32 %f<4>; .reg .b64 %d<4>; "
                     "ld.param.u64 %d1,[a]; " +
                     body + " st.global.f32 [%d1],%f1; ret; }");
    };
    const ptx::Module original = kernel("ld.const.f32 %f1,[taps+4];");
    EXPECT_EQ(
        check_static(original,
                     kernel("ld.const.u64 %d2,[ttt_at_taps]; ld.global.nc.f32 %f1,[%d2+4];"), "k")
            .outcome,
        Outcome::kAccept);
    const Verdict copy = check_static(original, original, "k");
    EXPECT_EQ(copy.outcome, Outcome::kReject);
    EXPECT_NE(copy.evidence.find("a copy of its own of the module variable taps"),
              std::string::npos);
}

TEST(CheckStatic, NewKindsAreRejectedByName) {
    const std::pair<const char*, const char*> cases[] = {
        {"atom.global.add.u32 %r,[%d],1;", "atom.global.add.u32"},
        {"red.global.add.f32 [%d],%f1;", "red.global.add.f32"},
        {"bar.sync 0;", "bar.sync"},
        {"ld.volatile.global.f32 %f1,[%d];", "ld.volatile.global"},
        {"st.shared.f32 [%d],%f1;", "st.shared"},
        {"rsqrt.approx.f32 %f2,%f1;", "rsqrt.approximate"},
        {"call f;", "call"},
        {"ld.global.f32 %f1,[g];", "variable g"},
        {"membar.gl;", "membar"},
        {"trap;", "trap"},
    };
    for (const auto& [extra, named] : cases) {
        const std::string text =
            std::string(
                ".global .f32 g; .func f(){ ret; } .visible .entry k(.param .u64 a){ .reg .f32 "
                "%f<4>; "
                ".reg .b32 %r; .reg .b64 %d; ld.param.u64 %d,[a]; ld.global.f32 %f1,[%d]; ") +
            extra + " mul.f32 %f2,%f1,%f1; add.f32 %f3,%f2,%f1; st.global.f32 [%d],%f3; ret; }";
        const Verdict v = check_static(parse(kPlain), parse(text), "k");
        EXPECT_EQ(v.outcome, Outcome::kReject) << extra;
        EXPECT_EQ(v.gate, Gate::kStatic);
        EXPECT_NE(v.evidence.find(named), std::string::npos) << v.evidence;
    }
}

TEST(CheckStatic, WhatAnIntegerDivisionBecomesPassesOnlyWhereThereWasOne) {
    const auto kernel = [](const std::string& middle) {
        return parse(
            ".visible .entry k(.param .u64 a){ .reg .b32 %r<4>; .reg .f32 %f<3>; .reg .b64 %d; "
            "ld.param.u64 %d,[a]; ld.global.u32 %r1,[%d]; " +
            middle + " st.global.u32 [%d],%r2; ret; }");
    };
    const char* steps =
        "mul.hi.u32 %r2,%r1,5; sub.u32 %r3,%r1,%r2; shr.u32 %r3,%r3,1; neg.s32 %r2,%r3;";
    const ptx::Module variant = kernel(steps);
    EXPECT_EQ(check_static(kernel("div.u32 %r2,%r1,7;"), variant, "k").outcome, Outcome::kAccept);
    EXPECT_EQ(check_static(kernel("mov.b32 %r2,%r1;"), variant, "k").outcome, Outcome::kReject);
    // A floating division does not bring them, and an integer one brings no floating operation.
    EXPECT_EQ(check_static(kernel("mov.b32 %f1,%r1; div.rn.f32 %f2,%f1,%f1; mov.b32 %r2,%f2;"),
                           variant, "k")
                  .outcome,
              Outcome::kReject);
    EXPECT_EQ(check_static(kernel("div.u32 %r2,%r1,7;"),
                           kernel("mov.b32 %f1,%r1; add.rn.f32 %f2,%f1,%f1; mov.b32 %r2,%f2;"), "k")
                  .outcome,
              Outcome::kReject);
}

TEST(CheckStatic, MissingEntryIsRejected) {
    EXPECT_EQ(check_static(parse(kPlain), parse(".visible .entry other(){ ret; }"), "k").outcome,
              Outcome::kReject);
}

// ---- oracle gate

// A launch with one buffer per pointer parameter, in order.
class Launched {
  public:
    Launched(const std::string& body, Dim3 grid, Dim3 block, uint64_t first_address = 0x10000000)
        : module_(parse(body)), next_(first_address) {
        snapshot_.launch.grid = grid;
        snapshot_.launch.block = block;
    }
    void buffer(std::vector<uint32_t> before, std::vector<uint32_t> after) {
        measure::Region region;
        region.address = next_;
        region.bytes = before.size() * 4;
        region.written = true;
        region.pointers = {static_cast<uint32_t>(snapshot_.launch.params.size())};
        append(&next_, 8);
        next_ += 0x100000;
        snapshot_.regions.push_back(region);
        pre_.push_back(bytes(before));
        post_.push_back(bytes(after));
    }
    void scalar(uint32_t value) { append(&value, 4); }
    void variable(const std::string& name, std::vector<uint32_t> contents) {
        measure::Region region;
        region.address = next_;
        region.bytes = contents.size() * 4;
        region.variable = name;
        next_ += 0x100000;
        snapshot_.regions.push_back(region);
        pre_.push_back(bytes(contents));
        post_.emplace_back();
    }

    Verdict judge(bool pinned = true, ptx::Footprint* footprint = nullptr,
                  uint64_t budget = 1'000'000) const {
        OracleInput input;
        input.module = &module_;
        input.entry = "k";
        input.pinned = pinned;
        input.snapshot = &snapshot_;
        input.pre = pre_;
        input.post = post_;
        input.instruction_budget = budget;
        return check_oracle(input, footprint);
    }
    measure::Snapshot& snapshot() { return snapshot_; }
    std::vector<std::vector<std::byte>>& post() { return post_; }
    std::vector<std::vector<std::byte>>& pre() { return pre_; }

  private:
    void append(const void* data, size_t n) {
        const auto* p = static_cast<const std::byte*>(data);
        snapshot_.launch.params.insert(snapshot_.launch.params.end(), p, p + n);
    }
    static std::vector<std::byte> bytes(const std::vector<uint32_t>& words) {
        std::vector<std::byte> out(words.size() * 4);
        if (!out.empty()) std::memcpy(out.data(), words.data(), out.size());
        return out;
    }
    ptx::Module module_;
    measure::Snapshot snapshot_;
    std::vector<std::vector<std::byte>> pre_, post_;
    uint64_t next_;
};

// Hazard r07: CUDA 13's assembler drops the absolute value at O1 and above.
constexpr const char* kR07 =
    ".visible .entry k(.param .u64 a){ .reg .b64 %d; .reg .b32 %r<6>; ld.param.u64 %d,[a]; "
    "ld.global.s32 %r1,[%d]; "
    "ld.global.s32 %r2,[%d+4]; neg.s32 %r3,%r1; max.s32 %r4,%r1,%r3; max.s32 %r5,%r4,%r2; "
    "st.global.s32 [%d+8],%r5; ret; }";

TEST(CheckOracle, CatchesTheAssemblerFaultR07) {
    Launched wrong(kR07, {1, 1, 1}, {1, 1, 1});
    wrong.buffer({static_cast<uint32_t>(-7), 3, 0}, {static_cast<uint32_t>(-7), 3, 3});
    const Verdict v = wrong.judge();
    EXPECT_EQ(v.outcome, Outcome::kReject);
    EXPECT_EQ(v.gate, Gate::kOracle);
    EXPECT_NE(v.evidence.find("oracle disagrees"), std::string::npos) << v.evidence;
    EXPECT_NE(v.evidence.find("0x00000007"), std::string::npos) << v.evidence;

    Launched right(kR07, {1, 1, 1}, {1, 1, 1});
    right.buffer({static_cast<uint32_t>(-7), 3, 0}, {static_cast<uint32_t>(-7), 3, 7});
    EXPECT_EQ(right.judge().outcome, Outcome::kAccept) << right.judge().evidence;
}

constexpr const char* kIota =
    ".visible .entry k(.param .u64 a){ .reg .b32 %r<4>; .reg .b64 %d<3>; ld.param.u64 %d1,[a]; "
    "mov.u32 %r1,%ctaid.x; "
    "mul.wide.u32 %d2,%r1,4; add.s64 %d2,%d1,%d2; st.global.u32 [%d2],%r1; ret; }";

std::vector<uint32_t> iota(uint32_t n) {
    std::vector<uint32_t> out(n);
    for (uint32_t i = 0; i < n; ++i) out[i] = i;
    return out;
}

TEST(CheckOracle, JudgesSampledBlocksOfALargeGrid) {
    constexpr uint32_t kBlocks = 5000;
    Launched launch(kIota, {kBlocks, 1, 1}, {1, 1, 1});
    launch.buffer(std::vector<uint32_t>(kBlocks, 77), iota(kBlocks));
    ptx::Footprint footprint;
    const Verdict v = launch.judge(true, &footprint);
    EXPECT_EQ(v.outcome, Outcome::kAccept) << v.evidence;
    EXPECT_NE(v.evidence.find("64 of 5000 blocks"), std::string::npos) << v.evidence;
    ASSERT_FALSE(footprint.written.empty());
    EXPECT_EQ(footprint.written.front().begin, 0x10000000u);
    EXPECT_EQ(footprint.written.back().end, 0x10000000u + 4 * kBlocks);
}

TEST(CheckOracle, LastBlockIsAlwaysJudged) {
    auto post = iota(5000);
    post.back() = 1;
    Launched launch(kIota, {5000, 1, 1}, {1, 1, 1});
    launch.buffer(std::vector<uint32_t>(5000, 77), post);
    EXPECT_EQ(launch.judge().outcome, Outcome::kReject);
}

TEST(CheckOracle, AddressesInTheInterpretersWindowsAreMoved) {
    Launched launch(kIota, {8, 1, 1}, {1, 1, 1}, 0x7F5432100000ull);
    launch.buffer(std::vector<uint32_t>(8, 77), iota(8));
    ptx::Footprint footprint;
    const Verdict v = launch.judge(true, &footprint);
    EXPECT_EQ(v.outcome, Outcome::kAccept) << v.evidence;
    ASSERT_EQ(footprint.written.size(), 1u);
    EXPECT_EQ(footprint.written[0], (ptx::Footprint::Range{0x7F5432100000ull, 0x7F5432100020ull}));
}

TEST(CheckOracle, UnknownWhenItMayNotJudge) {
    Launched unpinned(
        ".visible .entry k(.param .u64 a){ .reg .f32 %f<3>; .reg .b64 %d; ld.param.u64 %d,[a]; "
        "ld.global.f32 %f1,[%d]; add.f32 %f2,%f1,%f1; st.global.f32 [%d],%f2; ret; }",
        {1, 1, 1}, {1, 1, 1});
    unpinned.buffer({0}, {0});
    EXPECT_EQ(unpinned.judge(false).outcome, Outcome::kUnknown);
    EXPECT_EQ(unpinned.judge(true).outcome, Outcome::kAccept);

    Launched approximate(
        ".visible .entry k(.param .u64 a){ .reg .f32 %f<3>; .reg .b64 %d; ld.param.u64 %d,[a]; "
        "ld.global.f32 %f1,[%d]; rsqrt.approx.f32 %f2,%f1; st.global.f32 [%d],%f2; ret; }",
        {1, 1, 1}, {1, 1, 1});
    approximate.buffer({0x40000000}, {1});
    ptx::Footprint footprint;
    const Verdict v = approximate.judge(true, &footprint);
    EXPECT_EQ(v.outcome, Outcome::kUnknown);
    EXPECT_NE(v.evidence.find("approximate"), std::string::npos);
    EXPECT_EQ(footprint.written.size(), 1u);
}

TEST(CheckOracle, UnknownOnBudgetFaultAndMissingImages) {
    constexpr const char* kEndless =
        ".visible .entry k(.param .u64 a){ .reg .b32 %r; .reg .b64 %d; ld.param.u64 %d,[a]; L: "
        "add.u32 %r,%r,1; "
        "st.global.u32 [%d],%r; bra L; }";
    Launched endless(kEndless, {1, 1, 1}, {1, 1, 1});
    endless.buffer({0}, {0});
    Verdict v = endless.judge(true, nullptr, 10'000);
    EXPECT_EQ(v.outcome, Outcome::kUnknown);
    EXPECT_NE(v.evidence.find("budget"), std::string::npos) << v.evidence;

    Launched outside(kIota, {8, 1, 1}, {1, 1, 1});
    outside.buffer(std::vector<uint32_t>(4, 0), iota(4));
    v = outside.judge();
    EXPECT_EQ(v.outcome, Outcome::kUnknown);
    EXPECT_NE(v.evidence.find("faults"), std::string::npos) << v.evidence;

    Launched lost(kIota, {8, 1, 1}, {1, 1, 1});
    lost.buffer(std::vector<uint32_t>(8, 0), iota(8));
    lost.post()[0].clear();
    EXPECT_EQ(lost.judge().outcome, Outcome::kUnknown);
    lost.pre()[0].resize(4);
    EXPECT_EQ(lost.judge().outcome, Outcome::kUnknown);
    EXPECT_EQ(check_oracle(OracleInput{}, nullptr).outcome, Outcome::kUnknown);
}

// The same kernel as the program has it and with an address cell: both find the recorded contents,
// not the initialiser's.
TEST(CheckOracle, ModuleVariablesAreAsRecorded) {
    const std::string ends = " st.global.u32 [%d1],%r1; ret; }";
    const std::string kernels[] = {
        ".visible .const .u32 taps[2] = {1, 2}; .visible .entry k(.param .u64 a){ .reg .b32 %r<3>; "
        ".reg .b64 %d<4>; ld.param.u64 %d1,[a]; ld.const.u32 %r1,[taps+4];" +
            ends,
        ".visible .const .u64 ttt_at_taps; .visible .entry k(.param .u64 a){ .reg .b32 %r<3>; "
        ".reg .b64 %d<4>; ld.param.u64 %d1,[a]; ld.const.u64 %d2,[ttt_at_taps]; "
        "ld.global.nc.u32 %r1,[%d2+4];" +
            ends};
    for (const std::string& kernel : kernels) {
        Launched right(kernel, {1, 1, 1}, {1, 1, 1});
        right.buffer({0}, {77});
        EXPECT_EQ(right.judge().outcome, Outcome::kUnknown) << "contents not recorded";
        right.variable("taps", {5, 77});
        const Verdict v = right.judge();
        EXPECT_EQ(v.outcome, Outcome::kAccept) << v.evidence;
        Launched wrong(kernel, {1, 1, 1}, {1, 1, 1});
        wrong.buffer({0}, {2});
        wrong.variable("taps", {5, 77});
        EXPECT_EQ(wrong.judge().outcome, Outcome::kReject);
    }
}

TEST(CheckOracle, AtomicsNeedEveryBlock) {
    constexpr const char* kCount =
        ".visible .entry k(.param .u64 a){ .reg .b64 %d; ld.param.u64 %d,[a]; red.global.add.u32 "
        "[%d],1; ret; }";
    Launched small(kCount, {8, 1, 1}, {1, 1, 1});
    small.buffer({5}, {13});
    EXPECT_EQ(small.judge().outcome, Outcome::kAccept) << small.judge().evidence;
    Launched large(kCount, {8000, 1, 1}, {1, 1, 1});
    large.buffer({5}, {8005});
    EXPECT_EQ(large.judge().outcome, Outcome::kUnknown);
}

}  // namespace
}  // namespace ttt::referee
