// Ranges of integer registers that follow from the launch's sizes: %tid lies below %ntid, %ctaid
// below %nctaid, and sums, products and quotients of such values lie between bounds of their own.
// * Only a register with one definition, which has no guard, has a range.
// * A result has a range only where every operand has one: the same rule by which
//   ptx::approx_risks() says what may become a constant once the sizes are known.
// * No range where the arithmetic could wrap round.
// Whoever uses a range guards the sizes it was made from. Reads the body; void once it is edited.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "base/dim3.h"
#include "ptx/ir.h"

namespace ttt::xform {

struct Range {  // low <= value <= high, as unsigned numbers of the operand's width
    uint64_t low = 0, high = 0;
};

class Ranges {
  public:
    Ranges(const ptx::Module& module, uint32_t function, const Dim3& grid, const Dim3& block);

    // Values of an operand that is `bits` wide.
    std::optional<Range> of(const ptx::Operand& operand, uint32_t bits);
    // What an integer setp with one plain comparison always gives.
    std::optional<bool> decided(const ptx::Stmt& setp);

  private:
    std::optional<Range> special(const ptx::Operand& operand) const;
    std::optional<Range> result(const ptx::Stmt& stmt);

    const ptx::Module& module_;
    const Dim3 grid_, block_;
    std::map<ptx::Sym, const ptx::Stmt*> definitions_;  // the only one of each register
    std::map<ptx::Sym, std::optional<Range>> known_;
};

}  // namespace ttt::xform
