// Counts instructions of 128-bit machine code (sm_75 to sm_121) by their opcode bits. Internal to
// runtime/image.
#pragma once

#include <cstdint>

#include "image/bytes.h"
#include "image/image.h"

namespace ttt::image {

// Adds the counts of `text` to `code`. Does nothing for architectures whose encoding this reader
// does not know.
void count_instructions(Bytes text, uint32_t arch, KernelCode& code);

}  // namespace ttt::image
