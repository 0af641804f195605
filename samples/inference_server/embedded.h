// Files built into the program: kernels and trained weights.
#pragma once

#include <span>
#include <string_view>

namespace digits {

extern const std::span<const unsigned char> kConvFatbin;  // kernels/conv.cu, compiled by nvcc
extern const std::string_view kDenseSource;               // kernels/dense.cu
extern const std::string_view
    kDensePtx;  // the same compiled ahead of time, for machines without NVRTC
extern const std::span<const unsigned char> kWeights;  // data/weights.bin

}  // namespace digits
