// A vector sum as PTX, right and wrong in several ways, and the bytes of one launch of it.
#pragma once

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "ipc/channel.h"
#include "measure/snapshot.h"

namespace ttt::testing_kernels {

inline constexpr uint32_t kCount = 1000, kBlock = 128, kGrid = 8;
inline constexpr uint64_t kBytes = kCount * 4;
inline constexpr uint64_t kA = 0x10000000, kB = 0x10010040,
                          kC = 0x10020000;  // as the program had them

// `body` computes %f3 from %f1 = a[i], %f2 = b[i] (address of c[i] in %rd6) and runs for i < n
// only.
inline std::string vecadd(const std::string& body) {
    return R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry vecadd(.param .u64 p_a, .param .u64 p_b, .param .u64 p_c, .param .u32 p_n)
{
    .reg .pred %p<3>;
    .reg .b32 %r<8>;
    .reg .f32 %f<5>;
    .reg .b64 %rd<12>;
    ld.param.u64 %rd1, [p_a];
    ld.param.u64 %rd2, [p_b];
    ld.param.u64 %rd3, [p_c];
    ld.param.u32 %r1, [p_n];
    cvta.to.global.u64 %rd1, %rd1;
    cvta.to.global.u64 %rd2, %rd2;
    cvta.to.global.u64 %rd3, %rd3;
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    setp.ge.s32 %p1, %r5, %r1;
    @%p1 bra DONE;
    mul.wide.s32 %rd4, %r5, 4;
    add.s64 %rd5, %rd1, %rd4;
    ld.global.f32 %f1, [%rd5];
    add.s64 %rd5, %rd2, %rd4;
    ld.global.f32 %f2, [%rd5];
    add.s64 %rd6, %rd3, %rd4;
)" + body + R"(
DONE:
    ret;
}
)";
}
inline std::string right() {
    return vecadd("    add.rn.f32 %f3, %f1, %f2;\n    st.global.f32 [%rd6], %f3;");
}
inline std::string wrong() {
    return vecadd("    sub.rn.f32 %f3, %f1, %f2;\n    st.global.f32 [%rd6], %f3;");
}
// Writes one element past the end as well.
inline std::string beyond() {
    return vecadd(
        "    add.rn.f32 %f3, %f1, %f2;\n    st.global.f32 [%rd6], %f3;\n    st.global.f32 "
        "[%rd6+4], %f3;");
}
inline std::string writes_input() {
    return vecadd(
        "    add.rn.f32 %f3, %f1, %f2;\n    st.global.f32 [%rd6], %f3;\n    st.global.f32 [%rd5], "
        "%f3;");
}
// Right only while b holds no negative zero, NaN or infinity: b * 0 is not always +0.
inline std::string right_on_these_values() {
    return vecadd(
        "    mul.rn.f32 %f4, %f2, 0f00000000;\n    add.rn.f32 %f4, %f4, %f1;\n    add.rn.f32 %f3, "
        "%f4, %f2;\n"
        "    st.global.f32 [%rd6], %f3;");
}
// Leaves c alone where it already holds the sum: only poison shows that it reads what it should
// write.
inline std::string reads_output() {
    return vecadd(
        "    ld.global.f32 %f4, [%rd6];\n    add.rn.f32 %f3, %f1, %f2;\n    setp.eq.f32 %p2, %f4, "
        "0f00000000;\n"
        "    @%p2 st.global.f32 [%rd6], %f3;");
}
inline std::string faulting() {
    return vecadd("    mov.u64 %rd7, 64;\n    st.global.f32 [%rd7], %f1;");
}
inline std::string hanging() {
    return vecadd(
        "LOOP:\n    add.s32 %r6, %r6, 1;\n    setp.ne.s32 %p2, %r1, 0;\n    @%p2 bra LOOP;");
}

inline std::vector<float> values(uint32_t seed) {
    std::vector<float> v(kCount);
    for (uint32_t i = 0; i < kCount; ++i)
        v[i] = 1.0f + static_cast<float>((i * 7 + seed * 13) % 97) * 0.37f;
    return v;
}

// Regions a, b, c; the arena holds pre a, pre b, pre c, post c.
inline measure::Snapshot snapshot() {
    measure::Snapshot s;
    s.launch.grid = {kGrid, 1, 1};
    s.launch.block = {kBlock, 1, 1};
    s.launch.params.resize(28);
    const uint64_t pointers[] = {kA, kB, kC};
    std::memcpy(s.launch.params.data(), pointers, sizeof pointers);
    std::memcpy(s.launch.params.data() + 24, &kCount, 4);
    for (uint32_t i = 0; i < 3; ++i) {
        measure::Region r;
        r.address = pointers[i];
        r.bytes = kBytes;
        r.pre_offset = i * kBytes;
        r.read = i != 2;
        r.written = i == 2;
        if (r.written) r.post_offset = 3 * kBytes;
        r.pointers = {i * 8};
        s.regions.push_back(r);
    }
    s.arena_bytes = 4 * kBytes;
    return s;
}

inline std::vector<std::byte> arena_bytes() {
    const auto a = values(1), b = values(2);
    std::vector<float> all(a);
    all.insert(all.end(), b.begin(), b.end());
    all.insert(all.end(), kCount, 0.0f);
    for (uint32_t i = 0; i < kCount; ++i) all.push_back(a[i] + b[i]);
    const auto bytes = std::as_bytes(std::span(all));
    return {bytes.begin(), bytes.end()};
}

}  // namespace ttt::testing_kernels
