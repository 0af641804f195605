// memory.nc: plain global loads become ld.global.nc for buffers that the kernel only reads; the
// guard says they do not overlap a buffer that it writes.
#pragma once

#include "xform/transform.h"

namespace ttt::xform {

class MemoryNc final : public Transform {
  public:
    std::string_view name() const override;
    std::string_view family() const override;
    std::span<const std::string_view> preconditions() const override;
    std::vector<Step> propose(const ptx::Module& module, const Context& context,
                              std::string* why) const override;
    Status apply(const Step& step, const Context& context, Applied& state) const override;
};

}  // namespace ttt::xform
