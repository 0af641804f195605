// The compiler of the emulated GPU: the module is the PTX itself, its resources come from an
// assembler or an estimate.
#include "compile/passthrough.h"

#include <chrono>
#include <cstring>
#include <new>

#include "compile/assembler.h"
#include "compile/compiler.h"
#include "compile/controls.h"
#include "compile/pressure.h"
#include "compile/toolkit.h"

namespace ttt::compile {
namespace {

constexpr uint32_t kParserPtxVersion = 90;  // what runtime/ptx knows
constexpr uint32_t kParserMajor = 13;

// PTX that the assembler judged wrong is wrong; an assembler that could not run says nothing about
// the PTX.
bool is_verdict(const Error& error) {
    return error.code == Code::kCompile || error.code == Code::kUnsupported ||
           error.code == Code::kInvalidArgument || error.code == Code::kNotFound ||
           error.code == Code::kParse;
}

uint32_t stated_registers(const ptx::Function& entry, uint32_t max_registers) {
    for (const ptx::Directive& d : entry.directives)
        if (d.name == "maxnreg" && !d.values.empty()) return d.values.front();
    return max_registers;
}

class Passthrough final : public Compiler {
  public:
    explicit Passthrough(std::unique_ptr<Compiler> assembler) : x_assembler(std::move(assembler)) {}

    std::string identity() const override {
        return x_assembler == nullptr ? "passthrough" : "passthrough + " + x_assembler->identity();
    }
    uint32_t major() const override {
        return x_assembler == nullptr ? kParserMajor : x_assembler->major();
    }
    uint32_t max_ptx_version() const override {
        return x_assembler == nullptr ? kParserPtxVersion : x_assembler->max_ptx_version();
    }

    Result<Compiled> compile(std::string_view ptx, std::string_view entry, std::string_view arch,
                             const xform::CompileControls& controls) override {
        try {
            const auto start = std::chrono::steady_clock::now();
            TTT_CHECK_OK(check_ptx(ptx, arch, identity(), max_ptx_version()));
            TTT_TRY(Compiled out, resources(ptx, entry, arch, controls));
            out.image.resize(ptx.size() + 1);
            std::memcpy(out.image.data(), ptx.data(), ptx.size());
            out.image.back() = std::byte{0};
            out.code.text = {};
            out.milliseconds =
                std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
                    .count();
            return out;
        } catch (const std::bad_alloc&) {
            return make_error(Code::kExhausted, "no memory to compile a variant");
        }
    }

  private:
    Result<Compiled> resources(std::string_view ptx, std::string_view entry, std::string_view arch,
                               const xform::CompileControls& controls) {
        if (x_assembler != nullptr) {
            auto assembled = x_assembler->compile(ptx, entry, arch, controls);
            if (assembled.ok() || is_verdict(assembled.error())) return assembled;
        }
        return estimate(ptx, entry, controls);
    }

    static Result<Compiled> estimate(std::string_view ptx, std::string_view entry,
                                     const xform::CompileControls& controls) {
        TTT_CHECK_OK(assembler_options(controls));
        TTT_TRY(const ptx::Module module, ptx::parse(std::string(ptx)));
        const ptx::Function* function = module.find(entry);
        if (function == nullptr || !function->is_entry)
            return make_error(Code::kNotFound,
                              "the PTX has no kernel \"" + std::string(entry) + "\"");
        const Pressure p = estimate_pressure(module, *function,
                                             stated_registers(*function, controls.max_registers));
        Compiled out;
        out.entry = std::string(entry);
        out.registers = p.registers;
        out.local_bytes = p.local_bytes;
        out.shared_bytes = p.shared_bytes;
        out.code.name = out.entry;
        out.code.registers = p.registers;
        out.code.local_bytes = p.local_bytes;
        out.code.shared_bytes = p.shared_bytes;
        for (const ptx::ParamLayout& param : ptx::param_layout(module, *function)) {
            out.code.params.emplace_back(param.offset, param.size);
            out.code.param_bytes = std::max(out.code.param_bytes, param.offset + param.size);
        }
        out.log = "resources estimated: no assembler on this machine";
        return out;
    }

    std::unique_ptr<Compiler> x_assembler;  // null when the machine has none
};

}  // namespace

std::unique_ptr<Compiler> make_passthrough(std::string_view cuda_home) {
    auto assembler = make_ptxas(cuda_home);
    return make_passthrough_over(assembler.ok() ? std::move(assembler).value() : nullptr);
}

std::unique_ptr<Compiler> make_passthrough_over(std::unique_ptr<Compiler> assembler) {
    return std::make_unique<Passthrough>(std::move(assembler));
}

}  // namespace ttt::compile
