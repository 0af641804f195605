// Module variables as the driver knows them, and the address cells of variants that lead to them.
// Our thread only, inside a driver section of the module's context: a look-up may load the module.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/variable_cell.h"
#include "session/driver.h"
#include "session/registry.h"

namespace ttt::session {

// Device address in the current context. kNotFound when the driver finds no variable of that name
// and size.
Result<uint64_t> variable_address(const Driver& driver, CUmodule module, const std::string& name,
                                  uint64_t bytes);
Result<uint64_t> variable_address(const Driver& driver, const Module& module,
                                  const std::string& name, uint64_t bytes);

// Writes what `where` says into each cell of a loaded variant and waits for it. The variant must
// not be running.
Status fill_cells(const Driver& driver, CUmodule variant, const std::vector<VariableCell>& cells,
                  const std::function<Result<uint64_t>(const VariableCell&)>& where,
                  CUstream stream);

}  // namespace ttt::session
