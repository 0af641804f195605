// Everything that computes in registers: operand types, families, mov, cvta.
#include <fmt/format.h>

#include <algorithm>

#include "ptx/exec_decode.h"
#include "ptx/exec_memory.h"

namespace ttt::ptx::exec {
namespace {

void run_move(Context& c, const Op& op, uint32_t mask) {
    const Width width = op.dst[0].width;
    if (width == Width::kPred)
        return c.set_predicate(op.dst[0].offset, c.predicate(op.src[0]), mask);
    const uint32_t bytes = slot_bytes(width) / kLanes;
    std::byte* d = c.bank[0] + op.dst[0].offset;
    const std::byte* s = c.bank[op.src[0].bank] + op.src[0].offset;
    if (mask == ~0u) {
        std::memmove(d, s, slot_bytes(width));
        return;
    }
    for_lanes(mask, [&](uint32_t i) {
        std::memmove(d + uint64_t{i} * bytes, s + uint64_t{i} * bytes, bytes);
    });
}

uint32_t lane_bytes(Width w) { return slot_bytes(w) / kLanes; }

// d = {elements}: element_bytes each, from values[table].
void run_pack(Context& c, const Op& op, uint32_t mask) {
    const auto& values = c.code->values[op.table];
    const uint32_t bytes = lane_bytes(op.dst[0].width);
    for_lanes(mask, [&](uint32_t i) {
        std::byte out[16] = {};
        for (size_t k = 0; k < values.size(); ++k)
            std::memcpy(out + k * op.element_bytes,
                        c.bank[values[k].bank] + values[k].offset +
                            uint64_t{i} * lane_bytes(values[k].width),
                        op.element_bytes);
        std::memcpy(c.bank[0] + op.dst[0].offset + uint64_t{i} * bytes, out, bytes);
    });
}

// {elements} = s: into dests[table].
void run_unpack(Context& c, const Op& op, uint32_t mask) {
    const auto& dests = c.code->dests[op.table];
    const uint32_t bytes = lane_bytes(op.src[0].width);
    for_lanes(mask, [&](uint32_t i) {
        std::byte in[16] = {};
        std::memcpy(in, c.bank[op.src[0].bank] + op.src[0].offset + uint64_t{i} * bytes, bytes);
        for (size_t k = 0; k < dests.size(); ++k)
            std::memcpy(c.bank[0] + dests[k].offset + uint64_t{i} * lane_bytes(dests[k].width),
                        in + k * op.element_bytes, op.element_bytes);
    });
}

// cvta: imm is added.
void run_add_window(Context& c, const Op& op, uint32_t mask) {
    for_lanes(mask, [&](uint32_t i) { c.set_lane(op.dst[0], i, c.lane(op.src[0], i) + op.imm); });
}

void run_is_space(Context& c, const Op& op, uint32_t mask) {
    for_lanes(mask, [&](uint32_t i) {
        const uint64_t a = c.lane(op.src[0], i);
        Space space = Space::kGlobal;
        if (a - kSharedWindow < kWindowBytes) space = Space::kShared;
        if (a - kLocalWindow < kWindowBytes) space = Space::kLocal;
        if (a - kParamWindow < kWindowBytes) space = Space::kParam;
        c.set_lane(op.dst[0], i, space == op.space ? 1 : 0);
    });
}

uint64_t window_of(Space space) {
    switch (space) {
        case Space::kShared:
            return kSharedWindow;
        case Space::kLocal:
            return kLocalWindow;
        default:
            return 0;  // parameters' addresses are generic already
    }
}

// Words that change what an instruction computes and that no family knows.
bool has_unknown_meaning(const Stmt& s) {
    for (Mod m : {Mod::kRs, Mod::kOob, Mod::kUnpack, Mod::kIncSat, Mod::kNoftz})
        if (s.has(m)) return true;
    return false;
}

bool is_extended(Opcode op) { return op == Opcode::kShl || op == Opcode::kShr; }

uint32_t type_count(const Stmt& s) {
    uint32_t n = 0;
    while (s.type(n) != Type::kNone) ++n;
    return n;
}

}  // namespace

// The type a literal in source position k has, and the size a register there must have.
Type FunctionDecoder::source_type(const Stmt& s, uint32_t k) const {
    const Type t = s.last_type();
    switch (s.op) {
        case Opcode::kShl:
        case Opcode::kShr:
            return k == 1 ? Type::kU32 : t;
        case Opcode::kBfe:
            return k >= 1 ? Type::kU32 : t;
        case Opcode::kBfi:
            return k >= 2 ? Type::kU32 : t;
        case Opcode::kMul:
        case Opcode::kMad:
            if (!s.has(Mod::kWide) || k < 2) return t;
            return bit_size(t) == 16 ? Type::kU32 : Type::kU64;
        case Opcode::kSetp:
            return k == 2 ? Type::kPred : s.type(0);
        case Opcode::kSet:
            return k == 2 ? Type::kPred : s.type(1);
        case Opcode::kSelp:
            return k == 2 ? Type::kPred : t;
        case Opcode::kSlct:
            return k == 2 ? s.type(1) : s.type(0);
        case Opcode::kVote:
            return k == 0 ? Type::kPred : Type::kU32;
        case Opcode::kMatch:
            return k == 0 ? t : Type::kU32;
        case Opcode::kLop3:
            return k == 4 ? Type::kPred : Type::kB32;
        case Opcode::kFns:
        case Opcode::kDp4a:
        case Opcode::kDp2a:
        case Opcode::kPrmt:
        case Opcode::kShf:
        case Opcode::kBmsk:
        case Opcode::kSzext:
        case Opcode::kShfl:
        case Opcode::kElect:
            return Type::kB32;
        default:
            return t;
    }
}

bool FunctionDecoder::select(const Stmt& s, Op& op) {
    switch (s.op) {
        case Opcode::kSetp:
        case Opcode::kSet:
        case Opcode::kSelp:
        case Opcode::kSlct:
        case Opcode::kTestp:
            return select_compare(s, op);
        case Opcode::kCvt:
            return select_convert(s, op);
        case Opcode::kShfl:
        case Opcode::kVote:
        case Opcode::kMatch:
        case Opcode::kRedux:
        case Opcode::kActivemask:
        case Opcode::kElect:
            return select_warp(s, op);
        default:
            break;
    }
    const Type t = s.last_type();
    const bool dot = s.op == Opcode::kDp4a || s.op == Opcode::kDp2a;
    if (type_count(s) != 1 && !dot) return false;  // mixed precision
    if (is_float(t)) return select_float(s, op);
    return select_integer(s, op);
}

bool FunctionDecoder::arithmetic(const Stmt& s) {
    if (s.operands.empty() || has_unknown_meaning(s)) return false;
    if ((info(s.op).flags & kFlagMatrix) != 0) return false;
    Op op = fresh(s);
    const bool flexible = s.op == Opcode::kCvt;
    const Type t = s.last_type();
    if (!dests(s.operands[0], s.op == Opcode::kSetp ? Type::kPred : t, op)) return false;
    for (size_t i = 1; i < s.operands.size(); ++i) {
        const auto k = static_cast<uint32_t>(i - 1);
        if (s.op == Opcode::kLop3 && k == 3) {
            op.imm = s.operands[i].value & 0xFF;
            if (s.operands[i].kind != Operand::Kind::kImmediate) return false;
            continue;
        }
        if (op.sources >= 5) return false;
        Source& to = op.src[op.sources++];
        Type type = source_type(s, k);
        if (flexible) type = s.last_type();
        if (flexible || (is_extended(s.op) && k == 1)) {
            if (!source_any(s.operands[i], type, to)) return false;
        } else if (!source(s.operands[i], type, to)) {
            return false;
        }
    }
    if (is_extended(s.op) && op.src[1].width != Width::kWord) return false;
    if (op.dst[0].width == Width::kPred && s.op != Opcode::kSetp && s.op != Opcode::kTestp &&
        s.op != Opcode::kVote && t != Type::kPred)
        return false;
    if (!select(s, op)) return false;
    // Handlers write slots of their own type's size.
    const bool direct = op.scalar == nullptr && op.run != nullptr && op.flow == Flow::kNone;
    if (direct && s.op != Opcode::kCvt && s.op != Opcode::kSetp && s.op != Opcode::kSet &&
        s.op != Opcode::kSelp) {
        Type want = t;
        if (s.has(Mod::kWide)) want = bit_size(t) == 16 ? Type::kU32 : Type::kU64;
        if (s.op != Opcode::kActivemask && s.op != Opcode::kVote &&
            !width_is(op.dst[0].width, want))
            return false;
    }
    if (s.op == Opcode::kSelp && !width_is(op.dst[0].width, t)) return false;
    if (s.op == Opcode::kSetp && op.dst[0].width != Width::kPred) return false;
    emit(op);
    return true;
}

bool FunctionDecoder::pack_move(const Stmt& s) {
    const Operand &to = s.operands[0], &from = s.operands[1];
    Op op = fresh(s);
    const bool packing = from.kind == Operand::Kind::kVector;
    const Operand& vector = packing ? from : to;
    const auto count = static_cast<uint32_t>(vector.elems.size());
    const uint32_t total = byte_size(s.last_type());
    if (count == 0 || total % count != 0 || total / count == 0) return false;
    op.element_bytes = static_cast<uint8_t>(total / count);
    const Type element = op.element_bytes == 8   ? Type::kB64
                         : op.element_bytes == 4 ? Type::kB32
                         : op.element_bytes == 2 ? Type::kB16
                                                 : Type::kB8;
    if (packing) {
        std::vector<Source> values(count);
        for (uint32_t i = 0; i < count; ++i)
            if (!source_any(vector.elems[i], element, values[i]) ||
                values[i].width == Width::kPred || lane_bytes(values[i].width) < op.element_bytes)
                return false;
        if (!dest(to, op.dst[0], s.last_type()) || lane_bytes(op.dst[0].width) < total)
            return false;
        op.table = static_cast<uint32_t>(out_.values.size());
        out_.values.push_back(std::move(values));
        op.run = run_pack;
    } else {
        std::vector<Dest> parts(count);
        for (uint32_t i = 0; i < count; ++i)
            if (!dest(vector.elems[i], parts[i], element) || parts[i].width == Width::kPred ||
                lane_bytes(parts[i].width) < op.element_bytes)
                return false;
        if (!source(from, s.last_type(), op.src[0])) return false;
        op.table = static_cast<uint32_t>(out_.dests.size());
        out_.dests.push_back(std::move(parts));
        op.run = run_unpack;
    }
    emit(op);
    return true;
}

bool FunctionDecoder::move(const Stmt& s) {
    if (s.operands.size() != 2) return false;
    const Operand &to = s.operands[0], &from = s.operands[1];
    if (to.kind == Operand::Kind::kVector || from.kind == Operand::Kind::kVector)
        return pack_move(s);
    Op op = fresh(s);
    const Type t = s.last_type();
    if (!dest(to, op.dst[0], t)) return false;
    if (from.kind == Operand::Kind::kSpecial) {
        if (!select_special(from.text, from.component, op)) {
            fail_ = fmt::format("special register %{}", from.text);
            return false;
        }
        emit(op);
        return true;
    }
    if (!source(from, t, op.src[0]) || !width_is(op.dst[0].width, t)) return false;
    op.run = run_move;
    emit(op);
    return true;
}

bool FunctionDecoder::convert_address(const Stmt& s) {
    if (s.operands.size() != 2 || s.last_type() != Type::kU64) return false;
    Op op = fresh(s);
    if (!dest(s.operands[0], op.dst[0], Type::kU64) ||
        !source(s.operands[1], Type::kU64, op.src[0]))
        return false;
    const uint64_t window = window_of(s.space());
    op.imm = s.has(Mod::kTo) ? 0 - window : window;
    op.run = op.imm == 0 ? run_move : run_add_window;
    if (!width_is(op.dst[0].width, Type::kU64)) return false;
    emit(op);
    return true;
}

bool FunctionDecoder::is_space(const Stmt& s) {
    if (s.operands.size() != 2) return false;
    Op op = fresh(s);
    if (!dest(s.operands[0], op.dst[0], Type::kPred) ||
        !source_any(s.operands[1], Type::kU64, op.src[0]))
        return false;
    op.space = s.space();
    op.run = run_is_space;
    emit(op);
    return true;
}

bool FunctionDecoder::no_operation(const Stmt& s) {
    Op op = fresh(s);
    op.run = [](Context&, const Op&, uint32_t) {};
    if (s.op == Opcode::kMembar || s.op == Opcode::kFence) op.run = run_fence;
    if (s.op == Opcode::kCreatepolicy) {
        if (s.operands.empty() || !dest(s.operands[0], op.dst[0], Type::kB64)) return false;
        op.src[0] = program_.constant(Width::kLong, 0);
        op.run = run_move;
    }
    emit(op);
    return true;
}

}  // namespace ttt::ptx::exec
