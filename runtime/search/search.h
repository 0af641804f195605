// Who proposes recipes. This issue: try all, best wins; the interface is the one agents will
// implement.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "referee/referee.h"
#include "xform/transform.h"

namespace ttt::search {

struct Trial {  // one conclusion on the board
    xform::Recipe recipe;
    referee::Verdict verdict;
    double speedup = 0;  // 0 = not timed
};

class Board {
  public:
    void add(Trial trial) { trials_.push_back(std::move(trial)); }
    const std::vector<Trial>& trials() const { return trials_; }
    const Trial* leader() const;  // best accepted

  private:
    std::vector<Trial> trials_;
};

class Agent {
  public:
    virtual ~Agent() = default;
    virtual std::string_view name() const = 0;
    // Next recipe to try, given the board; nullopt = has nothing more.
    virtual std::optional<xform::Recipe> propose(const Board& board) = 0;
};

// Proposes a fixed list in order, then pairs the best of each family (composition).
std::unique_ptr<Agent> make_exhaustive(std::vector<xform::Recipe> recipes);

}  // namespace ttt::search
