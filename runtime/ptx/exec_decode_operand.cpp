// Operands: registers, constants, addresses, special registers.
#include <fmt/format.h>

#include "ptx/exec_decode.h"
#include "ptx/float_soft.h"

namespace ttt::ptx::exec {
namespace {

// The bits of a literal where a value of `type` is wanted.
uint64_t literal_bits(const Operand& o, Type type) {
    using namespace soft;
    if (o.literal == Operand::Literal::kInt) {
        const bool number = type == Type::kF32 || type == Type::kF64;
        if (!number) return o.value;
        const bool negative = static_cast<int64_t>(o.value) < 0;
        return from_integer(type == Type::kF64 ? kF64 : kF32, negative,
                            negative ? ~o.value + 1 : o.value, Round::kNearest);
    }
    const bool from_f64 = o.literal == Operand::Literal::kF64;
    if (bit_size(type) == 64)
        return from_f64 ? o.value : convert(kF32, kF64, o.value, Round::kNearest);
    if (type == Type::kF16 || type == Type::kBF16)
        return convert(from_f64 ? kF64 : kF32, type == Type::kF16 ? kF16 : kBF16, o.value,
                       Round::kNearest);
    return from_f64 ? convert(kF64, kF32, o.value, Round::kNearest) : o.value;
}

}  // namespace

bool FunctionDecoder::width_is(Width got, Type type) {
    if (got == width_of(type)) return true;
    fail_ = fmt::format("an operand's size does not match .{}", spelling(type));
    return false;
}

// The address that taking a variable's or function's address gives.
bool FunctionDecoder::symbol_source(Sym sym, uint64_t addend, Source& out) {
    const Symbol& s = module_.at(sym);
    if (s.kind == Symbol::Kind::kFunction) {
        const uint32_t f = program_.loaded().function_of(sym);
        if (f == kNoSym) {
            fail_ = fmt::format("function {} has no body here", s.name);
            return false;
        }
        out = program_.constant(Width::kLong, kFunctionAddresses + 16 * uint64_t{f} + addend);
        return true;
    }
    if (const auto it = params_.find(sym); it != params_.end()) {
        out = program_.constant(Width::kLong, kParamWindow + it->second + addend);
        return true;
    }
    if (s.space == Space::kShared) {
        out = program_.constant(Width::kLong, program_.shared_offset(sym) + addend);
        return true;
    }
    const uint64_t address = program_.loaded().address_of(sym);
    if (address == 0) {
        fail_ = fmt::format("variable {} has no storage here", s.name);
        return false;
    }
    out = program_.constant(Width::kLong, address + addend);
    return true;
}

namespace {
// imm: offset in the frame's local memory, plus the local window for parameters.
void run_local_address(Context& c, const Op& op, uint32_t mask) {
    const uint64_t value = op.imm + c.frame->local_base;
    for_lanes(mask, [&](uint32_t i) { c.set_lane(op.dst[0], i, value); });
}
}  // namespace

bool FunctionDecoder::special(const Operand& o, const Dest& to) {
    Op op;
    op.stmt = index_;
    op.counted = false;
    op.dst[0] = to;
    if (!select_special(o.text, o.component, op)) {
        fail_ = fmt::format("special register %{}", o.text);
        return false;
    }
    emit(op);
    return true;
}

// A source of any size: registers as they are, literals and addresses as `immediate_type`.
bool FunctionDecoder::source_any(const Operand& o, Type immediate_type, Source& out) {
    switch (o.kind) {
        case Operand::Kind::kRegister: {
            const Dest d = register_slot(o.sym, o.component);
            out = {d.offset, d.width, 0, o.negated};
            return true;
        }
        case Operand::Kind::kImmediate: {
            const Width width = width_of(immediate_type);
            uint64_t bits = literal_bits(o, immediate_type);
            if (bit_size(immediate_type) < 64 && bit_size(immediate_type) > 0)
                bits &=
                    (uint64_t{1} << (width == Width::kHalf ? 16 : bit_size(immediate_type))) - 1;
            if (immediate_type == Type::kPred) bits = (o.value != 0) != o.negated ? 1 : 0;
            out = program_.constant(width, bits);
            return true;
        }
        case Operand::Kind::kSpecial: {
            const bool wide = o.text == "clock64" || o.text == "globaltimer" ||
                              (o.text == "gridid" && bit_size(immediate_type) == 64);
            const Dest d = scratch(wide ? Width::kLong : Width::kWord);
            out = {d.offset, d.width, 0, false};
            return special(o, d);
        }
        case Operand::Kind::kSymbol:
        case Operand::Kind::kAddress: {
            if (o.sym == kNoSym) {
                out = program_.constant(width_of(immediate_type), o.value);
                return true;
            }
            if (module_.at(o.sym).kind == Symbol::Kind::kRegister) break;
            const auto local = locals_.find(o.sym);
            if (local != locals_.end()) {
                Op op;
                op.stmt = index_;
                op.counted = false;
                op.run = run_local_address;
                const bool param = module_.at(o.sym).space == Space::kParam;
                op.imm = local->second + o.value + (param ? kLocalWindow : 0);
                op.dst[0] = scratch(width_of(immediate_type));
                out = {op.dst[0].offset, op.dst[0].width, 0, false};
                emit(op);
                return true;
            }
            if (!symbol_source(o.sym, o.value, out)) return false;
            if (bit_size(immediate_type) == 32) {
                uint64_t bits = 0;
                if (module_.at(o.sym).space != Space::kShared) {
                    fail_ = "a 64-bit address does not fit";
                    return false;
                }
                bits = program_.shared_offset(o.sym) + o.value;
                out = program_.constant(Width::kWord, bits & 0xFFFFFFFF);
            }
            return true;
        }
        default:
            break;
    }
    fail_ = "an operand of this kind";
    return false;
}

bool FunctionDecoder::source(const Operand& o, Type type, Source& out) {
    if (!source_any(o, type, out)) return false;
    if (o.kind == Operand::Kind::kSpecial && out.width != width_of(type)) {
        const Dest d = scratch(width_of(type));
        out = {d.offset, d.width, 0, false};
        return special(o, d);
    }
    return width_is(out.width, type);
}

bool FunctionDecoder::dest(const Operand& o, Dest& out, Type sink_type) {
    if (o.kind == Operand::Kind::kSink) {
        out = scratch(width_of(sink_type));
        return true;
    }
    if (o.kind != Operand::Kind::kRegister) {
        fail_ = "a destination of this kind";
        return false;
    }
    out = register_slot(o.sym, o.component);
    return true;
}

// A destination or a pair d|p.
bool FunctionDecoder::dests(const Operand& o, Type type, Op& op) {
    if (o.kind != Operand::Kind::kPair) return dest(o, op.dst[0], type);
    return o.elems.size() == 2 && dest(o.elems[0], op.dst[0], type) &&
           dest(o.elems[1], op.dst[1], Type::kPred);
}

// Fills src[0], imm, space and frame_relative for an access in `space`.
bool FunctionDecoder::address(const Operand& o, Space space, Op& op) {
    if (o.kind != Operand::Kind::kAddress && o.kind != Operand::Kind::kSymbol) {
        fail_ = "an address of this kind";
        return false;
    }
    op.space = space;
    op.imm = o.value;
    if (o.sym == kNoSym) {
        op.src[0] = program_.constant(Width::kLong, 0);
        return true;
    }
    const Symbol& s = module_.at(o.sym);
    if (s.kind == Symbol::Kind::kRegister) {
        const Dest d = register_slot(o.sym, o.component);
        op.src[0] = {d.offset, d.width, 0, false};
        // A parameter's address held in a register is a generic one here.
        if (space == Space::kParam) op.space = Space::kGeneric;
        if (d.width != Width::kWord && d.width != Width::kLong)
            fail_ = "an address register of this size";
        return d.width == Width::kWord || d.width == Width::kLong;
    }
    op.src[0] = program_.constant(Width::kLong, 0);
    if (const auto it = locals_.find(o.sym); it != locals_.end()) {
        op.space = Space::kLocal;
        op.frame_relative = true;
        op.imm += it->second;
        return true;
    }
    if (const auto it = params_.find(o.sym); it != params_.end()) {
        op.space = Space::kParam;
        op.imm += it->second;
        return true;
    }
    op.space = s.space;
    if (s.space == Space::kShared) {
        op.imm += program_.shared_offset(o.sym);
        return true;
    }
    Source where;
    if (!symbol_source(o.sym, o.value, where)) return false;
    op.imm = 0;
    op.src[0] = where;
    return s.space == Space::kGlobal || s.space == Space::kConst;
}

}  // namespace ttt::ptx::exec
