// registers(max=N,reqntid,minctas=N): register target, exact block size and blocks per
// multiprocessor as directives of the entry, so that the driver's own compiler sees them as well.
// Works on kernels that cannot be pinned.
#pragma once

#include "xform/transform.h"

namespace ttt::xform {

class Registers final : public Transform {
  public:
    std::string_view name() const override;
    std::string_view family() const override;
    std::span<const std::string_view> preconditions() const override;
    std::vector<Step> propose(const ptx::Module& module, const Context& context,
                              std::string* why) const override;
    Status apply(const Step& step, const Context& context, Applied& state) const override;
};

}  // namespace ttt::xform
