// May a site be tuned at all, and which bytes must a snapshot hold? Unknown is no; the reason is
// for the user.
#pragma once

#include <string>
#include <vector>

#include "measure/snapshot.h"
#include "ptx/ir.h"
#include "ptx/summary.h"
#include "tuner/facts.h"
#include "tuner/modules.h"

namespace ttt::tuner {

struct Eligibility {
    std::string reason;  // empty: eligible
    ptx::KernelSummary summary;
    std::vector<measure::Region>
        regions;  // one per allocation and per module variable that is not the compiler's own;
                  // only address, bytes, flags, pointers and variable are set
};

Eligibility examine(const Site& site, const ModuleCode& code);

// Is a snapshot made of what was asked for?
bool same_kinds(const std::vector<measure::Region>& asked,
                const std::vector<measure::Region>& taken);

// Per region: width in bytes of the floats it holds when every load through it reads such, else 0.
// Decides which regions may be perturbed.
std::vector<uint8_t> float_widths(const ptx::Module& module, const ptx::Function& entry,
                                  const std::vector<measure::Region>& regions);

}  // namespace ttt::tuner
