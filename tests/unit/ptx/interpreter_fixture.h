// A kernel `k(.param .u64 p)` on one buffer, for tests of the interpreter.
#pragma once

#include <gtest/gtest.h>

#include <cstring>

#include "ptx/interpreter.h"

namespace ttt::ptx {

class Bench {
  public:
    static constexpr uint64_t kBuffer = 0x700000000000ull, kModule = 0x600000000000ull;

    // `body` has %r0-31, %d0-15, %f0-15, %p0-7; %d1 holds the buffer's address, %r1 the thread's
    // index.
    explicit Bench(const std::string& body, const std::string& before = "", size_t bytes = 4096)
        : buffer(bytes) {
        text = ".version 8.7\n.target sm_90\n.address_size 64\n" + before +
               "\n.visible .entry k(.param .u64 p)\n{\n.reg .b32 %r<32>;\n.reg .b64 %d<16>;\n.reg "
               ".f32 %f<16>;\n"
               ".reg .pred %p<8>;\nld.param.u64 %d1, [p];\nmov.u32 %r1, %tid.x;\n" +
               body + "\nret;\n}\n";
        auto parsed = parse(text);
        EXPECT_TRUE(parsed.ok()) << (parsed.ok() ? "" : parsed.error().str());
        if (!parsed.ok()) return;
        module = std::move(*parsed);
        EXPECT_TRUE(space.add({kBuffer, bytes, buffer.data(), true, true}).ok());
        auto placed = LoadedModule::load(module, space, kModule);
        EXPECT_TRUE(placed.ok()) << (placed.ok() ? "" : placed.error().str());
        if (!placed.ok()) return;
        loaded = std::move(*placed);
        auto decoded = Program::decode(*loaded, "k");
        if (decoded.ok())
            program = std::move(*decoded);
        else
            error = decoded.error().str();
    }

    LaunchResult run(uint32_t threads = 32, LaunchRequest request = {}) {
        EXPECT_NE(program, nullptr) << error;
        if (program == nullptr) return {};
        std::byte params[8];
        std::memcpy(params, &kBuffer, 8);
        request.block = {threads, 1, 1};
        request.params = params;
        return program->run(space, request);
    }
    // The fault's message; "" when there was none.
    std::string fault(Fault::Kind kind, uint32_t threads = 32, LaunchRequest request = {}) {
        const LaunchResult result = run(threads, request);
        if (!result.fault) return "";
        EXPECT_EQ(result.fault->kind, kind) << result.fault->message;
        return result.fault->message;
    }
    uint32_t word(size_t i) const {
        uint32_t value;
        std::memcpy(&value, buffer.data() + 4 * i, 4);
        return value;
    }

    std::string text, error;
    std::vector<std::byte> buffer;
    AddressSpace space;
    Module module;
    std::unique_ptr<LoadedModule> loaded;
    std::unique_ptr<Program> program;
};

inline bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace ttt::ptx
