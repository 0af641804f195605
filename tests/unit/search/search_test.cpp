#include "search/search.h"

#include <gtest/gtest.h>

namespace ttt::search {
namespace {

xform::Recipe recipe(std::string_view text) {
    auto parsed = xform::Recipe::parse(text);
    EXPECT_TRUE(parsed.ok()) << text;
    return *parsed;
}

Trial trial(std::string_view text, double speedup,
            referee::Outcome outcome = referee::Outcome::kAccept) {
    Trial t;
    t.recipe = recipe(text);
    t.verdict.outcome = outcome;
    t.speedup = speedup;
    return t;
}

TEST(Board, LeaderIsTheFastestAccepted) {
    Board board;
    EXPECT_EQ(board.leader(), nullptr);
    board.add(trial("memory.nc", 3, referee::Outcome::kReject));
    board.add(trial("registers(max=32)", 3, referee::Outcome::kUnknown));
    board.add(trial("registers(max=40)", 0));
    EXPECT_EQ(board.leader(), nullptr);
    board.add(trial("registers(max=48)", 1.2));
    board.add(trial("registers(max=64)", 1.5));
    ASSERT_NE(board.leader(), nullptr);
    EXPECT_EQ(board.leader()->recipe.str(), "registers(max=64)");
}

TEST(Exhaustive, ProposesTheListInOrderOnceAndSkipsWhatWasTried) {
    auto agent = make_exhaustive({recipe("a"), recipe("b"), recipe("a"), recipe("c")});
    Board board;
    board.add(trial("b", 0, referee::Outcome::kReject));
    EXPECT_EQ(agent->propose(board)->str(), "a");
    EXPECT_EQ(agent->propose(board)->str(), "c");
    EXPECT_FALSE(agent->propose(board).has_value());
    EXPECT_FALSE(agent->propose(board).has_value());
}

TEST(Exhaustive, ComposesTheBestOfEachFamilyThenTheLeader) {
    auto agent = make_exhaustive({});
    Board board;
    board.add(trial("registers(max=48)", 1.5));
    board.add(trial("registers(max=64)", 1.2));
    board.add(trial("pin_rounding | memory.nc", 1.1));
    board.add(trial("pin_rounding | specialise(scalars)", 1.3));
    std::vector<std::string> got;
    while (auto next = agent->propose(board)) {
        got.push_back(next->str());
        board.add(trial(next->str(), 2.0 + static_cast<double>(got.size())));
    }
    const std::vector<std::string> expected = {
        "pin_rounding | memory.nc | registers(max=48)",
        "pin_rounding | specialise(scalars) | memory.nc",
        "pin_rounding | specialise(scalars) | registers(max=48)",
        "pin_rounding | specialise(scalars) | memory.nc | registers(max=48)",
    };
    EXPECT_EQ(got, expected);
}

TEST(Exhaustive, RejectedRecipesAreNotComposed) {
    auto agent = make_exhaustive({});
    Board board;
    board.add(trial("registers(max=48)", 1.5));
    board.add(trial("memory.nc", 2, referee::Outcome::kReject));
    board.add(trial("specialise(scalars)", 2, referee::Outcome::kUnknown));
    EXPECT_FALSE(agent->propose(board).has_value());
}

TEST(Exhaustive, EmptyListProposesNothing) {
    EXPECT_FALSE(make_exhaustive({})->propose(Board{}).has_value());
}

}  // namespace
}  // namespace ttt::search
