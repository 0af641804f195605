// One kernel with its buffers on the GPU, through the driver API found at run time. Errors carry
// the driver's own text, and the assembler's where PTX is refused; kUnsupported where this GPU or
// driver is too old for the PTX. One thread at a time.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "ptx/ir.h"
#include "spec/launch_spec.h"

namespace ttt::kernel_loop {

struct Device {
    std::string name;
    uint32_t arch = 0;            // 90 = compute capability 9.0
    uint32_t driver_version = 0;  // 13000 = CUDA 13.0
};

class Kernel {
  public:
    static Result<Device> device();  // where kernels run; makes no context
    static Result<std::unique_ptr<Kernel>> create(const std::string& ptx,
                                                  const spec::LaunchSpec& launch);
    ~Kernel();
    Kernel(const Kernel&) = delete;
    Kernel& operator=(const Kernel&) = delete;

    Status refill();  // every buffer gets its initial bytes again
    // Refills only buffers that `changed` names, by index, from copies on the device.
    Status restore(const std::vector<bool>& changed);
    Status keep_initial(
        const std::vector<bool>& changed);  // makes those copies; call after refill()
    Status launch();
    Status synchronize();
    Result<std::vector<std::vector<std::byte>>> outputs();  // all buffers
    const std::vector<std::vector<std::byte>>& initial() const { return initial_; }

  private:
    struct Driver;
    Kernel();
    Status start(const std::string& ptx, const spec::LaunchSpec& launch);
    Status load(const std::string& ptx, const spec::LaunchSpec& launch);
    Status set_variables(const spec::LaunchSpec& launch);
    Status pack(const ptx::Module& module, const spec::LaunchSpec& launch);

    std::unique_ptr<Driver> cu_;
    spec::LaunchSpec launch_;
    CUdevice device_ = 0;
    CUcontext context_ = nullptr;
    CUstream stream_ = nullptr;
    CUmodule module_ = nullptr;
    CUfunction function_ = nullptr;
    std::vector<CUdeviceptr> buffers_, copies_;
    std::vector<std::vector<std::byte>> initial_;
    std::vector<std::byte> params_;
    std::vector<void*> pointers_;  // into params_, one per parameter
};

}  // namespace ttt::kernel_loop
