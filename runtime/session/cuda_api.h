// cuda.h as the driver's own build sees it: every exported symbol under its own name (cuMemAlloc_v2
// is not a macro for cuMemAlloc). Include this instead of cuda.h everywhere in session and shim.
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL  // NOLINT: the toolkit's own switch
#endif
#include <cuda.h>
