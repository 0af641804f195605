#include "search/search.h"

#include <algorithm>
#include <map>
#include <set>

namespace ttt::search {
namespace {

using xform::Recipe;
using xform::Step;

std::string family_of(const Step& step) {
    const xform::Transform* transform = xform::find_transform(step.transform);
    return transform == nullptr ? step.transform : std::string(transform->family());
}

// Families of a recipe's steps; pinned rounding is a condition, not a gain.
std::set<std::string> families(const Recipe& recipe) {
    std::set<std::string> out;
    for (const Step& step : recipe.steps) {
        const std::string family = family_of(step);
        if (family != "rounding") out.insert(family);
    }
    return out;
}

size_t rank(const Step& step) {
    const auto all = xform::all_transforms();
    for (size_t i = 0; i < all.size(); ++i) {
        if (all[i]->name() == step.transform) return i;
    }
    return all.size();
}

// All steps of both, each transform once with the knobs of both; `a` wins where they differ.
Recipe compose(const Recipe& a, const Recipe& b) {
    Recipe out = a;
    for (const Step& step : b.steps) {
        const auto same = std::find_if(out.steps.begin(), out.steps.end(), [&](const Step& s) {
            return s.transform == step.transform;
        });
        if (same == out.steps.end()) {
            out.steps.push_back(step);
        } else {
            same->knobs.insert(step.knobs.begin(), step.knobs.end());
        }
    }
    std::stable_sort(out.steps.begin(), out.steps.end(),
                     [](const Step& x, const Step& y) { return rank(x) < rank(y); });
    return out;
}

class Exhaustive final : public Agent {
  public:
    explicit Exhaustive(std::vector<Recipe> recipes) : recipes_(std::move(recipes)) {}

    std::string_view name() const override { return "exhaustive"; }

    std::optional<Recipe> propose(const Board& board) override {
        for (; next_ < recipes_.size(); ++next_) {
            if (fresh(recipes_[next_], board)) return recipes_[next_++];
        }
        return composition(board);
    }

  private:
    bool fresh(const Recipe& recipe, const Board& board) {
        const auto same = [&](const Trial& t) { return t.recipe == recipe; };
        if (std::any_of(board.trials().begin(), board.trials().end(), same)) return false;
        return proposed_.insert(recipe.str()).second;
    }

    // Pairs of the best of each family, then the leader with the best of each family it lacks.
    std::optional<Recipe> composition(const Board& board) {
        const std::vector<const Trial*> best = best_of_each_family(board);
        for (size_t i = 0; i < best.size(); ++i) {
            for (size_t j = i + 1; j < best.size(); ++j) {
                const Recipe both = compose(best[i]->recipe, best[j]->recipe);
                if (fresh(both, board)) return both;
            }
        }
        const Trial* leader = board.leader();
        for (const Trial* other : best) {
            if (leader == nullptr) break;
            const Recipe both = compose(leader->recipe, other->recipe);
            if (fresh(both, board)) return both;
        }
        return std::nullopt;
    }

    static std::vector<const Trial*> best_of_each_family(const Board& board) {
        std::map<std::string, const Trial*> best;
        for (const Trial& trial : board.trials()) {
            const std::set<std::string> in = families(trial.recipe);
            if (trial.verdict.outcome != referee::Outcome::kAccept || in.size() != 1) continue;
            const Trial*& slot = best[*in.begin()];
            if (slot == nullptr || trial.speedup > slot->speedup) slot = &trial;
        }
        std::vector<const Trial*> out;
        for (const auto& [family, trial] : best) out.push_back(trial);
        return out;
    }

    std::vector<Recipe> recipes_;
    size_t next_ = 0;
    std::set<std::string> proposed_;
};

}  // namespace

const Trial* Board::leader() const {
    const Trial* best = nullptr;
    for (const Trial& trial : trials_) {
        if (trial.verdict.outcome != referee::Outcome::kAccept || trial.speedup <= 0) continue;
        if (best == nullptr || trial.speedup > best->speedup) best = &trial;
    }
    return best;
}

std::unique_ptr<Agent> make_exhaustive(std::vector<Recipe> recipes) {
    return std::make_unique<Exhaustive>(std::move(recipes));
}

}  // namespace ttt::search
