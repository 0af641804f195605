#include "ptx/cfg.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>

#include "base/hash.h"

namespace ttt::ptx {
namespace {

// Processor time of this thread: the machine may be busy with other things.
double cpu_seconds() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

Module body(const std::string& statements) {
    auto module = parse(
        ".version 8.7\n.target sm_90\n.address_size 64\n.entry k() {\n"
        ".reg .pred %p<9>; .reg .b32 %r<9>;\n" +
        statements + "\n}\n");
    EXPECT_TRUE(module.ok()) << (module.ok() ? "" : module.error().str());
    return module.ok() ? std::move(module).value() : Module();
}

Cfg graph(const Module& m) {
    auto cfg = build_cfg(m, m.functions.at(0));
    EXPECT_TRUE(cfg.ok()) << (cfg.ok() ? "" : cfg.error().str());
    return cfg.ok() ? std::move(cfg).value() : Cfg();
}

// Block that starts with (or contains) the label.
BlockId at(const Module& m, const Cfg& cfg, std::string_view label) {
    const auto& stmts = m.functions[0].body;
    for (uint32_t i = 0; i < stmts.size(); ++i)
        if (stmts[i].kind == Stmt::Kind::kLabel && m.at(stmts[i].sym).name == label)
            return cfg.block_of[i];
    ADD_FAILURE() << label;
    return kNoBlock;
}

TEST(Cfg, EmptyBodyIsOneBlock) {
    auto module = parse(".version 8.7\n.target sm_90\n.entry k() { }");
    ASSERT_TRUE(module.ok());
    const Cfg cfg = graph(*module);
    EXPECT_EQ(cfg.blocks.size(), 1u);
    EXPECT_TRUE(cfg.blocks[0].exits);
}

TEST(Cfg, Diamond) {
    const Module m =
        body("@%p1 bra A; add.u32 %r1, %r1, 1; bra.uni J; A: add.u32 %r1, %r1, 2; J: ret;");
    const Cfg cfg = graph(m);
    ASSERT_EQ(cfg.blocks.size(), 4u);
    const BlockId a = at(m, cfg, "A"), j = at(m, cfg, "J");
    EXPECT_EQ(cfg.blocks[0].successors, (std::vector<BlockId>{1, a}));
    EXPECT_EQ(cfg.blocks[j].predecessors, (std::vector<BlockId>{1, a}));
    EXPECT_EQ(cfg.idom[j], 0u);
    EXPECT_EQ(cfg.ipdom[0], j);
    EXPECT_EQ(cfg.ipdom[a], j);
    EXPECT_EQ(cfg.ipdom[j], kNoBlock);
    EXPECT_TRUE(cfg.dominates(0, j));
    EXPECT_FALSE(cfg.dominates(a, j));
    EXPECT_TRUE(cfg.post_dominates(j, 0));
    EXPECT_FALSE(cfg.post_dominates(a, 0));
    EXPECT_TRUE(cfg.loops.empty());
}

TEST(Cfg, GuardedExitFallsThrough) {
    const Module m = body("@%p1 exit; add.u32 %r1, %r1, 1; ret;");
    const Cfg cfg = graph(m);
    ASSERT_EQ(cfg.blocks.size(), 2u);
    EXPECT_TRUE(cfg.blocks[0].exits);
    EXPECT_EQ(cfg.blocks[0].successors, (std::vector<BlockId>{1}));
    EXPECT_EQ(cfg.ipdom[0], kNoBlock);  // lanes that left never come back
}

TEST(Cfg, BranchToTheNextBlockCountsOnce) {
    const Module m = body("@%p1 bra A; A: ret;");
    EXPECT_EQ(graph(m).blocks[0].successors.size(), 1u);
}

TEST(Cfg, NestedLoops) {
    const Module m = body(
        "OUTER: add.u32 %r1, %r1, 1; INNER: add.u32 %r2, %r2, 1; @%p1 bra INNER; @%p2 bra OUTER; "
        "ret;");
    const Cfg cfg = graph(m);
    const BlockId outer = at(m, cfg, "OUTER"), inner = at(m, cfg, "INNER");
    ASSERT_EQ(cfg.loops.size(), 2u);
    EXPECT_EQ(cfg.loops[0].header, outer);
    EXPECT_EQ(cfg.loops[1].header, inner);
    EXPECT_EQ(cfg.loops[1].parent, 0u);
    EXPECT_EQ(cfg.loops[1].depth, 2u);
    EXPECT_EQ(cfg.loops[1].blocks, (std::vector<BlockId>{inner}));
    EXPECT_EQ(cfg.loops[0].blocks.size(), 3u);
    EXPECT_EQ(cfg.loop_of[inner], 1u);
    EXPECT_EQ(cfg.loop_of[outer], 0u);
}

TEST(Cfg, LoopWithTwoLatchesIsOneLoop) {
    const Module m = body("L: @%p1 bra L; add.u32 %r1, %r1, 1; @%p2 bra L; ret;");
    const Cfg cfg = graph(m);
    ASSERT_EQ(cfg.loops.size(), 1u);
    EXPECT_EQ(cfg.loops[0].latches.size(), 2u);
}

TEST(Cfg, IrreducibleIsSaid) {
    const Module m = body("@%p1 bra B; A: add.u32 %r1, %r1, 1; B: @%p2 bra A; ret;");
    const Cfg cfg = graph(m);
    EXPECT_TRUE(cfg.irreducible);
    EXPECT_TRUE(cfg.loops.empty());
}

TEST(Cfg, UnreachableBlocks) {
    const Module m = body("bra END; DEAD: add.u32 %r1, %r1, 1; bra DEAD; END: ret;");
    const Cfg cfg = graph(m);
    const BlockId dead = at(m, cfg, "DEAD");
    EXPECT_FALSE(cfg.reachable(dead));
    EXPECT_TRUE(cfg.reachable(at(m, cfg, "END")));
    EXPECT_EQ(cfg.rpo.size(), 2u);
    EXPECT_TRUE(cfg.loops.empty());
    EXPECT_FALSE(cfg.dominates(0, dead));
}

TEST(Cfg, EndlessLoopHasNoPostDominator) {
    const Module m = body("@%p1 bra OUT; L: bra L; OUT: ret;");
    const Cfg cfg = graph(m);
    EXPECT_EQ(cfg.ipdom[at(m, cfg, "L")], kNoBlock);
    EXPECT_EQ(cfg.ipdom[0], at(m, cfg, "OUT"));
}

TEST(Cfg, IndexedBranch) {
    const Module m =
        body("ts: .branchtargets A, B, A; brx.idx %r1, ts; A: bra C; B: bra C; C: ret;");
    const Cfg cfg = graph(m);
    EXPECT_EQ(cfg.blocks[0].successors, (std::vector<BlockId>{at(m, cfg, "A"), at(m, cfg, "B")}));
    EXPECT_EQ(cfg.ipdom[0], at(m, cfg, "C"));
}

TEST(Cfg, IndexedBranchWithListElsewhere) {
    const Module m = body("brx.idx %r1, ts; A: ret; B: ret; ts: .branchtargets A, B;");
    EXPECT_EQ(graph(m).blocks[0].successors.size(), 2u);
}

TEST(Cfg, ATargetListOfNoLabelsIsRefused) {
    const Module m = body("ts: add.u32 %r1, %r2, 7; brx.idx %r1, ts; ret;");
    EXPECT_FALSE(build_cfg(m, m.functions.at(0)).ok());
}

TEST(Cfg, UnknownTargetsAreRefused) {
    Module m = body("A: bra A;");
    for (Stmt& s : m.functions[0].body)
        if (s.is(Opcode::kBra)) s.operands.clear();
    const auto cfg = build_cfg(m, m.functions[0]);
    ASSERT_FALSE(cfg.ok());
    EXPECT_EQ(cfg.error().code, Code::kUnsupported);
}

TEST(Cfg, DeepNestIsNoLoopAtAll) {
    const auto nest = [](int depth) {
        std::string text;
        for (int i = 0; i < depth; ++i)
            text += "L" + std::to_string(i) + ": add.u32 %r1, %r1, 1;\n";
        for (int i = depth; i-- > 0;) text += "@%p1 bra L" + std::to_string(i) + ";\n";
        return body(text + "ret;");
    };
    const Cfg fits = graph(nest(kMaxLoopDepth));
    EXPECT_EQ(fits.loops.size(), kMaxLoopDepth);
    EXPECT_EQ(fits.loops.back().depth, kMaxLoopDepth);
    EXPECT_FALSE(fits.irreducible);
    const Cfg deep = graph(nest(kMaxLoopDepth + 1));
    EXPECT_TRUE(deep.loops.empty());
    EXPECT_TRUE(deep.irreducible);
}

// Plain definitions of dominance on random graphs: a dominates b when b is unreachable without a.
TEST(Cfg, MatchesTheDefinitionOnRandomGraphs) {
    for (uint64_t seed = 0; seed < 60; ++seed) {
        std::string text;
        const uint64_t n = 3 + splitmix64(seed) % 12;
        for (uint64_t i = 0; i < n; ++i) {
            const uint64_t pick = splitmix64(seed * 1000 + i);
            const std::string target = "L" + std::to_string(pick / 8 % n);
            text += "L" + std::to_string(i) + ": add.u32 %r1, %r1, 1; ";
            if (pick % 8 < 4)
                text += "@%p1 bra " + target + ";\n";
            else if (pick % 8 == 4)
                text += "bra " + target + ";\n";
            else if (pick % 8 == 5)
                text += "@%p2 ret;\n";
        }
        const Module m = body(text + "ret;");
        const Cfg cfg = graph(m);
        const size_t blocks = cfg.blocks.size();
        const auto reach = [&](BlockId from, BlockId without) {
            std::vector<uint8_t> seen(blocks, 0);
            std::vector<BlockId> work;
            if (from != without) work.push_back(from);
            while (!work.empty()) {
                const BlockId b = work.back();
                work.pop_back();
                if (seen[b]) continue;
                seen[b] = 1;
                for (BlockId s : cfg.blocks[b].successors)
                    if (s != without) work.push_back(s);
            }
            return seen;
        };
        const auto all = reach(0, kNoBlock);
        for (BlockId a = 0; a < blocks; ++a) {
            const auto without = reach(0, a);
            for (BlockId b = 0; b < blocks; ++b) {
                EXPECT_EQ(cfg.reachable(b), all[b] != 0);
                EXPECT_EQ(cfg.dominates(a, b), all[b] && !without[b]) << text << a << " " << b;
            }
        }
        const auto exits = [&](const std::vector<uint8_t>& seen) {
            for (BlockId b = 0; b < blocks; ++b)
                if (seen[b] && cfg.blocks[b].exits) return true;
            return false;
        };
        for (BlockId b = 0; b < blocks; ++b) {
            if (!exits(reach(b, kNoBlock))) continue;  // never leaves: nothing post-dominates
            for (BlockId a = 0; a < blocks; ++a)
                EXPECT_EQ(cfg.post_dominates(a, b), a == b || !exits(reach(b, a)))
                    << text << a << " " << b;
        }
    }
}

double seconds_for(size_t blocks) {
    std::string text;
    for (size_t i = 0; i < blocks; ++i)
        text += "L" + std::to_string(i) + ": @%p1 bra L" + std::to_string(blocks - 1 - i) + ";\n";
    const Module m = body(text + "ret;");
    const double start = cpu_seconds();
    const Cfg cfg = graph(m);
    EXPECT_GE(cfg.blocks.size(), blocks);
    return cpu_seconds() - start;
}

TEST(Cfg, GrowsAboutLinearly) {
    seconds_for(2000);
    const double small = seconds_for(10'000), large = seconds_for(80'000);
    EXPECT_LT(large, 8 * 6 * std::max(small, 0.002)) << small << " s, " << large << " s";
}

}  // namespace
}  // namespace ttt::ptx
