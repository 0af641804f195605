#include <algorithm>

#include "ptx/dataflow.h"

namespace ttt::ptx {
namespace {

void collect_registers(const Module* module, const Operand& operand, std::vector<Sym>& out) {
    switch (operand.kind) {
        case Operand::Kind::kRegister:
            out.push_back(operand.sym);
            break;
        case Operand::Kind::kAddress:
            if (module != nullptr && operand.sym != kNoSym &&
                module->at(operand.sym).kind == Symbol::Kind::kRegister) {
                out.push_back(operand.sym);
            }
            break;
        case Operand::Kind::kVector:
        case Operand::Kind::kTuple:
        case Operand::Kind::kPair:
            for (const Operand& elem : operand.elems) collect_registers(module, elem, out);
            break;
        default:
            break;
    }
}

}  // namespace

std::vector<uint32_t> call_closure(const Module& module, const Function& entry) {
    std::vector<uint32_t> out{static_cast<uint32_t>(&entry - module.functions.data())};
    for (size_t next = 0; next < out.size(); ++next) {
        for (const Stmt& stmt : module.functions[out[next]].body) {
            if (!stmt.is(Opcode::kCall)) continue;
            for (const Operand& operand : stmt.operands) {
                if (operand.kind != Operand::Kind::kSymbol || operand.sym == kNoSym) continue;
                if (module.at(operand.sym).kind != Symbol::Kind::kFunction) continue;
                for (uint32_t f = 0; f < module.functions.size(); ++f) {
                    const Function& callee = module.functions[f];
                    // A declaration and its definition may be two symbols of one name.
                    if (!callee.has_body || callee.name != module.at(operand.sym).name) continue;
                    if (std::find(out.begin(), out.end(), f) == out.end()) out.push_back(f);
                }
            }
        }
    }
    return out;
}

void written_registers(const Stmt& stmt, std::vector<Sym>& out) {
    out.clear();
    if (stmt.kind != Stmt::Kind::kInstruction) return;
    if (stmt.op == Opcode::kCall) {  // results are the tuple before the callee's name
        if (!stmt.operands.empty() && stmt.operands.size() > 1 &&
            stmt.operands[0].kind == Operand::Kind::kTuple) {
            collect_registers(nullptr, stmt.operands[0], out);
        }
        return;
    }
    const size_t dests = dest_count(stmt);
    for (size_t i = 0; i < dests && i < stmt.operands.size(); ++i) {
        collect_registers(nullptr, stmt.operands[i], out);
    }
}

void read_registers(const Module& module, const Stmt& stmt, std::vector<Sym>& out) {
    out.clear();
    if (stmt.kind != Stmt::Kind::kInstruction) return;
    if (stmt.guard != kNoSym) out.push_back(stmt.guard);
    const size_t dests = dest_count(stmt);
    for (size_t i = 0; i < stmt.operands.size(); ++i) {
        if (i < dests && stmt.op != Opcode::kWgmma) continue;
        if (i == 0 && stmt.op == Opcode::kCall && stmt.operands.size() > 1 &&
            stmt.operands[0].kind == Operand::Kind::kTuple) {
            continue;
        }
        collect_registers(&module, stmt.operands[i], out);
    }
}

bool is_rounded(const Stmt& stmt) {
    for (Mod m : {Mod::kRn, Mod::kRz, Mod::kRm, Mod::kRp, Mod::kRna, Mod::kRs}) {
        if (stmt.has(m)) return true;
    }
    return false;
}

bool is_unrounded_float(const Stmt& stmt) {
    if (stmt.kind != Stmt::Kind::kInstruction) return false;
    switch (stmt.op) {
        case Opcode::kMul:
        case Opcode::kAdd:
        case Opcode::kSub:
        case Opcode::kMad:
            return is_float(stmt.type()) && !is_rounded(stmt);
        default:
            return false;
    }
}

bool is_approximate(const Stmt& stmt) {
    return stmt.kind == Stmt::Kind::kInstruction &&
           (stmt.has(Mod::kApprox) || stmt.has(Mod::kFull) || stmt.op == Opcode::kTanh);
}

namespace {

bool may_be_global(Space space) {
    return space == Space::kGlobal || space == Space::kGeneric || space == Space::kConst;
}

}  // namespace

bool classify_access(const Stmt& stmt, size_t k, Access& access) {
    const Space space = stmt.space();
    access.bytes = byte_size(stmt.last_type());
    if (stmt.has(Mod::kV2)) access.bytes *= 2;
    if (stmt.has(Mod::kV4)) access.bytes *= 4;
    if (stmt.has(Mod::kV8)) access.bytes *= 8;
    switch (stmt.op) {
        case Opcode::kLd:
        case Opcode::kLdu:
            access.read = true;
            access.noncoherent = stmt.has(Mod::kNc) || stmt.op == Opcode::kLdu;
            return may_be_global(space);
        case Opcode::kSt:
            access.written = true;
            return may_be_global(space);
        case Opcode::kAtom:
        case Opcode::kRed:
            access.read = access.written = access.atomic = true;
            return may_be_global(space);
        case Opcode::kCp:
            access.read = true;
            access.written = stmt.has(Mod::kBulk);
            return stmt.has(Mod::kBulk) || k == 1;
        default:  // unknown ways to touch memory count as both
            access.read = access.written = true;
            return space != Space::kShared && space != Space::kLocal && space != Space::kParam;
    }
}

}  // namespace ttt::ptx
