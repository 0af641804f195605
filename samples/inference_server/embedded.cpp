#include "embedded.h"

// The paths come from CMakeLists.txt; a zero byte after each file makes the texts C strings.
#define EMBED(symbol, path)                                                                \
    asm(".section .rodata\n.balign 16\n" #symbol "_begin:\n.incbin \"" path "\"\n" #symbol \
        "_end:\n.byte 0\n.previous\n");                                                    \
    extern "C" __attribute__((visibility("hidden"))) const unsigned char symbol##_begin[], \
        symbol##_end[];

EMBED(digits_conv, DIGITS_CONV_FATBIN)
EMBED(digits_dense_source, DIGITS_DENSE_SOURCE)
EMBED(digits_dense_ptx, DIGITS_DENSE_PTX)
EMBED(digits_weights, DIGITS_WEIGHTS)

namespace digits {
namespace {

std::span<const unsigned char> bytes(const unsigned char* begin, const unsigned char* end) {
    return {begin, end};
}
std::string_view text(const unsigned char* begin, const unsigned char* end) {
    return {reinterpret_cast<const char*>(begin), static_cast<size_t>(end - begin)};
}

}  // namespace

const std::span<const unsigned char> kConvFatbin = bytes(digits_conv_begin, digits_conv_end);
const std::string_view kDenseSource = text(digits_dense_source_begin, digits_dense_source_end);
const std::string_view kDensePtx = text(digits_dense_ptx_begin, digits_dense_ptx_end);
const std::span<const unsigned char> kWeights = bytes(digits_weights_begin, digits_weights_end);

}  // namespace digits
