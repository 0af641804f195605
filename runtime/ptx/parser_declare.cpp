#include <algorithm>

#include "ptx/parser.h"
#include "ptx/words.h"

namespace ttt::ptx {

bool Parser::declare(const Symbol& symbol, Sym& sym) {
    const Sym known = scopes_.find_here(symbol.name);
    if (known == kNoSym || symbol.name == "_") {
        sym = module_.add_symbol(symbol);
        scopes_.declare(symbol.name, sym);
        return true;
    }
    // Only module-level variables may be declared more than once (.extern, then the definition).
    if (function_ != kNoFunction || module_.symbols[known].kind != symbol.kind)
        return fail_at(static_cast<uint32_t>(symbol.name.data() - source_->data()),
                       "name declared twice in one scope");
    module_.symbols[known] = symbol;
    sym = known;
    return true;
}

bool Parser::parse_align(uint32_t& align) {
    uint64_t value = 0;
    const uint32_t begin = token_.begin;
    if (!parse_unsigned(value, "an alignment")) return false;
    if (value == 0 || (value & (value - 1)) != 0 || value > (uint64_t{1} << 30))
        return fail_at(begin, "alignment is no power of two");
    align = static_cast<uint32_t>(value);
    return true;
}

bool Parser::parse_shape_word(Shape& shape) {
    const Name word = token_.text;
    advance();
    if (word == "align") return parse_align(shape.align);
    if (word == "attribute") return !at('(') || skip_group();
    if (word == "v2" || word == "v4" || word == "v8") {
        shape.vector = static_cast<uint8_t>(word[1] - '0');
    } else if (word == "ptr") {
        shape.pointer = true;
        while (at_dot()) {
            const Name attribute = token_.text;
            advance();
            uint32_t pointee_align = 0;
            if (attribute == "align") {
                if (!parse_align(pointee_align)) return false;
            } else {
                shape.pointer_space = space_of(find_mod(attribute));
            }
        }
    } else if (const Type type = find_type(word); type != Type::kNone) {
        shape.type = type;
    } else {
        shape.known = false;
    }
    return true;
}

bool Parser::parse_shape(Shape& shape) {
    const uint32_t begin = token_.begin;
    while (at_dot())
        if (!parse_shape_word(shape)) return false;
    if (shape.type != Type::kNone && shape.known) return true;
    if (!future_) return fail_at(begin, "expected a known type in the declaration");
    ++module_.opaque_count;
    return true;
}

bool Parser::parse_dimensions(std::vector<uint64_t>& extents) {
    while (take('[')) {
        uint64_t extent = 0;
        if (!at(']')) {
            Constant value;
            const uint32_t begin = token_.begin;
            if (!parse_constant(value, 0)) return false;
            if (value.literal != Operand::Literal::kInt || value.bits > (uint64_t{1} << 40))
                return fail_at(begin, "array extent out of range");
            extent = value.bits;
        }
        if (!expect(']', "after the array extent")) return false;
        extents.push_back(extent);
        if (extents.size() > 16) return fail("more than 16 array dimensions");
    }
    return true;
}

bool Parser::parse_parameters(std::vector<Sym>& out) {
    if (!expect('(', "before the parameters")) return false;
    if (take(')')) return true;
    do {
        if (!parse_parameter(out)) return false;
    } while (take(','));
    return expect(')', "after the parameters");
}

bool Parser::parse_parameter(std::vector<Sym>& out) {
    if (!at_dot()) return unexpected("a parameter declaration");
    const bool in_register = token_.text == "reg";
    if (!in_register && token_.text != "param") return unexpected("'.param' or '.reg'");
    advance();
    Shape shape;
    if (!parse_shape(shape)) return false;
    if (token_.kind != Kind::kWord) return unexpected("a parameter name");
    Symbol symbol;
    symbol.kind = in_register ? Symbol::Kind::kRegister : Symbol::Kind::kParam;
    symbol.space = in_register ? Space::kReg : Space::kParam;
    symbol.type = shape.type;
    symbol.vector = shape.vector;
    symbol.align = shape.align;
    symbol.pointer_attr = shape.pointer;
    symbol.pointer_space = shape.pointer_space;
    symbol.name = token_.text;
    symbol.function = function_;
    advance();
    std::vector<uint64_t> extents;
    if (!parse_dimensions(extents)) return false;
    for (uint64_t e : extents) symbol.elements *= e;
    Sym sym = kNoSym;
    if (!declare(symbol, sym)) return false;
    out.push_back(sym);
    return true;
}

bool Parser::parse_registers(Stmt& stmt) {
    const uint32_t begin = token_.begin;
    stmt.kind = Stmt::Kind::kRegisters;
    advance();
    Shape shape;
    if (!parse_shape(shape)) return false;
    do {
        if (!parse_register_name(shape)) return false;
    } while (take(','));
    if (!expect(';', "after the register declaration")) return false;
    stmt.text = slice(begin);
    return true;
}

bool Parser::parse_register_name(const Shape& shape) {
    if (token_.kind != Kind::kWord) return unexpected("a register name");
    const Name name = token_.text;
    advance();
    if (take('<')) {
        RegisterRange range{name, 0, shape.type, shape.vector};
        if (!parse_unsigned(range.count, "a register count")) return false;
        if (!expect('>', "after the register count")) return false;
        scopes_.declare_range(range);
        return true;
    }
    Symbol symbol;
    symbol.kind = Symbol::Kind::kRegister;
    symbol.space = Space::kReg;
    symbol.type = shape.type;
    symbol.vector = shape.vector;
    symbol.name = name;
    symbol.function = function_;
    Sym sym = kNoSym;
    return declare(symbol, sym);
}

bool Parser::parse_variables(Space space, Name linkage, Sym& first) {
    Shape shape;
    if (!parse_shape(shape)) return false;
    do {
        if (token_.kind != Kind::kWord) return unexpected("a variable name");
        Symbol symbol;
        symbol.kind = Symbol::Kind::kVariable;
        symbol.space = space;
        symbol.type = shape.type;
        symbol.vector = shape.vector;
        symbol.align = shape.align;
        symbol.name = token_.text;
        symbol.function = function_;
        advance();
        std::vector<uint64_t> extents;
        if (!parse_dimensions(extents)) return false;
        for (uint64_t e : extents) symbol.elements *= e;
        Variable variable;
        variable.linkage = linkage;
        if (!declare(symbol, variable.sym)) return false;
        if (first == kNoSym) first = variable.sym;
        if (take('=') && !parse_initialiser(variable, extents)) return false;
        // `int a[] = {…}`: the initialiser gives the extent.
        if (symbol.elements == 0 && variable.initialised && shape.vector == 1)
            module_.symbols[variable.sym].elements = variable.init.size();
        const bool stored = space == Space::kGlobal || space == Space::kConst;
        if (function_ == kNoFunction || variable.initialised || stored)
            module_.variables.push_back(std::move(variable));
    } while (take(','));
    return expect(';', "after the variable declaration");
}

}  // namespace ttt::ptx
