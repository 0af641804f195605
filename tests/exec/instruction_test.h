// The instruction tests as files: tests/exec/*.ptx with their launch, expected bytes and allowed
// errors in comment lines. What the interpreter's test and the real driver's program share.
//   // launch: {launch spec}
//   // expect: [{"arg":1,"hex":"…"[,"offset":0]}]
//   // forms: 12                    instruction forms in the file
//   // approx: 1 f32 1ulp 2^-23rel  argument 1 holds f32 in equal parts, one error bound per part
// A form is named by a comment line of its own in the kernel, in the order of its results.
// Pure functions but for reading the file; any thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ptx/float_soft.h"
#include "spec/launch_spec.h"

namespace ttt::test {

// How far a result may be from the correctly rounded one. kUlp counts representable values,
// kRelative and kAbsolute bound the error of the unrounded result.
struct ErrorBound {
    enum class Kind : uint8_t { kUlp, kRelative, kAbsolute };
    Kind kind = Kind::kUlp;
    double limit = 0;
};

struct Approximation {
    size_t arg = 0;
    ptx::soft::Format format = ptx::soft::kF32;
    uint32_t bytes = 4;  // of one element
    std::vector<ErrorBound> bounds;
};

struct Expectation {
    size_t arg = 0, offset = 0;
    std::vector<std::byte> bytes;
};

struct InstructionTest {
    std::string name;  // of the file, without extension
    std::string ptx;
    spec::LaunchSpec launch;
    std::vector<Expectation> expectations;
    std::vector<Approximation> approximations;
    size_t forms = 0;
    std::vector<std::string> form_names;  // `forms` of them, or none
};

struct Difference {
    size_t arg = 0, offset = 0;  // of the first element of a run of wrong ones of one form
    size_t wrong = 0;            // elements
    std::string form;            // empty where the file does not name its forms
    std::string expected, got;   // hex of the first
};

// Errors: kIo, kParse (the file and what is wrong with it).
Result<InstructionTest> read_instruction_test(const std::string& path);

// `expect` is a JSON list as above.
Result<std::vector<Expectation>> parse_expectations(const std::string& expect);

// What differs, one entry per form. `buffers` has one vector per argument of the launch (empty for
// scalars).
Result<std::vector<Difference>> differences(const InstructionTest& test,
                                            std::span<const std::vector<std::byte>> buffers);

// "argument 1 differs at byte 8 (add.u32 d, a, b;): 01000000 instead of 02000000, 3 wrong".
std::string describe(const Difference& difference);

}  // namespace ttt::test
