// The digit classifier on the GPU: one convolutional network, one stream, buffers for one batch.
//   8x8 pixels -> conv 3x3 (8) -> relu -> max 2x2 -> conv 3x3 (16) -> relu -> max 2x2 -> dense 32
//   -> relu -> dense 10
//   -> softmax
// classify() may be called from any thread; calls run one after the other. Errors are
// std::runtime_error.
#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "driver.h"

namespace digits {

inline constexpr int kPixels = 64;
inline constexpr int kClasses = 10;

class Network {
  public:
    explicit Network(int max_batch);  // initialises CUDA, loads kernels and weights
    ~Network();
    Network(const Network&) = delete;
    Network& operator=(const Network&) = delete;

    // images.size() = 64 * n, 1 <= n <= max_batch; returns 10 * n probabilities.
    std::vector<float> classify(std::span<const uint8_t> images);
    int max_batch() const { return max_batch_; }
    const std::string& device_name() const { return device_name_; }
    const std::string& note() const {
        return note_;
    }  // anything unusual about start-up; empty = nothing

  private:
    void load_kernels(int arch);
    void load_weights();
    CUdeviceptr allocate(size_t bytes);
    void launch(CUfunction kernel, int threads, void** arguments);
    void convolve(CUdeviceptr in, CUdeviceptr w, CUdeviceptr bias, CUdeviceptr out, int n, int cin,
                  int cout, int side);
    void pool(CUdeviceptr in, CUdeviceptr out, int planes, int side);
    void activate(CUdeviceptr in, CUdeviceptr out, int count);
    void connect(CUdeviceptr in, CUdeviceptr w, CUdeviceptr bias, CUdeviceptr out, int n,
                 int inputs, int outputs, int apply_relu);

    Driver cu_;
    int max_batch_;
    std::string device_name_, note_;
    CUdevice device_ = 0;
    CUcontext context_ = nullptr;
    CUstream stream_ = nullptr;
    std::vector<CUmodule> modules_;
    std::vector<CUdeviceptr> allocations_;
    CUfunction scale_ = nullptr, conv_ = nullptr, relu_ = nullptr, pool_ = nullptr,
               dense_ = nullptr, softmax_ = nullptr;
    CUdeviceptr weights_[8] = {};  // conv1 w, b; conv2 w, b; dense1 w, b; dense2 w, b
    CUdeviceptr pixels_ = 0, a_ = 0, b_ = 0, probabilities_ = 0;
    std::mutex busy_;
};

}  // namespace digits
