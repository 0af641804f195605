// Reads this process's own memory through the kernel, so that an unmapped address is an error and
// not a fault. Internal to runtime/image. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ttt::image {

// Copies up to `bytes` from `address`; stops at the first byte that cannot be read and returns how
// many were copied.
size_t read_foreign(uint64_t address, void* out, size_t bytes);

}  // namespace ttt::image
