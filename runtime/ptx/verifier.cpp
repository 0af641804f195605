#include "ptx/ir.h"
namespace ttt::ptx { Status verify(const Module&) { return ok_status(); } }
