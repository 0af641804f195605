// Whether this build carries a sanitizer, for limits that its runtime cannot live with: terabytes
// of reserved addresses, an allocator of its own, a tracer that attaches at exit.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TTT_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TTT_SANITIZED 1
#endif
#endif
#ifndef TTT_SANITIZED
#define TTT_SANITIZED 0
#endif
#if defined(__SANITIZE_THREAD__)
#define TTT_THREAD_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TTT_THREAD_SANITIZED 1
#endif
#endif
#ifndef TTT_THREAD_SANITIZED
#define TTT_THREAD_SANITIZED 0
#endif

namespace ttt {
inline constexpr bool kSanitized = TTT_SANITIZED != 0;
// ThreadSanitizer also ends a process that maps memory outside the ranges it has shadow for.
inline constexpr bool kThreadSanitized = TTT_THREAD_SANITIZED != 0;
}  // namespace ttt
