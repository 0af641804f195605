#include "sandbox/device_compare.h"

#include <algorithm>

namespace ttt::sandbox {
namespace {

// Each thread steps through both ranges and notes the first unit that differs; the smallest offset
// wins.
constexpr char kPtx[] = R"(
.version 6.0
.target sm_50
.address_size 64

.visible .entry compare_vectors(.param .u64 p_found, .param .u64 p_expected, .param .u64 p_units,
                                .param .u64 p_offset, .param .u64 p_result)
{
    .reg .pred %p<3>;
    .reg .b32 %r<16>;
    .reg .b64 %rd<16>;
    ld.param.u64 %rd1, [p_found];
    ld.param.u64 %rd2, [p_expected];
    ld.param.u64 %rd3, [p_units];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mov.u32 %r4, %nctaid.x;
    mul.wide.u32 %rd4, %r1, %r2;
    cvt.u64.u32 %rd5, %r3;
    add.u64 %rd4, %rd4, %rd5;
    mul.wide.u32 %rd6, %r4, %r2;
    cvta.to.global.u64 %rd1, %rd1;
    cvta.to.global.u64 %rd2, %rd2;
LOOP:
    setp.ge.u64 %p1, %rd4, %rd3;
    @%p1 bra DONE;
    shl.b64 %rd7, %rd4, 4;
    add.u64 %rd8, %rd1, %rd7;
    add.u64 %rd9, %rd2, %rd7;
    ld.global.v4.u32 {%r5, %r6, %r7, %r8}, [%rd8];
    ld.global.v4.u32 {%r9, %r10, %r11, %r12}, [%rd9];
    xor.b32 %r5, %r5, %r9;
    xor.b32 %r6, %r6, %r10;
    xor.b32 %r7, %r7, %r11;
    xor.b32 %r8, %r8, %r12;
    or.b32 %r5, %r5, %r6;
    or.b32 %r7, %r7, %r8;
    or.b32 %r5, %r5, %r7;
    setp.ne.u32 %p2, %r5, 0;
    @%p2 bra FOUND;
    add.u64 %rd4, %rd4, %rd6;
    bra LOOP;
FOUND:
    ld.param.u64 %rd10, [p_offset];
    ld.param.u64 %rd11, [p_result];
    cvta.to.global.u64 %rd11, %rd11;
    add.u64 %rd10, %rd10, %rd7;
    red.global.min.u64 [%rd11], %rd10;
DONE:
    ret;
}

.visible .entry compare_bytes(.param .u64 p_found, .param .u64 p_expected, .param .u64 p_units,
                              .param .u64 p_offset, .param .u64 p_result)
{
    .reg .pred %p<3>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<16>;
    ld.param.u64 %rd1, [p_found];
    ld.param.u64 %rd2, [p_expected];
    ld.param.u64 %rd3, [p_units];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mov.u32 %r4, %nctaid.x;
    mul.wide.u32 %rd4, %r1, %r2;
    cvt.u64.u32 %rd5, %r3;
    add.u64 %rd4, %rd4, %rd5;
    mul.wide.u32 %rd6, %r4, %r2;
    cvta.to.global.u64 %rd1, %rd1;
    cvta.to.global.u64 %rd2, %rd2;
LOOP:
    setp.ge.u64 %p1, %rd4, %rd3;
    @%p1 bra DONE;
    add.u64 %rd8, %rd1, %rd4;
    add.u64 %rd9, %rd2, %rd4;
    ld.global.u8 %r5, [%rd8];
    ld.global.u8 %r6, [%rd9];
    setp.ne.u32 %p2, %r5, %r6;
    @%p2 bra FOUND;
    add.u64 %rd4, %rd4, %rd6;
    bra LOOP;
FOUND:
    ld.param.u64 %rd10, [p_offset];
    ld.param.u64 %rd11, [p_result];
    cvta.to.global.u64 %rd11, %rd11;
    add.u64 %rd10, %rd10, %rd4;
    red.global.min.u64 [%rd11], %rd10;
DONE:
    ret;
}
)";

constexpr unsigned kThreads = 256;
constexpr uint64_t kMostBlocks = 1024;  // fills any GPU; each thread steps on from there
constexpr uint64_t kVector = 16;

}  // namespace

Result<std::unique_ptr<DeviceCompare>> DeviceCompare::make(const Driver& d) {
    std::unique_ptr<DeviceCompare> c(new DeviceCompare(d));
    TTT_CHECK_OK(d.check(d.cuModuleLoadDataEx(&c->module_, kPtx, 0, nullptr, nullptr),
                         "loading the comparison kernels"));
    TTT_CHECK_OK(d.check(d.cuModuleGetFunction(&c->by_vector_, c->module_, "compare_vectors"),
                         "comparison kernel"));
    TTT_CHECK_OK(d.check(d.cuModuleGetFunction(&c->by_byte_, c->module_, "compare_bytes"),
                         "comparison kernel"));
    return c;
}

DeviceCompare::~DeviceCompare() {
    if (results_ != 0) driver_.cuMemFree_v2(results_);
    if (module_ != nullptr) driver_.cuModuleUnload(module_);
}

Status DeviceCompare::reserve(size_t results) {
    if (results <= room_) return ok_status();
    if (results_ != 0) driver_.cuMemFree_v2(results_);
    results_ = 0;
    room_ = 0;
    TTT_CHECK_OK(driver_.check(driver_.cuMemAlloc_v2(&results_, results * sizeof(uint64_t)),
                               "memory for comparisons"));
    room_ = results;
    return ok_status();
}

Status DeviceCompare::launch(CUfunction f, const Ranges& r, uint64_t offset, uint64_t units,
                             CUdeviceptr result, CUstream stream) const {
    if (units == 0) return ok_status();
    CUdeviceptr found = r.found + offset, expected = r.expected + offset;
    void* params[] = {&found, &expected, &units, &offset, &result};
    const auto blocks =
        static_cast<unsigned>(std::min(kMostBlocks, (units + kThreads - 1) / kThreads));
    return driver_.check(
        driver_.cuLaunchKernel(f, blocks, 1, 1, kThreads, 1, 1, 0, stream, params, nullptr),
        "comparing on the device");
}

Status DeviceCompare::compare(const Ranges& r, CUdeviceptr result, CUstream stream) const {
    if (r.found % kVector != r.expected % kVector)
        return launch(by_byte_, r, 0, r.bytes, result, stream);
    const uint64_t head = std::min<uint64_t>(r.bytes, (kVector - r.found % kVector) % kVector);
    const uint64_t vectors = (r.bytes - head) / kVector;
    const uint64_t tail = head + vectors * kVector;
    TTT_CHECK_OK(launch(by_byte_, r, 0, head, result, stream));
    TTT_CHECK_OK(launch(by_vector_, r, head, vectors, result, stream));
    return launch(by_byte_, r, tail, r.bytes - tail, result, stream);
}

Result<std::vector<uint64_t>> DeviceCompare::first_differences(std::span<const Ranges> pairs,
                                                               CUstream stream) {
    std::vector<uint64_t> out(pairs.size(), kEqual);
    if (pairs.empty()) return out;
    TTT_CHECK_OK(reserve(pairs.size()));
    const size_t bytes = pairs.size() * sizeof(uint64_t);
    TTT_CHECK_OK(driver_.check(driver_.cuMemsetD8Async(results_, 0xFF, bytes, stream),
                               "preparing a comparison"));
    for (size_t i = 0; i < pairs.size(); ++i)
        TTT_CHECK_OK(compare(pairs[i], results_ + i * sizeof(uint64_t), stream));
    TTT_CHECK_OK(driver_.check(driver_.cuStreamSynchronize(stream), "comparing on the device"));
    TTT_CHECK_OK(driver_.check(driver_.cuMemcpyDtoH_v2(out.data(), results_, bytes),
                               "reading a comparison"));
    return out;
}

}  // namespace ttt::sandbox
