// Only in the build that is named libcuda.so.1: every driver symbol that is not hooked, passed on
// to the real driver.
#include <atomic>
#include <iterator>

#include "real_driver.h"
#include "session/cuda_api.h"

namespace {

const char* const kNames[] = {
#define TTT_FORWARD(symbol) #symbol,
#include "forward.inc"
#undef TTT_FORWARD
};

CUresult missing() { return CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND; }

}  // namespace

extern "C" {
__attribute__((visibility("hidden"))) void* ttt_forward_table[std::size(kNames)] = {};

__attribute__((visibility("hidden"))) void* ttt_forward_resolve(unsigned slot) {
    void* address = ttt::shim::real_symbol(kNames[slot]);
    if (address == nullptr) address = reinterpret_cast<void*>(&missing);
    __atomic_store_n(&ttt_forward_table[slot], address, __ATOMIC_RELEASE);
    return address;
}
}
