// A Compiler over one Backend: checks versions and options first, reads the cubin afterwards,
// remembers results.
#pragma once

#include <memory>

#include "compile/backend.h"
#include "compile/compiler.h"
#include "compile/cubin_cache.h"

namespace ttt::compile {

class Assembler final : public Compiler {
  public:
    explicit Assembler(std::unique_ptr<Backend> backend) : x_backend(std::move(backend)) {}
    std::string identity() const override { return x_backend->identity().name; }
    uint32_t major() const override { return x_backend->identity().major; }
    uint32_t max_ptx_version() const override { return x_backend->identity().max_ptx_version; }
    Result<Compiled> compile(std::string_view ptx, std::string_view entry, std::string_view arch,
                             const xform::CompileControls& controls) override;

  private:
    std::unique_ptr<Backend> x_backend;
    CubinCache x_cache;
};

// kUnsupported naming both sides when `ptx` is too new for a compiler or for the architecture;
// kParse when it does not state its version and target.
Status check_ptx(std::string_view ptx, std::string_view arch, const std::string& compiler,
                 uint32_t max_ptx_version);

}  // namespace ttt::compile
