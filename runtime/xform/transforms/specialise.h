// specialise(scalars,ntid,nctaid): stable scalar parameters, %ntid and %nctaid become constants of
// the code, which the assembler then folds. Never into operands of approximate operations: those
// keep the run-time parameter.
#pragma once

#include "xform/transform.h"

namespace ttt::xform {

class Specialise final : public Transform {
  public:
    std::string_view name() const override;
    std::string_view family() const override;
    std::span<const std::string_view> preconditions() const override;
    std::vector<Step> propose(const ptx::Module& module, const Context& context,
                              std::string* why) const override;
    Status apply(const Step& step, const Context& context, Applied& state) const override;
};

}  // namespace ttt::xform
