// Runs a kernel "k" of one pointer parameter in the interpreter.
#pragma once

#include <cstring>
#include <vector>

#include "kernel_case.h"
#include "ptx/interpreter.h"

namespace ttt::xform::test {

// `memory` as the launch leaves it. The first parameter is its address.
inline std::vector<uint64_t> run_kernel(const ptx::Module& module, const Dim3& grid,
                                        const Dim3& block, std::vector<uint64_t> memory) {
    constexpr uint64_t kAddress = 0x10000000;
    ptx::AddressSpace space;
    EXPECT_TRUE(space
                    .add({kAddress, 8 * memory.size(), reinterpret_cast<std::byte*>(memory.data()),
                          true, true})
                    .ok());
    auto loaded = ptx::LoadedModule::load(module, space, 0x700000000);
    if (!loaded.ok()) return ADD_FAILURE() << loaded.error().str(), memory;
    auto program = ptx::Program::decode(**loaded, "k");
    if (!program.ok()) return ADD_FAILURE() << program.error().str(), memory;
    std::byte params[8];
    std::memcpy(params, &kAddress, sizeof kAddress);
    ptx::LaunchRequest request;
    request.grid = grid;
    request.block = block;
    request.params = params;
    const ptx::LaunchResult result = (*program)->run(space, request);
    if (result.fault) ADD_FAILURE() << result.fault->message;
    return memory;
}

}  // namespace ttt::xform::test
