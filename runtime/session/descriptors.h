// Where our descriptors lie in the program's process: high, since low numbers belong to the program
// (some close 0 to 2 and expect the next open to return them, some put their own files on fixed
// numbers), but not so high that the kernel's table of descriptors grows.
#pragma once

#include "base/fd.h"

namespace ttt::session {

// Lowest number for a descriptor of ours: near the program's soft limit, at least 64, at most 896.
int first_descriptor();
// The same file under such a number; under any number from 3 on where there is none free. Invalid
// when out of descriptors.
Fd move_up(Fd fd);

}  // namespace ttt::session
