// The one implementation of LoadedModule. Internal to the interpreter.
#pragma once

#include <string>
#include <vector>

#include "ptx/interpreter.h"

namespace ttt::ptx::exec {

class PlacedModule final : public LoadedModule {
  public:
    PlacedModule(const Module& module, AddressSpace& space) : module_(module), space_(space) {}
    ~PlacedModule() override;
    PlacedModule(const PlacedModule&) = delete;
    PlacedModule& operator=(const PlacedModule&) = delete;
    Status place(uint64_t base);

    std::span<const Global> globals() const override { return globals_; }
    const Module& module() const override { return module_; }
    // Device address of a module-level .global or .const variable; 0 when it has no storage here.
    uint64_t address_of(Sym sym) const { return address_[sym]; }
    // Position of the function with a body that a symbol names; kNoSym when there is none.
    uint32_t function_of(Sym sym) const { return function_[sym]; }

  private:
    Status initialise(const Variable& variable, std::byte* host);
    Result<uint64_t> init_value(const Init& init) const;
    void index_functions();

    const Module& module_;
    AddressSpace& space_;
    std::vector<Global> globals_;
    std::vector<uint64_t> address_;
    std::vector<uint32_t> function_;
    std::vector<std::byte> storage_;
};

}  // namespace ttt::ptx::exec
