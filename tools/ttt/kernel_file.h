// A PTX file and a launch spec, read and checked together: the input of every command about one
// kernel.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "ptx/ir.h"
#include "ptx/launch.h"
#include "spec/launch_spec.h"

namespace ttt::cli {

Result<std::string> read_text_file(const std::string& path);
// PTX text, or the single PTX of a fat binary. Error context names the file.
Result<ptx::Module> read_module(const std::string& path);

// The entry called `name`; with an empty name, the only entry of the module.
Result<const ptx::Function*> find_entry(const ptx::Module& module, const std::string& name);

// Facts of a launch whose buffers lie at `addresses` (one per buffer argument); every parameter
// counts as stable.
Result<ptx::LaunchFacts> facts_of(const ptx::Module& module, const ptx::Function& entry,
                                  const spec::LaunchSpec& spec,
                                  const std::vector<uint64_t>& addresses, const std::string& arch);
// Facts when no launch is known: nothing is stable, the parameters are zero.
ptx::LaunchFacts facts_without_launch(const ptx::Module& module, const ptx::Function& entry,
                                      const std::string& arch);

// Addresses as an allocator would give them: 512-byte aligned, one allocation per buffer, never
// adjacent.
std::vector<uint64_t> place_buffers(const spec::LaunchSpec& spec);

}  // namespace ttt::cli
