#include "image/sass.h"

namespace ttt::image {
namespace {

// Bits 0..8 name the operation, bits 9..11 the form of its operands. Found by assembling one
// operation at a time for every architecture; tests/data/image/opcodes.txt has what a disassembler
// says about the same code.
enum Operation : uint32_t {
    kFmul = 0x020,
    kFadd = 0x021,
    kFfma = 0x023,
    kDmul = 0x028,
    kDadd = 0x029,
    kDfma = 0x02B,
    kHadd2 = 0x030,
    kHfma2 = 0x031,
    kHmul2 = 0x032,
    kHfma2Mma = 0x035,  // before sm_100; later an integer addition
    kFfma2 = 0x049,
    kFmul2 = 0x04A,
    kFadd2 = 0x04B,  // pairs of f32, sm_100 to sm_110 only
    kUfadd = 0x054,
    kUffma = 0x055,
    kUfmul = 0x056,  // uniform data path, from sm_120
    kMufu = 0x108,
    kBar = 0x11D,
};

constexpr uint64_t kZeroRegister = 0xFF;
constexpr uint32_t kInstructionBytes = 16;

struct Generation {
    bool half_mma = false, pairs = false, uniform_float = false;
};

void count_one(uint64_t word, Generation gen, KernelCode& code) {
    // Half operations on the zero register load constants or convert: they are no arithmetic of the
    // program.
    const bool arithmetic = ((word >> 24) & 0xFF) != kZeroRegister;
    switch (word & 0x1FF) {
        case kFmul:
            ++code.fmul;
            break;
        case kFadd:
            ++code.fadd;
            break;
        case kFfma:
            ++code.ffma;
            break;
        case kDmul:
            ++code.dmul;
            break;
        case kDadd:
            ++code.dadd;
            break;
        case kDfma:
            ++code.dfma;
            break;
        case kHadd2:
        case kHfma2:
        case kHmul2:
            code.hfma += arithmetic ? 1 : 0;
            break;
        case kHfma2Mma:
            code.hfma += gen.half_mma && arithmetic ? 1 : 0;
            break;
        case kFfma2:
            code.ffma += gen.pairs ? 2 : 0;
            break;
        case kFmul2:
            code.fmul += gen.pairs ? 2 : 0;
            break;
        case kFadd2:
            code.fadd += gen.pairs ? 2 : 0;
            break;
        case kUffma:
            code.ffma += gen.uniform_float ? 1 : 0;
            break;
        case kUfmul:
            code.fmul += gen.uniform_float ? 1 : 0;
            break;
        case kUfadd:
            code.fadd += gen.uniform_float ? 1 : 0;
            break;
        case kMufu:
            ++code.mufu;
            break;
        case kBar:
            ++code.bar;
            break;
        default:
            break;
    }
}

}  // namespace

void count_instructions(Bytes text, uint32_t arch, KernelCode& code) {
    if (arch < 75 || arch > 121) return;
    const Generation gen{arch < 100, arch >= 100 && arch < 120, arch >= 120};
    for (uint64_t at = 0; at + kInstructionBytes <= text.size(); at += kInstructionBytes) {
        count_one(load_or_zero<uint64_t>(text, at), gen, code);
        ++code.instructions;
    }
}

}  // namespace ttt::image
