// fold(divide,ranges): integer instructions on constants become constants, branches on them are
// decided, and results nobody reads go. Integers only: no floating operation is evaluated or
// changed. So far the assembler does the same; the text of a variant that runs without one
// (emulated GPU) gets shorter too. What it does not do:
// * divide: a division or remainder by a constant becomes multiplication and shifts (divide.h);
// * ranges: comparisons that always have one outcome at this block and grid size are decided,
// bounds
//   checks above all, and numerators known not to be negative take shorter sequences (ranges.h).
//   The guard then holds both sizes.
#pragma once

#include "xform/transform.h"

namespace ttt::xform {

class Fold final : public Transform {
  public:
    std::string_view name() const override;
    std::string_view family() const override;
    std::span<const std::string_view> preconditions() const override;
    std::vector<Step> propose(const ptx::Module& module, const Context& context,
                              std::string* why) const override;
    Status apply(const Step& step, const Context& context, Applied& state) const override;
};

}  // namespace ttt::xform
