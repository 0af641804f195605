// The real libcuda.so.1: found once, at first use, by name (the copy the program has loaded
// already, if any). Any thread, no constructor, nothing freed. Never resolves to ourselves.
#pragma once

#include "slots.h"

namespace ttt::shim {

// Address of an exported symbol of the real driver; null if there is no driver or no such symbol.
void* real_symbol(const char* name);
// The same for a hooked symbol, cached: one relaxed load once known.
void* real_address(Slot slot);
// The same, but never loads the driver: null while the program has not.
void* real_address_if_loaded(Slot slot);
const char* slot_name(Slot slot);
// Our entry point of a slot, and the slot of a hooked name (kCount: not hooked).
void* entry_address(Slot slot);
Slot find_hooked(const char* name);
// The slot whose real address is `address`; kCount if none.
Slot find_by_real(const void* address);

}  // namespace ttt::shim
