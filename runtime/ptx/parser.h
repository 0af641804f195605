// The parser behind ptx::parse: recursive descent over one token of look-ahead, one pass, linear.
// Included only by parser*.cpp. The first fault stops everything: each step returns false after
// fail() has recorded it.
//
// parser.cpp          module level: directives, functions, variables, resolving what was used
// before its declaration parser_declare.cpp  declarations of registers, parameters and variables
// parser_body.cpp     statements of a function body
// parser_operand.cpp  operands
// parser_constant.cpp literals, constant expressions, initialisers
#pragma once

#include <optional>

#include "ptx/ir.h"
#include "ptx/lexer.h"
#include "ptx/scope.h"

namespace ttt::ptx {

// The newest language version whose every word we know; text of a newer one is parsed by structure.
inline constexpr uint32_t kKnownMajor = 9, kKnownMinor = 0;

struct Constant {
    Operand::Literal literal = Operand::Literal::kInt;
    uint64_t bits = 0;
};

class Parser {
  public:
    Parser(std::shared_ptr<const std::string> source, const Limits& limits);
    Result<Module> run();

  private:
    using Kind = Token::Kind;
    static constexpr int kProductLevel = 11;
    static constexpr uint32_t kNoFunction = 0xFFFFFFFFu;

    // Tokens. `token_` is the one not consumed yet; `last_end_` where the last consumed one ended.
    void advance() {
        last_end_ = token_.end;
        token_ = lexer_.next();
    }
    bool at(char c) const { return token_.is(c); }
    bool at_dot() const { return token_.kind == Kind::kDot; }
    bool take(char c);
    bool expect(char c, const char* where);
    Token peek();                      // the token after token_
    Name slice(uint32_t begin) const;  // source from `begin` to the end of the last consumed token
    bool on_new_line() const;          // token_ is the first on its line
    bool fail(std::string_view what) { return fail_at(token_.begin, what); }
    bool fail_at(uint32_t offset, std::string_view what);
    bool unexpected(const char* wanted);
    bool deeper(uint32_t& depth);

    // Module level.
    bool parse_module();
    bool parse_version();
    bool parse_target();
    bool parse_address_size();
    bool parse_top_item();
    bool parse_text_item();
    bool parse_function(uint32_t begin, Name linkage);
    bool parse_function_header(Function& f, uint32_t begin);
    bool parse_function_directives(Function& f);
    bool parse_directive(Directive& directive);
    bool parse_module_variable(uint32_t begin, Name linkage);
    bool skip_unknown();  // from a directive's word to its end
    bool skip_group();    // token_ opens a bracket: to its partner
    void add_item(Item::Kind kind, size_t index, Name text);
    Sym function_symbol(Name name);
    bool resolve_at_end();

    // Declarations.
    struct Shape {  // what precedes the name: .align, .vN, type, attributes
        Type type = Type::kNone;
        bool known = true;
        uint8_t vector = 1;
        uint32_t align = 0;
        bool pointer = false;
        Space pointer_space = Space::kGeneric;
    };
    bool parse_shape(Shape& shape);
    bool parse_shape_word(Shape& shape);
    bool parse_align(uint32_t& align);
    bool parse_parameters(std::vector<Sym>& out);
    bool parse_parameter(std::vector<Sym>& out);
    bool parse_dimensions(std::vector<uint64_t>& extents);
    bool parse_registers(Stmt& stmt);
    bool parse_register_name(const Shape& shape);
    // Declares every variable of the statement; initialised ones (and all at module level) go to
    // Module::variables.
    bool parse_variables(Space space, Name linkage, Sym& first);
    bool declare(const Symbol& symbol, Sym& sym);

    // Bodies.
    bool parse_body(Function& f);
    bool parse_statement(Function& f);
    bool parse_dot_statement(Stmt& stmt);
    bool parse_loc(Stmt& stmt);
    bool parse_target_list(Stmt& stmt);
    bool at_label();
    bool parse_label(Stmt& stmt);
    bool parse_guard(Stmt& stmt);
    bool parse_instruction(Stmt& stmt);
    bool parse_opaque(Stmt& stmt, uint32_t begin);
    bool open_scope(Stmt& stmt);
    bool close_scope(Stmt& stmt);
    void commit(Function& f, Stmt&& stmt);
    void collect_pending(std::vector<Operand>& operands);
    void resolve_scope(bool last);

    // Operands.
    bool parse_operands(Stmt& stmt);
    bool parse_operand(Operand& operand, uint32_t depth);
    bool parse_primary(Operand& operand, uint32_t depth);
    bool parse_list(Operand& operand, char close, uint32_t depth);
    bool parse_address(Operand& operand, uint32_t depth);
    bool parse_word_operand(Operand& operand);
    bool parse_register(Operand& operand, Name name);
    bool parse_component(Operand& operand);
    bool parse_addend(uint64_t& value);
    bool parse_immediate(Operand& operand);
    bool is_plain_end() const;

    // Constants.
    bool parse_constant(Constant& value, uint32_t depth);
    bool parse_binary(Constant& value, int min_level, uint32_t depth);
    bool parse_unary(Constant& value, uint32_t depth);
    bool parse_literal(Constant& value);
    bool parse_cast(Constant& value, uint32_t depth);
    bool parse_unsigned(uint64_t& value, const char* what);
    bool parse_initialiser(Variable& variable, const std::vector<uint64_t>& extents);
    bool parse_init_list(Variable& v, const std::vector<uint64_t>& strides, size_t level);
    bool parse_init_element(Variable& v);
    bool parse_init_symbol(Variable& v, Init& init);

    std::shared_ptr<const std::string> source_;
    Limits limits_;
    Lexer lexer_;
    Token token_;
    uint32_t last_end_ = 0;
    Module module_;
    Scopes scopes_;
    std::optional<Error> error_;
    bool future_ = false;  // .version is newer than we know: unknown names are kept, not refused

    uint32_t function_ = kNoFunction;
    bool in_call_ = false;  // parentheses are argument lists, not constants
    std::vector<Operand> scratch_;
    // Names used before their declaration. Pointers stay valid: operand arrays do not move once
    // committed.
    std::vector<Operand*> pending_;
    std::vector<size_t> pending_start_;  // per open scope
    struct PendingInit {
        uint32_t variable = 0, element = 0;
        Name name;
    };
    std::vector<PendingInit> pending_inits_;
    uint64_t padding_ = 0;  // initialiser elements that no text stands for
};

}  // namespace ttt::ptx
