#include "network.h"

#include <cstring>
#include <stdexcept>

#include "embedded.h"
#include "nvrtc.h"

namespace digits {
namespace {

constexpr int kSide = 8, kConv1 = 8, kConv2 = 16, kHidden = 32;
constexpr int kBlock = 128;
constexpr size_t kWeightCounts[8] = {kConv1 * 9,          kConv1,  kConv2* kConv1 * 9, kConv2,
                                     kHidden* kConv2 * 4, kHidden, kClasses* kHidden,  kClasses};

}  // namespace

Network::Network(int max_batch) : cu_(Driver::load()), max_batch_(max_batch) {
    cu_.check(cu_.init(0), "cuInit");
    int devices = 0;
    cu_.check(cu_.device_get_count(&devices), "cuDeviceGetCount");
    if (devices == 0) throw std::runtime_error("the CUDA driver sees no GPU");
    cu_.check(cu_.device_get(&device_, 0), "cuDeviceGet");
    char name[128] = {};
    cu_.check(cu_.device_get_name(name, sizeof name, device_), "cuDeviceGetName");
    device_name_ = name;
    int major = 0, minor = 0;
    cu_.check(
        cu_.device_get_attribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device_),
        "cuDeviceGetAttribute");
    cu_.check(
        cu_.device_get_attribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device_),
        "cuDeviceGetAttribute");
    cu_.check(cu_.primary_retain(&context_, device_), "cuDevicePrimaryCtxRetain");
    cu_.check(cu_.set_current(context_), "cuCtxSetCurrent");
    cu_.check(cu_.stream_create(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    load_kernels(major * 10 + minor);
    load_weights();
    const size_t n = static_cast<size_t>(max_batch_);
    pixels_ = allocate(n * kPixels);
    a_ = allocate(n * kConv1 * kSide * kSide * sizeof(float));
    b_ = allocate(n * kConv1 * kSide * kSide * sizeof(float));
    probabilities_ = allocate(n * kClasses * sizeof(float));
}

Network::~Network() {
    if (context_ == nullptr) return;
    cu_.set_current(context_);
    if (stream_ != nullptr) {
        cu_.stream_synchronize(stream_);
        cu_.stream_destroy(stream_);
    }
    for (CUdeviceptr p : allocations_) cu_.mem_free(p);
    for (CUmodule m : modules_) cu_.module_unload(m);
    cu_.primary_release(device_);
}

void Network::load_kernels(int arch) {
    const auto load = [this](const void* image, const char* what) {
        CUmodule module = nullptr;
        cu_.check(cu_.module_load_data(&module, image), what);
        modules_.push_back(module);
        return module;
    };
    const auto get = [this](CUmodule module, const char* name) {
        CUfunction f = nullptr;
        cu_.check(cu_.module_get_function(&f, module, name), name);
        return f;
    };
    CUmodule conv = load(kConvFatbin.data(), "loading conv.fatbin");
    conv_ = get(conv, "conv3x3");
    relu_ = get(conv, "relu");
    pool_ = get(conv, "maxpool2x2");
    std::string why;
    auto ptx = compile_with_nvrtc(std::string(kDenseSource), arch, why);
    if (!ptx) {
        note_ = "NVRTC not used, falling back to PTX compiled ahead of time: " + why;
        ptx = std::string(kDensePtx);
    }
    CUmodule dense = load(ptx->c_str(), "loading dense.cu");
    scale_ = get(dense, "scale_pixels");
    dense_ = get(dense, "dense");
    softmax_ = get(dense, "softmax");
}

void Network::load_weights() {
    size_t floats = 0;
    for (size_t c : kWeightCounts) floats += c;
    uint32_t version = 0;
    if (kWeights.size() == 8 + floats * sizeof(float))
        std::memcpy(&version, kWeights.data() + 4, sizeof version);
    if (version != 1 || std::memcmp(kWeights.data(), "TTTW", 4) != 0)
        throw std::runtime_error("weights.bin is not what train.py writes for this network");
    size_t offset = 8;
    for (int i = 0; i < 8; ++i) {
        const size_t bytes = kWeightCounts[i] * sizeof(float);
        weights_[i] = allocate(bytes);
        cu_.check(cu_.copy_to_device(weights_[i], kWeights.data() + offset, bytes, stream_),
                  "cuMemcpyHtoDAsync");
        offset += bytes;
    }
    cu_.check(cu_.stream_synchronize(stream_), "cuStreamSynchronize");
}

CUdeviceptr Network::allocate(size_t bytes) {
    CUdeviceptr p = 0;
    cu_.check(cu_.mem_alloc(&p, bytes), "cuMemAlloc");
    allocations_.push_back(p);
    return p;
}

void Network::launch(CUfunction kernel, int threads, void** arguments) {
    const auto blocks = static_cast<unsigned>((threads + kBlock - 1) / kBlock);
    cu_.check(cu_.launch_kernel(kernel, blocks, 1, 1, kBlock, 1, 1, 0, stream_, arguments, nullptr),
              "cuLaunchKernel");
}

void Network::convolve(CUdeviceptr in, CUdeviceptr w, CUdeviceptr bias, CUdeviceptr out, int n,
                       int cin, int cout, int side) {
    void* arguments[] = {&in, &w, &bias, &out, &n, &cin, &cout, &side, &side};
    launch(conv_, n * cout * side * side, arguments);
}

void Network::activate(CUdeviceptr in, CUdeviceptr out, int count) {
    void* arguments[] = {&in, &out, &count};
    launch(relu_, count, arguments);
}

void Network::pool(CUdeviceptr in, CUdeviceptr out, int planes, int side) {
    void* arguments[] = {&in, &out, &planes, &side, &side};
    launch(pool_, planes * side * side / 4, arguments);
}

void Network::connect(CUdeviceptr in, CUdeviceptr w, CUdeviceptr bias, CUdeviceptr out, int n,
                      int inputs, int outputs, int apply_relu) {
    void* arguments[] = {&in, &w, &bias, &out, &n, &inputs, &outputs, &apply_relu};
    launch(dense_, n * outputs, arguments);
}

std::vector<float> Network::classify(std::span<const uint8_t> images) {
    const int n = static_cast<int>(images.size() / kPixels);
    if (n < 1 || n > max_batch_ || images.size() % kPixels != 0)
        throw std::invalid_argument("batch size");
    std::vector<float> result(static_cast<size_t>(n) * kClasses);
    const std::lock_guard lock(busy_);
    cu_.check(cu_.set_current(context_), "cuCtxSetCurrent");
    cu_.check(cu_.copy_to_device(pixels_, images.data(), images.size(), stream_),
              "cuMemcpyHtoDAsync");
    int count = n * kPixels;
    float inverse_range = 1.0f / 16.0f;
    void* scaling[] = {&pixels_, &a_, &count, &inverse_range};
    launch(scale_, count, scaling);
    convolve(a_, weights_[0], weights_[1], b_, n, 1, kConv1, kSide);
    activate(b_, a_, n * kConv1 * kSide * kSide);
    pool(a_, b_, n * kConv1, kSide);
    convolve(b_, weights_[2], weights_[3], a_, n, kConv1, kConv2, kSide / 2);
    activate(a_, b_, n * kConv2 * kSide * kSide / 4);
    pool(b_, a_, n * kConv2, kSide / 2);
    connect(a_, weights_[4], weights_[5], b_, n, kConv2 * 4, kHidden, 1);
    connect(b_, weights_[6], weights_[7], a_, n, kHidden, kClasses, 0);
    int rows = n, classes = kClasses;
    void* normalising[] = {&a_, &probabilities_, &rows, &classes};
    launch(softmax_, n, normalising);
    cu_.check(
        cu_.copy_to_host(result.data(), probabilities_, result.size() * sizeof(float), stream_),
        "cuMemcpyDtoHAsync");
    cu_.check(cu_.stream_synchronize(stream_), "cuStreamSynchronize");
    return result;
}

}  // namespace digits
