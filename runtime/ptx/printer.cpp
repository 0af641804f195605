#include "ptx/printer.h"

#include <cstdio>

namespace ttt::ptx {
namespace {

void print_offset(uint64_t value, std::string& out) {
    if (value == 0) return;
    out += '+';
    out += std::to_string(static_cast<int64_t>(value));
}

void print_component(const Operand& operand, std::string& out) {
    if (operand.kind == Operand::Kind::kRegister && !operand.text.empty()) {
        out += '.';
        out += operand.text;
    } else if (operand.component < 4) {
        out += '.';
        out += "xyzw"[operand.component];
    }
}

void print_list(const Module& module, const std::vector<Operand>& list, std::string& out) {
    for (size_t i = 0; i < list.size(); ++i) {
        if (i > 0) out += ", ";
        print_operand(module, list[i], out);
    }
}

void print_address(const Module& module, const Operand& operand, std::string& out) {
    out += '[';
    if (!operand.elems.empty()) {
        print_list(module, operand.elems, out);
    } else if (operand.sym != kNoSym || !operand.text.empty()) {
        out += operand.sym != kNoSym ? module.at(operand.sym).name : operand.text;
        if (operand.component < 4) {
            out += '.';
            out += "xyzw"[operand.component];
        }
        print_offset(operand.value, out);
    } else {
        out += std::to_string(operand.value);
    }
    out += ']';
}

void print_immediate(const Operand& operand, std::string& out) {
    if (!operand.text.empty()) {
        out += operand.text;
        return;
    }
    char digits[32];
    const auto value = static_cast<unsigned long long>(operand.value);
    switch (operand.literal) {
        case Operand::Literal::kF32:
            std::snprintf(digits, sizeof digits, "0f%08llX", value & 0xFFFFFFFFu);
            break;
        case Operand::Literal::kF64:
            std::snprintf(digits, sizeof digits, "0d%016llX", value);
            break;
        case Operand::Literal::kInt:
            std::snprintf(digits, sizeof digits, "%lld", static_cast<long long>(value));
            break;
    }
    out += digits;
}

void print_instruction(const Module& module, const Stmt& stmt, std::string& out) {
    if (stmt.guard != kNoSym) {
        out += stmt.guard_negated ? "@!" : "@";
        out += module.at(stmt.guard).name;
        out += ' ';
    }
    if (stmt.op == Opcode::kOpaque) {
        out += stmt.text;
        return;
    }
    out += info(stmt.op).spelling;
    for (uint8_t i = 0; i < stmt.mod_count; ++i) {
        out += '.';
        out += spelling(stmt.mods[i]);
    }
    if (!stmt.operands.empty()) out += ' ';
    print_list(module, stmt.operands, out);
    out += ';';
}

void print_stmt(const Module& module, const Stmt& stmt, std::string& out) {
    switch (stmt.kind) {
        case Stmt::Kind::kInstruction:
            print_instruction(module, stmt, out);
            break;
        case Stmt::Kind::kLabel:
            out += module.at(stmt.sym).name;
            out += ':';
            break;
        case Stmt::Kind::kScopeBegin:
            out += '{';
            break;
        case Stmt::Kind::kScopeEnd:
            out += '}';
            break;
        case Stmt::Kind::kRegisters:
        case Stmt::Kind::kVariable:
            out += stmt.text;
            break;
        case Stmt::Kind::kDirective:
            if (stmt.operands.empty()) {
                out += stmt.text;
                break;
            }
            // .branchtargets: labels may have been renamed or moved since they were read.
            out += stmt.text.substr(0, stmt.text.find_first_of(" \t\r\n/"));
            out += ' ';
            print_list(module, stmt.operands, out);
            out += ';';
            break;
    }
}

void print_fresh_registers(const Module& module, const Function& function, std::string& out) {
    for (Sym sym : function.fresh_registers) {
        const Symbol& symbol = module.at(sym);
        out += "\t.reg .";
        out += spelling(symbol.type);
        out += ' ';
        out += symbol.name;
        out += ";\n";
    }
}

}  // namespace

void print_operand(const Module& module, const Operand& operand, std::string& out) {
    if (operand.negated) out += '!';
    switch (operand.kind) {
        case Operand::Kind::kRegister:
            out += module.at(operand.sym).name;
            print_component(operand, out);
            print_offset(operand.value, out);
            break;
        case Operand::Kind::kSpecial:
            out += '%';
            out += operand.text;
            print_component(operand, out);
            break;
        case Operand::Kind::kImmediate:
            print_immediate(operand, out);
            break;
        case Operand::Kind::kSymbol:
            out += operand.sym != kNoSym ? module.at(operand.sym).name : operand.text;
            print_offset(operand.value, out);
            break;
        case Operand::Kind::kAddress:
            print_address(module, operand, out);
            break;
        case Operand::Kind::kVector:
            out += '{';
            print_list(module, operand.elems, out);
            out += '}';
            break;
        case Operand::Kind::kTuple:
            out += '(';
            print_list(module, operand.elems, out);
            out += ')';
            break;
        case Operand::Kind::kPair:
            print_operand(module, operand.elems[0], out);
            out += '|';
            print_operand(module, operand.elems[1], out);
            break;
        case Operand::Kind::kSink:
            out += '_';
            break;
        case Operand::Kind::kText:
            out += operand.text;
            break;
    }
}

void print_function(const Module& module, const Function& function, std::string& out) {
    out += function.header_text;
    out += '\n';
    for (const Directive& d : function.directives) {
        out += d.text;
        out += '\n';
    }
    if (!function.has_body) {
        out += ";\n";
        return;
    }
    out += "{\n";
    print_fresh_registers(module, function, out);
    for (const Stmt& s : function.body) {
        const bool indented = s.kind != Stmt::Kind::kLabel && !s.text.starts_with('#');
        if (indented) out += '\t';
        print_stmt(module, s, out);
        out += '\n';
    }
    out += "}\n";
}

std::string print(const Module& module, const Stmt& stmt) {
    std::string out;
    print_stmt(module, stmt, out);
    return out;
}

std::string print(const Module& module) {
    std::string out;
    if (module.source != nullptr) out.reserve(module.source->size() + module.source->size() / 8);
    out += ".version " + std::to_string(module.version_major) + "." +
           std::to_string(module.version_minor) + "\n";
    if (!module.target.empty()) (out += ".target ").append(module.target) += '\n';
    if (module.has_address_size)
        out += ".address_size " + std::to_string(module.address_size) + "\n";
    for (const Item& item : module.items) {
        switch (item.kind) {
            case Item::Kind::kFunction:
                print_function(module, module.functions[item.index], out);
                break;
            case Item::Kind::kVariable:
                out += module.variables[item.index].text;
                out += '\n';
                break;
            case Item::Kind::kText:
                out += item.text;
                out += '\n';
                break;
        }
    }
    return out;
}

}  // namespace ttt::ptx
