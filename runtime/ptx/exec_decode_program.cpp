// Reachable functions, shared memory, constants and the local memory a thread can need.
#include <fmt/format.h>

#include <algorithm>

#include "ptx/exec_decode.h"

namespace ttt::ptx::exec {

uint32_t line_of(const Module& module, const Stmt& stmt) {
    if (!module.source || stmt.offset >= module.source->size()) return 0;
    const auto end = module.source->begin() + static_cast<std::ptrdiff_t>(stmt.offset);
    return 1 + static_cast<uint32_t>(std::count(module.source->begin(), end, '\n'));
}

Width width_of(Type type) {
    switch (bit_size(type)) {
        case 1:
            return Width::kPred;
        case 8:
        case 16:
            return Width::kHalf;
        case 64:
            return Width::kLong;
        case 128:
            return Width::kQuad;
        default:
            return Width::kWord;
    }
}

Source ProgramDecoder::constant(Width width, uint64_t bits) {
    const auto key = std::make_pair(width, bits);
    if (const auto it = constants_.find(key); it != constants_.end()) return it->second;
    const auto offset = static_cast<uint32_t>(out_.constants.size());
    out_.constants.resize(offset + std::max(64u, slot_bytes(width)));
    std::byte* slot = out_.constants.data() + offset;
    const uint32_t all = width == Width::kPred && (bits & 1) != 0 ? ~0u : 0;
    if (width == Width::kPred) std::memcpy(slot, &all, sizeof all);
    const uint32_t bytes = slot_bytes(width) / kLanes;
    for (uint32_t i = 0; width != Width::kPred && i < kLanes; ++i)
        std::memcpy(slot + uint64_t{i} * bytes, &bits, std::min(bytes, 8u));
    return constants_[key] = Source{offset, width, 1, false};
}

uint64_t ProgramDecoder::shared_offset(Sym sym) const {
    const auto it = shared_.find(sym);
    return it == shared_.end() ? 0 : it->second;
}

void ProgramDecoder::place_shared(Sym sym) {
    if (shared_.count(sym) != 0) return;
    const Symbol& s = module().at(sym);
    const uint32_t natural = std::max(1u, byte_size(s.type) * s.vector);
    const uint32_t align = std::max(s.align != 0 ? s.align : natural, 1u);
    if (s.elements == 0) {
        shared_[sym] = ~uint64_t{0};  // placed once all static variables are
        return;
    }
    out_.static_shared = (out_.static_shared + align - 1) / align * align;
    shared_[sym] = out_.static_shared;
    out_.static_shared += static_cast<uint32_t>(s.bytes());
}

void ProgramDecoder::reach(uint32_t function, std::vector<uint32_t>& work) {
    if (out_.code_of[function] != kNowhere) return;
    out_.code_of[function] = static_cast<uint32_t>(out_.codes.size());
    out_.codes.emplace_back();
    out_.codes.back().function = function;
    out_.codes.back().is_entry = module().functions[function].is_entry;
    work.push_back(function);
}

void ProgramDecoder::scan_operand(const Operand& operand, std::vector<uint32_t>& work) {
    for (const Operand& e : operand.elems) scan_operand(e, work);
    if (operand.sym == kNoSym) return;
    const Symbol& s = module().at(operand.sym);
    if (s.kind == Symbol::Kind::kFunction) {
        const uint32_t f = loaded_.function_of(operand.sym);
        if (f != kNoSym) reach(f, work);
    } else if (s.kind == Symbol::Kind::kVariable && s.space == Space::kShared) {
        place_shared(operand.sym);
    }
}

void ProgramDecoder::scan(uint32_t function, std::vector<uint32_t>& work) {
    for (const Stmt& s : module().functions[function].body) {
        for (const Operand& o : s.operands) scan_operand(o, work);
        if (!s.is(Opcode::kCall)) continue;
        const size_t target =
            !s.operands.empty() && s.operands[0].kind == Operand::Kind::kTuple ? 1 : 0;
        if (target < s.operands.size() && s.operands[target].kind == Operand::Kind::kRegister)
            indirect_ = true;
    }
}

void ProgramDecoder::discover(uint32_t entry) {
    std::vector<uint32_t> work;
    reach(entry, work);
    bool all_reached = false;
    while (!work.empty()) {
        const uint32_t f = work.back();
        work.pop_back();
        scan(f, work);
        // An address read from memory may be that of any function.
        for (uint32_t i = 0; indirect_ && !all_reached && i < module().functions.size(); ++i) {
            const Function& candidate = module().functions[i];
            if (candidate.has_body && !candidate.is_entry) reach(i, work);
        }
        all_reached = all_reached || indirect_;
    }
    const uint32_t end = (out_.static_shared + 15) / 16 * 16;
    for (auto& [sym, offset] : shared_)
        if (offset == ~uint64_t{0}) offset = end;
}

// Bytes of local memory from this function's frame to the end of the deepest chain of calls.
uint32_t ProgramDecoder::deepest(uint32_t code, std::vector<uint32_t>& state, bool& recursive) {
    constexpr uint32_t kOpen = ~0u - 1, kUnknown = ~0u;
    if (state[code] == kOpen) recursive = true;
    if (state[code] != kUnknown) return state[code] == kOpen ? 0 : state[code];
    state[code] = kOpen;
    uint32_t below = 0;
    for (const Call& call : out_.codes[code].calls) {
        if (call.system) continue;
        if (call.callee != kNowhere) {
            below = std::max(below, deepest(out_.code_of[call.callee], state, recursive));
            continue;
        }
        for (uint32_t i = 0; i < out_.codes.size(); ++i)
            if (!out_.codes[i].is_entry) below = std::max(below, deepest(i, state, recursive));
    }
    return state[code] = (out_.codes[code].local_bytes + 15) / 16 * 16 + below;
}

void ProgramDecoder::size_local_memory() {
    std::vector<uint32_t> state(out_.codes.size(), ~0u);
    bool recursive = false;
    const uint32_t straight = deepest(0, state, recursive);
    uint32_t largest = 0;
    for (const FunctionCode& c : out_.codes)
        largest = std::max(largest, (c.local_bytes + 15) / 16 * 16);
    // A recursing thread gets 64 KiB of stack at most: beyond that its calls fault.
    out_.local_bytes = recursive ? straight + std::min(largest * kMostCalls, 64u << 10) : straight;
}

Status ProgramDecoder::decode(uint32_t entry) {
    out_.loaded = &loaded_;
    out_.code_of.assign(module().functions.size(), kNowhere);
    for (const Directive& d : module().functions[entry].directives)
        if (d.name == "reqnctapercluster" || d.name == "explicitcluster")
            return make_error(ttt::Code::kUnsupported,
                              fmt::format("{}: thread block clusters are not supported",
                                          module().functions[entry].name));
    discover(entry);
    out_.constants.resize(64);
    for (uint32_t i = 0; i < out_.codes.size(); ++i) {
        FunctionDecoder decoder(*this, out_.codes[i].function, out_.codes[i]);
        TTT_CHECK_OK(decoder.decode());
    }
    size_local_memory();
    for (const ParamLayout& p : param_layout(module(), module().functions[entry]))
        out_.parameter_bytes = std::max(out_.parameter_bytes, p.offset + p.size);
    return ok_status();
}

Result<std::unique_ptr<ProgramCode>> decode_program(const PlacedModule& loaded, uint32_t entry) {
    auto program = std::make_unique<ProgramCode>();
    ProgramDecoder decoder(loaded, *program);
    TTT_CHECK_OK(decoder.decode(entry));
    return program;
}

}  // namespace ttt::ptx::exec
