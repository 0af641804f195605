#include "base/result.h"

namespace ttt {

std::string_view code_name(Code code) {
    switch (code) {
        case Code::kInvalidArgument:
            return "invalid argument";
        case Code::kParse:
            return "parse error";
        case Code::kUnsupported:
            return "unsupported";
        case Code::kNotFound:
            return "not found";
        case Code::kIo:
            return "i/o error";
        case Code::kCompile:
            return "compile error";
        case Code::kDriver:
            return "driver error";
        case Code::kProtocol:
            return "protocol error";
        case Code::kTimeout:
            return "timeout";
        case Code::kExhausted:
            return "exhausted";
        case Code::kInternal:
            return "internal error";
    }
    return "unknown";
}

std::string Error::str() const {
    std::string out;
    for (auto it = context.rbegin(); it != context.rend(); ++it) out += *it + ": ";
    if (line != 0) out += std::to_string(line) + ":" + std::to_string(column) + ": ";
    return out + message;
}

}  // namespace ttt
