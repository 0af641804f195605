// One error type and one result type for every expected failure. No exception crosses a library
// boundary.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace ttt {

enum class Code : uint8_t {
    kInvalidArgument,  // the caller or the user gave something that cannot be right
    kParse,            // foreign bytes that do not follow their format
    kUnsupported,      // valid, but not something we handle
    kNotFound,
    kIo,
    kCompile,   // an assembler or compiler refused
    kDriver,    // the CUDA driver returned an error
    kProtocol,  // a message from another process that does not verify
    kTimeout,
    kExhausted,  // a budget (memory, time, instructions) ran out
    kInternal,   // a bug of ours
};

std::string_view code_name(Code code);

struct Error {
    Code code = Code::kInternal;
    std::string message;               // what happened, where, what to do: one line
    std::vector<std::string> context;  // innermost first
    uint32_t line = 0;                 // position in foreign text, 1-based; 0 = none
    uint32_t column = 0;

    Error& with(std::string what) & {
        context.push_back(std::move(what));
        return *this;
    }
    Error with(std::string what) && {
        context.push_back(std::move(what));
        return std::move(*this);
    }
    // "outer: inner: message"
    std::string str() const;
};

inline Error make_error(Code code, std::string message) {
    return Error{code, std::move(message), {}, 0, 0};
}

template <typename T>
class [[nodiscard]] Result {
  public:
    Result(T value)
        : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: implicit by design
    Result(Error error)
        : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit by design
    bool ok() const { return state_.index() == 0; }
    explicit operator bool() const { return ok(); }
    // Precondition: ok().
    T& value() & { return *std::get_if<0>(&state_); }
    const T& value() const& { return *std::get_if<0>(&state_); }
    T&& value() && { return std::move(*std::get_if<0>(&state_)); }
    T& operator*() & { return value(); }
    const T& operator*() const& { return value(); }
    T* operator->() { return std::get_if<0>(&state_); }
    const T* operator->() const { return std::get_if<0>(&state_); }
    // Precondition: !ok().
    Error& error() & { return *std::get_if<1>(&state_); }
    const Error& error() const& { return *std::get_if<1>(&state_); }
    Error&& error() && { return std::move(*std::get_if<1>(&state_)); }

  private:
    std::variant<T, Error> state_;
};

struct Unit {};
using Status = Result<Unit>;
inline Status ok_status() { return Unit{}; }

}  // namespace ttt

#define TTT_CONCAT_(a, b) a##b
#define TTT_CONCAT(a, b) TTT_CONCAT_(a, b)
// TTT_TRY(x, expr): x = value of expr, or return its error.
#define TTT_TRY(decl, expr)                                       \
    auto TTT_CONCAT(ttt_try_, __LINE__) = (expr);                 \
    if (!TTT_CONCAT(ttt_try_, __LINE__).ok())                     \
        return std::move(TTT_CONCAT(ttt_try_, __LINE__)).error(); \
    decl = std::move(TTT_CONCAT(ttt_try_, __LINE__)).value()
#define TTT_CHECK_OK(expr)                                          \
    do {                                                            \
        auto ttt_status = (expr);                                   \
        if (!ttt_status.ok()) return std::move(ttt_status).error(); \
    } while (0)
