// bind_variables: the variant reads the module variables of the program's own module, through cells
// that are filled when it is loaded. Every recipe of a kernel that names such variables begins with
// it; nothing to search.
#pragma once

#include "xform/transform.h"

namespace ttt::xform {

class BindVariables final : public Transform {
  public:
    std::string_view name() const override;
    std::string_view family() const override;
    std::span<const std::string_view> preconditions() const override;
    std::vector<Step> propose(const ptx::Module& module, const Context& context,
                              std::string* why) const override;
    Status apply(const Step& step, const Context& context, Applied& state) const override;
};

}  // namespace ttt::xform
