// What a compiler and its worker program say to each other, as frames (frame.h) on descriptor 3 of
// the worker. Requests: {kAskIdentity} or {kAskAssemble, ptx, arch, options…}. Answers: {kAnswerOk,
// name, major, max PTX version}, {kAnswerOk, cubin, log} or {kAnswerError, one byte of Code,
// message}.
#pragma once

#include <string_view>

namespace ttt::compile {

inline constexpr std::string_view kAskIdentity = "identity";
inline constexpr std::string_view kAskAssemble = "assemble";
inline constexpr std::string_view kAnswerOk = "ok";
inline constexpr std::string_view kAnswerError = "error";
inline constexpr int kWorkerChannel = 3;
inline constexpr double kWorkerLifetimeSeconds = 3600;

// Serves requests until the other end closes; returns the process's exit code. `library` = path of
// nvJitLink.
int serve(const char* library);

}  // namespace ttt::compile
