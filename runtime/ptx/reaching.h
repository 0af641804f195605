// Which definitions of a register can reach a use, within one function. Only registers with several
// definitions are tracked; for the others the answer is trivial. Const and thread-safe once built;
// indices are void once the body changes.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "ptx/ir.h"

namespace ttt::ptx {

class Reaching {
  public:
    Reaching(const Module& module, const Function& function);
    // True when `reg` has several definitions that this class tells apart.
    bool tracks(Sym reg) const { return definitions_.contains(reg); }
    // Statements whose definition of a tracked register may reach statement `at`, ascending.
    std::set<uint32_t> at(uint32_t at, Sym reg) const;

  private:
    using Sites = std::map<Sym, std::set<uint32_t>>;
    void flow(const Module& module, const Function& function);

    std::map<Sym, std::vector<uint32_t>> definitions_;
    std::vector<uint32_t> block_of_, begin_;
    std::vector<bool> guarded_;
    std::vector<Sites> in_;  // per block
};

}  // namespace ttt::ptx
