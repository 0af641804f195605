// Fixed tables: device attributes by profile, names and texts of error codes.
#pragma once

#include <cuda.h>

#include "model/model.h"

namespace ttt::emulator {

// False for an attribute that does not exist.
bool device_attribute(const model::Device& device, CUdevice_attribute attribute, int* value);
const char* error_name(CUresult error);  // nullptr when unknown
const char* error_text(CUresult error);

}  // namespace ttt::emulator
