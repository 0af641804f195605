// One kernel launch described as JSON: what `ttt ptx exec`, `ttt tune` and the tests read.
//   {"entry":"k","grid":[1,1,1],"block":[32,1,1],"shared":0,"args":[{"buffer":{"bytes":64,"hex":"00ff"}},
//    {"buffer":{"bytes":4096,"fill":{"type":"f32","min":-1,"max":1,"seed":1}}},{"u32":4},{"f32":1.5},{"bytes":"0011"}]}
// An optional "variables":{"taps":{"bytes":128,"fill":{…}}} gives the first bytes of module variables,
// as buffers are given; the others keep their initialisers. A buffer with neither hex nor fill is zero; short hex is zero-padded. Scalars: u8…u64, s8…s64,
// f16, bf16, f32, f64. Pure functions over their inputs; any thread. Errors name the JSON key
// (Code::kInvalidArgument).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/dim3.h"
#include "base/result.h"
#include "ptx/ir.h"

namespace ttt::spec {

// Element i = min + (max − min)·u with u = (splitmix64(seed + i) >> 11)·2⁻⁵³ in f64, rounded (to
// nearest even, clamped for integers) to the type. Only whole elements are filled; a shorter tail
// stays zero.
struct Fill {
    ptx::Type type = ptx::Type::kF32;
    double min = 0, max = 1;
    uint64_t seed = 0;
};

struct Argument {
    enum class Kind : uint8_t { kBuffer, kScalar, kBytes };
    Kind kind = Kind::kScalar;
    ptx::Type type = ptx::Type::kNone;  // of a scalar
    uint64_t buffer_bytes = 0;          // of a buffer
    std::vector<std::byte>
        data;  // buffer: its first bytes; scalar or raw struct: all of it, little endian
    std::optional<Fill> fill;  // of a buffer
};

struct LaunchSpec {
    std::string entry;
    Dim3 grid, block;
    uint32_t shared = 0;  // dynamic shared memory in bytes
    std::vector<Argument> args;
    std::vector<std::pair<std::string, Argument>> variables;  // name, contents as of a buffer
};

Result<LaunchSpec> parse(std::string_view json);
// A text of at most `limit` bytes; kIo names what is wrong with the file.
Result<std::string> read_text(const std::string& path, uint64_t limit);
Result<LaunchSpec> read_file(const std::string& path);
std::string to_json(const LaunchSpec& spec);

// The initial contents of a buffer argument. Error: kExhausted when the memory cannot be had.
Result<std::vector<std::byte>> materialise(const Argument& buffer);

// The launch's parameter buffer in ptx::param_layout's order. `addresses` has one device address
// per buffer argument, in argument order. Error names the argument whose size or count does not fit
// the entry.
Result<std::vector<std::byte>> pack_params(const ptx::Module& module, const ptx::Function& entry,
                                           const LaunchSpec& spec,
                                           std::span<const uint64_t> addresses);

std::string to_hex(std::span<const std::byte> bytes);
Result<std::vector<std::byte>> from_hex(std::string_view text);

}  // namespace ttt::spec
