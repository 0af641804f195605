#include "ptx/operand_types.h"

namespace ttt::ptx {
namespace {

// How an operand's type follows from the instruction's.
enum class Rule : uint8_t {
    kNone,    // not judged
    kSame,    // the instruction's type
    kDouble,  // twice as wide (mul.wide)
    kShift,   // 32-bit amount
    kPredicate,
};

struct Pattern {
    Rule dest = Rule::kNone, a = Rule::kNone, b = Rule::kNone, c = Rule::kNone;
};

Pattern pattern_of(const Stmt& s) {
    using enum Rule;
    switch (s.op) {
        case Opcode::kAdd:
        case Opcode::kSub:
        case Opcode::kAddc:
        case Opcode::kSubc:
        case Opcode::kDiv:
        case Opcode::kRem:
        case Opcode::kMin:
        case Opcode::kMax:
        case Opcode::kAnd:
        case Opcode::kOr:
        case Opcode::kXor:
        case Opcode::kNot:
        case Opcode::kNeg:
        case Opcode::kAbs:
        case Opcode::kRcp:
        case Opcode::kSqrt:
        case Opcode::kRsqrt:
        case Opcode::kEx2:
        case Opcode::kLg2:
        case Opcode::kSin:
        case Opcode::kCos:
            return {kSame, kSame, kSame, kSame};
        case Opcode::kMul:
        case Opcode::kMad:
            if (s.has(Mod::kWide)) return {kDouble, kSame, kSame, kDouble};
            return {kSame, kSame, kSame, kSame};
        case Opcode::kFma:
            return {kSame, kSame, kSame, kSame};
        case Opcode::kShl:
        case Opcode::kShr:
            return {kSame, kSame, kShift, kNone};
        case Opcode::kSetp:
            return {kPredicate, kSame, kSame, kPredicate};
        case Opcode::kSelp:
            return {kSame, kSame, kSame, kPredicate};
        default:
            return {};
    }
}

bool class_fits(Type instruction, Type reg) {
    const auto untyped = [](Type t) {
        return t == Type::kB8 || t == Type::kB16 || t == Type::kB32 || t == Type::kB64;
    };
    if (untyped(instruction) || untyped(reg)) return true;
    if ((instruction == Type::kPred) != (reg == Type::kPred)) return false;
    return is_float(instruction) == is_float(reg);
}

const char* check(const Module& module, const Operand& o, Rule rule, Type type) {
    if (rule == Rule::kNone) return nullptr;
    if (o.kind == Operand::Kind::kPair) {
        for (const Operand& e : o.elems)
            if (const char* broken = check(module, e, rule, type)) return broken;
        return nullptr;
    }
    if (o.kind != Operand::Kind::kRegister) return nullptr;
    const Symbol& reg = module.at(o.sym);
    if (rule == Rule::kPredicate)
        return reg.type == Type::kPred ? nullptr : "operand should be a predicate";
    if (rule == Rule::kShift)
        return bit_size(reg.type) == 32 ? nullptr : "shift amount should be 32 bits wide";
    const uint32_t bits = bit_size(type) * (rule == Rule::kDouble ? 2 : 1);
    if (bit_size(reg.type) != bits) return "register has another size than the instruction's type";
    return class_fits(type, reg.type) ? nullptr
                                      : "register has another class than the instruction's type";
}

}  // namespace

const char* mismatched_operand(const Module& module, const Stmt& s) {
    if (s.kind != Stmt::Kind::kInstruction || s.op == Opcode::kOpaque) return nullptr;
    const Pattern pattern = pattern_of(s);
    const Type type = s.type();
    // Mixed-precision forms (add.f32.f16) name a second type: left to the assembler.
    if (pattern.dest == Rule::kNone || type == Type::kNone || s.type(1) != Type::kNone)
        return nullptr;
    const Rule rules[] = {pattern.dest, pattern.a, pattern.b, pattern.c};
    for (size_t i = 0; i < s.operands.size() && i < 4; ++i)
        if (const char* broken = check(module, s.operands[i], rules[i], type)) return broken;
    return nullptr;
}

}  // namespace ttt::ptx
