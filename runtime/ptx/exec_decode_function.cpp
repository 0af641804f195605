// One function: storage of its registers and variables, its statements in order, its branch
// targets.
#include <fmt/format.h>

#include <algorithm>

#include "ptx/exec_cost.h"
#include "ptx/exec_decode.h"

namespace ttt::ptx::exec {

FunctionDecoder::FunctionDecoder(ProgramDecoder& program, uint32_t function, FunctionCode& out)
    : program_(program),
      module_(program.module()),
      function_(module_.functions[function]),
      out_(out) {}

uint32_t FunctionDecoder::allocate(Width width) {
    if (width == Width::kPred) {
        if (predicate_left_ == 0) {
            predicate_chunk_ = out_.frame_bytes;
            predicate_left_ = 16;
            out_.frame_bytes += 64;
        }
        return predicate_chunk_ + 4 * (16 - predicate_left_--);
    }
    const uint32_t offset = out_.frame_bytes;
    out_.frame_bytes += slot_bytes(width);
    return offset;
}

Dest FunctionDecoder::scratch(Width width) { return {allocate(width), width}; }

Dest FunctionDecoder::register_slot(Sym sym, uint8_t component) {
    const Symbol& s = module_.at(sym);
    const Width width = width_of(s.type);
    const auto it = slots_.find(sym);
    uint32_t first = 0;
    if (it == slots_.end()) {
        first = allocate(width);
        for (uint8_t i = 1; i < s.vector; ++i) allocate(width);
        slots_[sym] = first;
    } else {
        first = it->second;
    }
    return {first + (component < s.vector ? component * slot_bytes(width) : 0), width};
}

// .local and .param variables of the body, and a device function's parameters and results.
Status FunctionDecoder::place_locals() {
    const auto index = out_.function;
    const auto place = [&](Sym sym) {
        const Symbol& s = module_.at(sym);
        const uint32_t natural = std::max(1u, byte_size(s.type) * s.vector);
        const uint32_t align = std::max(s.align != 0 ? s.align : natural, 1u);
        out_.local_bytes = (out_.local_bytes + align - 1) / align * align;
        locals_[sym] = out_.local_bytes;
        out_.local_bytes += static_cast<uint32_t>(s.bytes());
    };
    const std::vector<ParamLayout> layout = param_layout(module_, function_);
    if (function_.is_entry)
        for (size_t i = 0; i < function_.params.size(); ++i)
            params_[function_.params[i]] = layout[i].offset;
    for (Sym sym = 0; sym < module_.symbols.size(); ++sym) {
        const Symbol& s = module_.at(sym);
        if (s.function != index || params_.count(sym) != 0) continue;
        const bool variable = s.kind == Symbol::Kind::kVariable || s.kind == Symbol::Kind::kParam;
        if (!variable || (s.space != Space::kLocal && s.space != Space::kParam)) continue;
        if (s.bytes() > (64u << 20))
            return make_error(ttt::Code::kUnsupported,
                              fmt::format("{}: {} bytes of local memory in {}", function_.name,
                                          s.bytes(), s.name));
        place(sym);
        if (out_.local_bytes > (64u << 20))
            return make_error(ttt::Code::kUnsupported,
                              fmt::format("{} needs more than 64 MiB of local memory per thread",
                                          function_.name));
    }
    return ok_status();
}

Status FunctionDecoder::signature() {
    if (function_.is_entry) return ok_status();
    const auto describe = [&](Sym sym) {
        Transfer t;
        if (const auto it = locals_.find(sym); it != locals_.end()) {
            t.offset = it->second;
            t.bytes = static_cast<uint32_t>(module_.at(sym).bytes());
            return t;
        }
        t.in_memory = false;
        t.dest = register_slot(sym, 4);
        t.source = {t.dest.offset, t.dest.width, 0, false};
        return t;
    };
    for (Sym sym : function_.params) out_.formals.push_back(describe(sym));
    for (Sym sym : function_.returns) out_.returns.push_back(describe(sym));
    return ok_status();
}

Status FunctionDecoder::decode() {
    out_.carry = allocate(Width::kPred);
    TTT_CHECK_OK(place_locals());
    TTT_CHECK_OK(signature());
    auto cfg = build_cfg(module_, function_);
    if (!cfg) return std::move(cfg).error().with(std::string(function_.name));
    first_op_.resize(function_.body.size() + 1);
    for (index_ = 0; index_ < function_.body.size(); ++index_) {
        first_op_[index_] = static_cast<uint32_t>(out_.ops.size());
        TTT_CHECK_OK(statement(function_.body[index_]));
    }
    first_op_[index_] = static_cast<uint32_t>(out_.ops.size());
    Op end;  // running off the end returns
    end.flow = Flow::kReturn;
    end.counted = false;
    end.stmt = function_.body.empty() ? 0 : index_ - 1;
    emit(end);
    connect(*cfg);
    weigh(function_, out_);
    return ok_status();
}

Error FunctionDecoder::unsupported(const Stmt& s) const {
    const uint32_t line = line_of(module_, s);
    Error e = make_error(
        ttt::Code::kUnsupported,
        fmt::format("the interpreter cannot execute \"{}\" in {} (line {}){}{}", print(module_, s),
                    function_.name, line, fail_.empty() ? "" : ": ", fail_));
    e.line = line;
    return e;
}

Status FunctionDecoder::statement(const Stmt& s) {
    if (s.kind != Stmt::Kind::kInstruction) return ok_status();
    fail_.clear();
    if (!instruction(s)) return unsupported(s);
    return ok_status();
}

Op FunctionDecoder::fresh(const Stmt& s) {
    Op op;
    op.stmt = index_;
    if (s.guard != kNoSym) {
        op.guard = register_slot(s.guard, 4).offset;
        op.guard_negated = s.guard_negated;
    }
    return op;
}

// Branch targets and reconvergence points, now that every statement has its first operation.
void FunctionDecoder::connect(const Cfg& cfg) {
    std::vector<uint32_t> label_op(module_.symbols.size(), kNowhere);
    for (uint32_t i = 0; i < function_.body.size(); ++i)
        if (function_.body[i].kind == Stmt::Kind::kLabel)
            label_op[function_.body[i].sym] = first_op_[i];
    for (const auto& [index, stmt] : branches_) {
        Op& op = out_.ops[index];
        if (op.flow == Flow::kBranchIndexed) {
            for (Sym label : branch_targets(function_, *stmt))
                out_.targets[op.table].push_back(label_op[label]);
        } else {
            op.target = label_op[stmt->operands[0].sym];
        }
        const BlockId meet = cfg.ipdom[cfg.block_of[op.stmt]];
        if (meet == kNoBlock) continue;
        op.join = first_op_[cfg.blocks[meet].begin];
        out_.ops[op.join].joins = true;
    }
    for (uint32_t i = 0; i + 1 < out_.ops.size(); ++i)
        if (out_.ops[i].joins_after) out_.ops[i + 1].joins = true;
}

bool FunctionDecoder::instruction(const Stmt& s) {
    switch (s.op) {
        case Opcode::kOpaque:
            return false;
        case Opcode::kMov:
            return move(s);
        case Opcode::kCvta:
            return convert_address(s);
        case Opcode::kIsspacep:
            return is_space(s);
        case Opcode::kLd:
        case Opcode::kLdu:
            return load(s);
        case Opcode::kSt:
            return store(s);
        case Opcode::kAtom:
        case Opcode::kRed:
            return atomic(s);
        case Opcode::kCp:
            return copy(s);
        case Opcode::kBra:
            return branch(s);
        case Opcode::kBrx:
            return branch_indexed(s);
        case Opcode::kCall:
            return call(s);
        case Opcode::kRet:
            return leave(s, Flow::kReturn);
        case Opcode::kExit:
            return leave(s, Flow::kExit);
        case Opcode::kTrap:
        case Opcode::kBrkpt:
            return leave(s, Flow::kTrap);
        case Opcode::kBar:
        case Opcode::kBarrier:
            return barrier(s);
        case Opcode::kPrefetch:
        case Opcode::kPrefetchu:
        case Opcode::kApplypriority:
        case Opcode::kDiscard:
        case Opcode::kMembar:
        case Opcode::kFence:
        case Opcode::kNanosleep:
        case Opcode::kPmevent:
        case Opcode::kGriddepcontrol:
        case Opcode::kSetmaxnreg:
        case Opcode::kCreatepolicy:
            return no_operation(s);
        default:
            return arithmetic(s);
    }
}

}  // namespace ttt::ptx::exec
