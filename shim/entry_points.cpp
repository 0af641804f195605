// Exported driver functions; the list is driver_api.def.
#include "entry.h"
#include "hooks.h"

namespace ttt::shim {
thread_local constinit int t_depth = 0;
}

using namespace ttt::shim;  // NOLINT: the generated file names its helpers without qualification

#include "entry_points.inc"
