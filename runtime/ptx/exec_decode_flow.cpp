// Memory, control flow and synchronisation.
#include <fmt/format.h>

#include <algorithm>

#include "ptx/exec_decode.h"
#include "ptx/exec_memory.h"

namespace ttt::ptx::exec {
namespace {

uint8_t vector_length(const Stmt& s) {
    return s.has(Mod::kV8) ? 8 : s.has(Mod::kV4) ? 4 : s.has(Mod::kV2) ? 2 : 1;
}

bool unknown_memory_form(const Stmt& s) {
    return s.has(Mod::kAsync) || s.has(Mod::kBulk) || s.has(Mod::kMmio) || s.has(Mod::kMbarrier) ||
           s.last_type() == Type::kNone || s.last_type() == Type::kPred;
}

bool ordered(const Stmt& s) { return s.has(Mod::kAcquire) || s.has(Mod::kRelease); }

// May meet an access of another block. Shared and local memory are one host thread's own.
bool strong(const Stmt& s) {
    return (s.space() == Space::kGlobal || s.space() == Space::kGeneric) &&
           (ordered(s) || s.has(Mod::kVolatile) || s.has(Mod::kRelaxed));
}

std::optional<AtomicKind> atomic_kind(const Stmt& s) {
    static constexpr std::pair<Mod, AtomicKind> kKinds[] = {
        {Mod::kAdd, AtomicKind::kAdd},   {Mod::kMin, AtomicKind::kMin},
        {Mod::kMax, AtomicKind::kMax},   {Mod::kAnd, AtomicKind::kAnd},
        {Mod::kOr, AtomicKind::kOr},     {Mod::kXor, AtomicKind::kXor},
        {Mod::kExch, AtomicKind::kExch}, {Mod::kCas, AtomicKind::kCas},
        {Mod::kInc, AtomicKind::kInc},   {Mod::kDec, AtomicKind::kDec}};
    for (const auto& [mod, kind] : kKinds)
        if (s.has(mod)) return kind;
    return std::nullopt;
}

uint32_t lane_bytes(Width w) { return slot_bytes(w) / kLanes; }

// A vector of one element is that element.
const Operand& single(const Operand& o) {
    return o.kind == Operand::Kind::kVector && o.elems.size() == 1 ? o.elems[0] : o;
}

}  // namespace

bool FunctionDecoder::load(const Stmt& s) {
    if (s.operands.size() < 2 || unknown_memory_form(s)) return false;
    Op op = fresh(s);
    op.type = s.last_type();
    op.element_bytes = static_cast<uint8_t>(byte_size(op.type));
    op.elements = vector_length(s);
    if (!address(s.operands[1], s.space(), op)) return false;
    op.cache = program_.new_cache();
    op.run = strong(s) ? run_strong_load : run_load;
    op.sub = ordered(s) ? 1 : 0;
    const auto fits = [&](const Dest& d) {
        return d.width != Width::kPred && lane_bytes(d.width) >= op.element_bytes;
    };
    if (op.elements == 1) {
        if (!dest(single(s.operands[0]), op.dst[0], op.type) || !fits(op.dst[0])) return false;
        emit(op);
        return true;
    }
    if (s.operands[0].kind != Operand::Kind::kVector &&
        s.operands[0].kind != Operand::Kind::kRegister)
        return false;
    std::vector<Dest> parts;
    if (s.operands[0].kind == Operand::Kind::kVector) {
        for (const Operand& e : s.operands[0].elems) {
            Dest d;  // a sink stays nowhere
            if (e.kind != Operand::Kind::kSink && (!dest(e, d, op.type) || !fits(d))) return false;
            parts.push_back(d);
        }
    } else {
        for (uint8_t i = 0; i < op.elements; ++i)
            parts.push_back(register_slot(s.operands[0].sym, i));
    }
    if (parts.size() != op.elements) return false;
    op.table = static_cast<uint32_t>(out_.dests.size());
    out_.dests.push_back(std::move(parts));
    emit(op);
    return true;
}

bool FunctionDecoder::store(const Stmt& s) {
    if (s.operands.size() < 2 || unknown_memory_form(s)) return false;
    Op op = fresh(s);
    op.type = s.last_type();
    op.element_bytes = static_cast<uint8_t>(byte_size(op.type));
    op.elements = vector_length(s);
    if (!address(s.operands[0], s.space(), op)) return false;
    op.cache = program_.new_cache();
    op.run = strong(s) ? run_strong_store : run_store;
    op.sub = ordered(s) ? 1 : 0;
    const auto fits = [&](const Source& v) {
        return v.width != Width::kPred && lane_bytes(v.width) >= op.element_bytes;
    };
    const Operand& value = s.operands[1];
    if (op.elements == 1) {
        if (!source_any(single(value), op.type, op.src[1]) || !fits(op.src[1])) return false;
        emit(op);
        return true;
    }
    std::vector<Source> parts(op.elements);
    if (value.kind == Operand::Kind::kVector) {
        if (value.elems.size() != op.elements) return false;
        for (size_t i = 0; i < parts.size(); ++i)
            if (!source_any(value.elems[i], op.type, parts[i]) || !fits(parts[i])) return false;
    } else {
        if (value.kind != Operand::Kind::kRegister || module_.at(value.sym).vector != op.elements)
            return false;
        for (uint8_t i = 0; i < op.elements; ++i) {
            const Dest d = register_slot(value.sym, i);
            parts[i] = {d.offset, d.width, 0, false};
        }
    }
    op.table = static_cast<uint32_t>(out_.values.size());
    out_.values.push_back(std::move(parts));
    emit(op);
    return true;
}

bool FunctionDecoder::atomic(const Stmt& s) {
    const auto kind = atomic_kind(s);
    if (!kind || unknown_memory_form(s)) return false;
    Op op = fresh(s);
    op.type = s.last_type();
    op.element_bytes = static_cast<uint8_t>(byte_size(op.type));
    op.elements = vector_length(s);
    op.sub = static_cast<uint16_t>(*kind);
    if (op.element_bytes < 2 || op.element_bytes > 8) return false;
    const bool arithmetic_only =
        is_float(op.type) && *kind != AtomicKind::kAdd && *kind != AtomicKind::kExch;
    const bool half =
        bit_size(op.type) == 16 || op.type == Type::kF16x2 || op.type == Type::kBF16x2;
    if (arithmetic_only && !(half && (*kind == AtomicKind::kMin || *kind == AtomicKind::kMax)))
        return false;
    const size_t first = s.op == Opcode::kAtom ? 1 : 0;
    const size_t values = *kind == AtomicKind::kCas ? 2 : 1;
    if (s.operands.size() < first + 1 + values) return false;
    if (!address(s.operands[first], s.space(), op)) return false;
    op.cache = program_.new_cache();
    op.run = run_atomic;
    if (op.elements == 1) {
        if (first == 1 && !dest(s.operands[0], op.dst[0], op.type)) return false;
        op.sources = 1;
        for (size_t i = 0; i < values; ++i)
            if (!source(s.operands[first + 1 + i], op.type, op.src[op.sources++])) return false;
        if (first == 1 && !width_is(op.dst[0].width, op.type)) return false;
        emit(op);
        return true;
    }
    const Operand& vector = s.operands[first + 1];
    if (vector.kind != Operand::Kind::kVector || vector.elems.size() != op.elements) return false;
    std::vector<Source> parts(op.elements);
    for (size_t i = 0; i < parts.size(); ++i)
        if (!source(vector.elems[i], op.type, parts[i])) return false;
    op.table = static_cast<uint32_t>(out_.values.size());
    out_.values.push_back(std::move(parts));
    if (first == 1) {
        const Operand& to = s.operands[0];
        if (to.kind != Operand::Kind::kVector || to.elems.size() != op.elements) return false;
        std::vector<Dest> olds(op.elements);
        for (size_t i = 0; i < olds.size(); ++i)
            if (!dest(to.elems[i], olds[i], op.type)) return false;
        op.results = static_cast<uint32_t>(out_.dests.size());
        out_.dests.push_back(std::move(olds));
    }
    emit(op);
    return true;
}

// cp.async of 4, 8 or 16 bytes happens at once, so its groups have nothing to wait for.
bool FunctionDecoder::copy(const Stmt& s) {
    if (!s.has(Mod::kAsync) || s.has(Mod::kMbarrier)) return false;
    if (s.has(Mod::kBulk)) return false;
    if (s.has(Mod::kCommitGroup) || s.has(Mod::kWaitGroup) || s.has(Mod::kWaitAll))
        return no_operation(s);
    if (s.operands.size() < 3 || s.operands[2].kind != Operand::Kind::kImmediate) return false;
    Op op = fresh(s);
    Op from = fresh(s);
    if (!address(s.operands[0], Space::kShared, op) ||
        !address(s.operands[1], Space::kGlobal, from))
        return false;
    op.src[1] = from.src[0];
    op.target = static_cast<uint32_t>(from.imm);
    op.sub = static_cast<uint16_t>(s.operands[2].value);
    if (op.sub != 4 && op.sub != 8 && op.sub != 16) return false;
    op.sources = 2;
    const bool policy_last = s.has(Mod::kL2CacheHint);
    const size_t extra = s.operands.size() - 3 - (policy_last ? 1 : 0);
    if (extra == 1) {
        Source size;
        if (!source_any(s.operands[3], Type::kU32, size)) return false;
        if (size.width != Width::kWord) return false;  // the ignore-src predicate form
        op.src[2] = size;
        op.sources = 3;
    } else if (extra != 0) {
        return false;
    }
    op.cache = program_.new_cache();
    op.run = run_copy;
    emit(op);
    return true;
}

bool FunctionDecoder::branch(const Stmt& s) {
    if (s.operands.size() != 1 || s.operands[0].kind != Operand::Kind::kSymbol) return false;
    Op op = fresh(s);
    op.flow = Flow::kBranch;
    branches_.emplace_back(static_cast<uint32_t>(out_.ops.size()), &s);
    emit(op);
    return true;
}

bool FunctionDecoder::branch_indexed(const Stmt& s) {
    if (s.operands.size() != 2) return false;
    Op op = fresh(s);
    op.flow = Flow::kBranchIndexed;
    if (!source(s.operands[0], Type::kU32, op.src[0])) return false;
    op.table = static_cast<uint32_t>(out_.targets.size());
    out_.targets.emplace_back();
    branches_.emplace_back(static_cast<uint32_t>(out_.ops.size()), &s);
    emit(op);
    return true;
}

bool FunctionDecoder::leave(const Stmt& s, Flow flow) {
    Op op = fresh(s);
    op.flow = flow;
    emit(op);
    return true;
}

bool FunctionDecoder::transfer(const Operand& o, bool result, Transfer& out) {
    if (o.sym != kNoSym) {
        if (const auto it = locals_.find(o.sym); it != locals_.end()) {
            out.offset = it->second + static_cast<uint32_t>(o.value);
            out.bytes = static_cast<uint32_t>(module_.at(o.sym).bytes());
            return true;
        }
    }
    out.in_memory = false;
    if (o.kind == Operand::Kind::kSink) {
        out.dest = {};
        return result;
    }
    if (result) return dest(o, out.dest, Type::kB32);
    return source_any(o, o.literal == Operand::Literal::kF64 ? Type::kF64 : Type::kB64, out.source);
}

// Functions of the system that programs call without defining them.
bool FunctionDecoder::system_call(std::string_view name, Op op) {
    if (name == "vprintf") {
        op.run = run_print;
    } else if (name == "__assertfail") {
        op.run = run_assert_fail;
    } else {
        fail_ = fmt::format("function {} has no body here", name);
        return false;
    }
    emit(op);
    return true;
}

bool FunctionDecoder::call(const Stmt& s) {
    Op op = fresh(s);
    Call site;
    size_t at = 0;
    const auto tuple = [&](bool result, std::vector<Transfer>& out) {
        if (at >= s.operands.size() || s.operands[at].kind != Operand::Kind::kTuple) return true;
        for (const Operand& o : s.operands[at].elems) {
            Transfer t;
            if (!transfer(o, result, t)) return false;
            out.push_back(t);
        }
        ++at;
        return true;
    };
    if (!tuple(true, site.results) || at >= s.operands.size()) return false;
    const Operand& target = s.operands[at++];
    if (!tuple(false, site.arguments)) return false;
    op.table = static_cast<uint32_t>(out_.calls.size());
    if (target.kind == Operand::Kind::kSymbol && target.sym != kNoSym &&
        module_.at(target.sym).kind == Symbol::Kind::kFunction) {
        site.callee = program_.loaded().function_of(target.sym);
        const bool defined = site.callee != kNoSym;
        if (!defined) site.callee = kNowhere;
        site.system = !defined;
        out_.calls.push_back(std::move(site));
        if (!defined) return system_call(module_.at(target.sym).name, op);
        op.joins_after = s.guard != kNoSym;
    } else {
        if (target.kind != Operand::Kind::kRegister || !source(target, Type::kU64, op.src[0]))
            return false;
        out_.calls.push_back(std::move(site));
        op.joins_after = true;
    }
    op.flow = Flow::kCall;
    emit(op);
    return true;
}

bool FunctionDecoder::barrier(const Stmt& s) {
    if (s.has(Mod::kWarp)) {
        if (s.operands.size() != 1) return false;
        Op op = fresh(s);
        op.sources = 1;
        if (!source(s.operands[0], Type::kB32, op.src[0]) || !select_warp(s, op)) return false;
        emit(op);
        return true;
    }
    Op op = fresh(s);
    op.flow = Flow::kBarrier;
    op.src[0] = op.src[1] = program_.constant(Width::kWord, 0);
    if (s.has(Mod::kCluster)) return false;
    size_t at = 0;
    size_t operands = s.operands.size();
    BarrierAction action = s.has(Mod::kArrive) ? BarrierAction::kArrive : BarrierAction::kSync;
    if (s.has(Mod::kRed)) {
        action = s.has(Mod::kPopc)  ? BarrierAction::kPopc
                 : s.has(Mod::kAnd) ? BarrierAction::kAnd
                                    : BarrierAction::kOr;
        if (operands < 3) return false;
        const bool popc = action == BarrierAction::kPopc;
        if (!dest(s.operands[at++], op.dst[0], popc ? Type::kU32 : Type::kPred)) return false;
        if (!source(s.operands[--operands], Type::kPred, op.src[2])) return false;
    } else if (!s.has(Mod::kSync) && !s.has(Mod::kArrive)) {
        return false;
    }
    op.sub = static_cast<uint16_t>(action);
    if (at < operands && !source(s.operands[at++], Type::kU32, op.src[0])) return false;
    if (at < operands && !source(s.operands[at++], Type::kU32, op.src[1])) return false;
    if (at != operands) return false;
    emit(op);
    return true;
}

}  // namespace ttt::ptx::exec
