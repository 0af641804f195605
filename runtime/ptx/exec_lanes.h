// Turns a typed one-lane function into a handler over 32 lanes. Internal to the interpreter.
#pragma once

#include <bit>
#include <tuple>
#include <utility>

#include "ptx/exec_state.h"

#ifdef __clang__
#define TTT_IVDEP _Pragma("clang loop vectorize(assume_safety)")
#else
#define TTT_IVDEP _Pragma("GCC ivdep")
#endif

namespace ttt::ptx::exec {

template <size_t Bytes>
struct StorageOf;
template <>
struct StorageOf<1> {
    using Type = uint8_t;
};
template <>
struct StorageOf<2> {
    using Type = uint16_t;
};
template <>
struct StorageOf<4> {
    using Type = uint32_t;
};
template <>
struct StorageOf<8> {
    using Type = uint64_t;
};
// Slots are always accessed as unsigned integers, whatever the operation's type, so that no
// aliasing rule is broken.
template <typename T>
using Storage = typename StorageOf<sizeof(T)>::Type;

template <class F, class D, class... S, size_t... I>
inline void each_of(Context& c, const Op& op, uint32_t mask, std::index_sequence<I...>) {
    auto* d = c.write<Storage<D>>(op.dst[0]);
    const std::tuple<const Storage<S>*...> s{c.read<Storage<S>>(op.src[I])...};
    if (mask == ~uint32_t{0}) {
        TTT_IVDEP
        for (uint32_t i = 0; i < kLanes; ++i)
            d[i] = std::bit_cast<Storage<D>>(
                static_cast<D>(F::apply(std::bit_cast<S>(std::get<I>(s)[i])...)));
        return;
    }
    for_lanes(mask, [&](uint32_t i) {
        d[i] = std::bit_cast<Storage<D>>(
            static_cast<D>(F::apply(std::bit_cast<S>(std::get<I>(s)[i])...)));
    });
}

// F::apply(S...) -> D for every lane.
template <class F, class D, class... S>
void each_plain(Context& c, const Op& op, uint32_t mask) {
    each_of<F, D, S...>(c, op, mask, std::index_sequence_for<S...>{});
}

#if defined(__x86_64__)
#define TTT_WIDE __attribute__((target("avx2,fma,bmi,bmi2,lzcnt,popcnt"), flatten))
inline bool has_wide() {
    static const bool yes = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                            __builtin_cpu_supports("bmi2");
    return yes;
}
#else
#define TTT_WIDE
inline bool has_wide() { return true; }
#endif

// The same compiled for 8 lanes at a time with fused multiply-add; same bits.
template <class F, class D, class... S>
TTT_WIDE void each_wide(Context& c, const Op& op, uint32_t mask) {
    each_of<F, D, S...>(c, op, mask, std::index_sequence_for<S...>{});
}

template <class F, class D, class... S>
Handler each() {
    return has_wide() ? Handler{each_wide<F, D, S...>} : Handler{each_plain<F, D, S...>};
}

}  // namespace ttt::ptx::exec
