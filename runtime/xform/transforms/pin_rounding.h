// pin_rounding(rule=NAME): writes out which products and sums fuse (rules: PTX does not fix
// rounding). Knob `rule` names a PinRule; decide_pinning() finds the one that matches the program's
// machine code.
#pragma once

#include "xform/transform.h"

namespace ttt::xform {

class PinRounding final : public Transform {
  public:
    std::string_view name() const override;
    std::string_view family() const override;
    std::span<const std::string_view> preconditions() const override;
    std::vector<Step> propose(const ptx::Module& module, const Context& context,
                              std::string* why) const override;
    Status apply(const Step& step, const Context& context, Applied& state) const override;
};

}  // namespace ttt::xform
