#include "ptx/parser.h"

#include <algorithm>
#include <cstdio>

#include "ptx/words.h"

namespace ttt::ptx {
namespace {

bool is_linkage(std::string_view word) {
    return word == "visible" || word == "extern" || word == "weak" || word == "common";
}

// Space of a module-level variable directive; kGeneric when the word is none.
Space variable_space(std::string_view word) {
    if (word == "global") return Space::kGlobal;
    if (word == "const") return Space::kConst;
    if (word == "shared") return Space::kShared;
    if (word == "local") return Space::kLocal;
    if (word == "param") return Space::kParam;
    if (word == "tex") return Space::kTex;
    return Space::kGeneric;
}

std::string shown(std::string_view token) {
    std::string text(token.substr(0, 40));
    for (char& c : text)
        if (static_cast<unsigned char>(c) < 32 || static_cast<unsigned char>(c) > 126) c = '?';
    return token.size() > 40 ? text + "..." : text;
}

}  // namespace

Parser::Parser(std::shared_ptr<const std::string> source, const Limits& limits)
    : source_(std::move(source)),
      limits_(limits),
      lexer_(*source_),
      scopes_(module_.symbols, module_.names) {
    module_.source = source_;
    module_.has_address_size = false;
}

Result<Module> Parser::run() {
    advance();
    if (!parse_module() && !error_) fail("internal: parse stopped without a reason");
    if (error_) return std::move(*error_);
    return std::move(module_);
}

bool Parser::take(char c) {
    if (!at(c)) return false;
    advance();
    return true;
}

bool Parser::expect(char c, const char* where) {
    if (take(c)) return true;
    const char wanted[] = {'\'', c, '\'', 0};
    return unexpected((std::string(wanted) + " " + where).c_str());
}

Token Parser::peek() {
    Lexer ahead = lexer_;
    return ahead.next();
}

Name Parser::slice(uint32_t begin) const { return Name(*source_).substr(begin, last_end_ - begin); }

bool Parser::on_new_line() const {
    const auto gap = Name(*source_).substr(last_end_, token_.begin - last_end_);
    return gap.find('\n') != Name::npos;
}

bool Parser::fail_at(uint32_t offset, std::string_view what) {
    if (error_) return false;
    const Name before = Name(*source_).substr(0, offset);
    const size_t line_start = before.rfind('\n') + 1;  // npos + 1 == 0
    Error error = make_error(Code::kParse, "");
    error.line = static_cast<uint32_t>(std::count(before.begin(), before.end(), '\n')) + 1;
    error.column = static_cast<uint32_t>(offset - line_start) + 1;
    error.message = std::string(what);
    error_ = std::move(error);
    return false;
}

bool Parser::unexpected(const char* wanted) {
    const std::string found =
        token_.kind == Kind::kEnd ? "the end of the text" : "'" + shown(token_.text) + "'";
    return fail(std::string("expected ") + wanted + ", found " + found);
}

bool Parser::deeper(uint32_t& depth) {
    if (++depth <= limits_.max_depth) return true;
    return fail("nested deeper than " + std::to_string(limits_.max_depth));
}

bool Parser::parse_module() {
    if (!parse_version()) return false;
    while (token_.kind != Kind::kEnd)
        if (!parse_top_item()) return false;
    return resolve_at_end();
}

bool Parser::parse_version() {
    if (!token_.is_dot("version")) return unexpected("'.version' as the first directive");
    advance();
    unsigned major = 0, minor = 0;
    const std::string text(token_.text.substr(0, 16));
    if (token_.kind != Kind::kNumber || std::sscanf(text.c_str(), "%u.%u", &major, &minor) != 2)
        return unexpected("a version number such as 9.0");
    module_.version_major = major;
    module_.version_minor = minor;
    future_ = major > kKnownMajor || (major == kKnownMajor && minor > kKnownMinor);
    advance();
    return true;
}

bool Parser::parse_target() {
    advance();
    const uint32_t begin = token_.begin;
    do {
        if (token_.kind != Kind::kWord) return unexpected("a target such as sm_90");
        advance();
    } while (take(','));
    module_.target = slice(begin);
    return true;
}

bool Parser::parse_address_size() {
    advance();
    uint64_t size = 0;
    const uint32_t begin = token_.begin;
    if (!parse_unsigned(size, "an address size")) return false;
    if (size != 32 && size != 64) return fail_at(begin, ".address_size must be 32 or 64");
    module_.address_size = static_cast<uint32_t>(size);
    module_.has_address_size = true;
    return true;
}

bool Parser::parse_top_item() {
    if (take(';')) return true;
    if (!at_dot()) {
        // Old front ends write "@@DWARF" lines and preprocessor lines: text to the end of the line.
        if (at('@') || at('#')) return parse_text_item();
        return unexpected("a directive");
    }
    if (token_.is_dot("version")) return fail("second .version directive");
    if (token_.is_dot("target") && module_.target.empty()) return parse_target();
    if (token_.is_dot("address_size")) return parse_address_size();
    const uint32_t begin = token_.begin;
    Name linkage;
    if (is_linkage(token_.text)) {
        linkage = token_.text;
        advance();
        if (!at_dot()) return unexpected("a declaration after the linkage directive");
    }
    if (token_.is_dot("entry") || token_.is_dot("func")) return parse_function(begin, linkage);
    if (variable_space(token_.text) != Space::kGeneric)
        return parse_module_variable(begin, linkage);
    if (!linkage.empty()) return unexpected("a function or variable after the linkage directive");
    return parse_text_item();
}

bool Parser::parse_text_item() {
    static constexpr std::string_view kKnown[] = {"file",  "section", "pragma",
                                                  "alias", "loc",     "target"};
    const uint32_t begin = token_.begin;
    const bool known =
        std::find(std::begin(kKnown), std::end(kKnown), token_.text) != std::end(kKnown);
    if (!known) ++module_.opaque_count;
    if (!skip_unknown()) return false;
    add_item(Item::Kind::kText, 0, slice(begin));
    return true;
}

// To ';', to the partner of the first '{', or to a line that starts with a directive: whatever
// comes first.
bool Parser::skip_unknown() {
    const bool line_only = at('@') || at('#');
    advance();
    while (token_.kind != Kind::kEnd) {
        if (line_only && on_new_line()) return true;
        if (at(';')) {
            advance();
            return true;
        }
        if (at('{')) return skip_group();
        if (at('}')) return true;
        if (at_dot() && on_new_line()) return true;
        if (token_.kind == Kind::kBad) return unexpected("a directive's operand");
        if (at('(') || at('[')) {
            if (!skip_group()) return false;
        } else {
            advance();
        }
    }
    return true;
}

bool Parser::skip_group() {
    std::vector<char> closers;
    const uint32_t begin = token_.begin;
    do {
        if (token_.kind == Kind::kEnd) return fail_at(begin, "bracket is never closed");
        if (token_.kind == Kind::kBad) return unexpected("text inside brackets");
        if (at('{')) closers.push_back('}');
        if (at('(')) closers.push_back(')');
        if (at('[')) closers.push_back(']');
        if (closers.size() > limits_.max_depth)
            return fail("nested deeper than " + std::to_string(limits_.max_depth));
        if (at('}') || at(')') || at(']')) {
            if (!at(closers.back())) return fail("bracket does not match the one it closes");
            closers.pop_back();
        }
        advance();
    } while (!closers.empty());
    return true;
}

void Parser::add_item(Item::Kind kind, size_t index, Name text) {
    module_.items.push_back({kind, static_cast<uint32_t>(index), text});
}

Sym Parser::function_symbol(Name name) {
    const Sym known = scopes_.find_here(name);
    if (known != kNoSym) {
        module_.symbols[known].kind = Symbol::Kind::kFunction;
        return known;
    }
    Symbol symbol;
    symbol.kind = Symbol::Kind::kFunction;
    symbol.name = name;
    const Sym sym = module_.add_symbol(symbol);
    scopes_.declare(name, sym);
    return sym;
}

bool Parser::parse_function(uint32_t begin, Name linkage) {
    Function f;
    f.is_entry = token_.text == "entry";
    f.linkage = linkage;
    f.offset = begin;
    function_ = static_cast<uint32_t>(module_.functions.size());
    advance();
    scopes_.enter();
    if (!parse_function_header(f, begin)) return false;
    if (!parse_function_directives(f)) return false;
    if (at('{')) {
        f.has_body = true;
        if (!parse_body(f)) return false;
    } else if (!expect(';', "or a body after the function's header")) {
        return false;
    }
    scopes_.leave();
    function_ = kNoFunction;
    f.sym = function_symbol(f.name);
    add_item(Item::Kind::kFunction, module_.functions.size(), {});
    module_.functions.push_back(std::move(f));
    return true;
}

bool Parser::parse_function_header(Function& f, uint32_t begin) {
    while (at_dot()) {  // .attribute(…) and words we do not know stay in the header's text
        const bool attribute = token_.text == "attribute";
        advance();
        if (attribute && at('(') && !skip_group()) return false;
    }
    if (at('(') && !parse_parameters(f.returns)) return false;
    if (token_.kind != Kind::kWord) return unexpected("a function name");
    f.name = token_.text;
    advance();
    if (at('(') && !parse_parameters(f.params)) return false;
    f.header_text = slice(begin);
    return true;
}

bool Parser::parse_function_directives(Function& f) {
    while (at_dot()) {
        Directive directive;
        if (!parse_directive(directive)) return false;
        f.directives.push_back(std::move(directive));
    }
    return true;
}

bool Parser::parse_directive(Directive& directive) {
    const uint32_t begin = token_.begin;
    directive.name = token_.text;
    const bool pragma = directive.name == "pragma";
    advance();
    while (!at_dot() && !at('{') && !at(';')) {
        if (token_.kind == Kind::kEnd || token_.kind == Kind::kBad || at('}'))
            return unexpected("a function body or ';'");
        if (at('(')) {
            if (!skip_group()) return false;
            continue;
        }
        if (token_.kind == Kind::kNumber) {
            uint64_t value = 0;
            if (!parse_unsigned(value, "a number")) return false;
            directive.values.push_back(static_cast<uint32_t>(value));
            continue;
        }
        advance();
    }
    if (pragma && !expect(';', "after .pragma")) return false;
    directive.text = slice(begin);
    return true;
}

bool Parser::parse_module_variable(uint32_t begin, Name linkage) {
    const Space space = variable_space(token_.text);
    const size_t first_variable = module_.variables.size();
    advance();
    Sym first = kNoSym;
    if (!parse_variables(space, linkage, first)) return false;
    module_.variables[first_variable].text = slice(begin);
    add_item(Item::Kind::kVariable, first_variable, {});
    return true;
}

bool Parser::resolve_at_end() {
    resolve_scope(true);
    for (const PendingInit& p : pending_inits_) {
        const Sym sym = scopes_.find_here(p.name);
        if (sym == kNoSym && !future_)
            return fail_at(static_cast<uint32_t>(p.name.data() - source_->data()),
                           "undeclared name '" + shown(p.name) + "'");
        module_.variables[p.variable].init[p.element].sym = sym;
    }
    return !error_;
}

Result<Module> parse(std::shared_ptr<const std::string> text, const Limits& limits) {
    if (text == nullptr) return make_error(Code::kInvalidArgument, "no PTX text");
    if (text->size() > limits.max_bytes || text->size() > 0xFFFFFFF0u)
        return make_error(Code::kExhausted, "PTX text of " + std::to_string(text->size()) +
                                                " bytes is over the limit of " +
                                                std::to_string(limits.max_bytes));
    return Parser(std::move(text), limits).run();
}

Result<Module> parse(std::string text, const Limits& limits) {
    return parse(std::make_shared<const std::string>(std::move(text)), limits);
}

}  // namespace ttt::ptx
