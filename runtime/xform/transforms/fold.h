// fold: integer instructions on constants become constants, branches on them are decided, and
// results nobody reads go. Integers only: no floating operation is evaluated or changed. The
// assembler does the same; the text of a variant that runs without one (emulated GPU) gets shorter
// too.
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
