// Tokens of PTX text. Pull-style and restartable: position() and seek() give any look-ahead. Never
// allocates; each byte is looked at a bounded number of times. The text must outlive the tokens.
#pragma once

#include <cstdint>
#include <string_view>

namespace ttt::ptx {

struct Token {
    enum class Kind : uint8_t {
        kEnd,
        kWord,    // identifier or %register
        kDot,     // text is what follows the dot: "global", "L1::evict_last", "2d"
        kNumber,  // any literal, sign excluded
        kString,  // text with the quotes
        kPunct,   // one character, in `punct`
        kBad,     // a byte no token starts with, an unterminated string or comment
    };
    Kind kind = Kind::kEnd;
    char punct = 0;
    uint32_t begin = 0, end = 0;  // byte offsets, dot included
    std::string_view text;

    bool is(char c) const { return kind == Kind::kPunct && punct == c; }
    bool is_dot(std::string_view word) const { return kind == Kind::kDot && text == word; }
};

class Lexer {
  public:
    explicit Lexer(std::string_view text);
    Token next();
    uint32_t position() const { return at_; }
    void seek(uint32_t position) { at_ = position; }
    std::string_view text() const { return text_; }

  private:
    bool skip_blank();  // false at an unterminated comment
    Token number(uint32_t begin);
    Token string(uint32_t begin);
    Token make(Token::Kind kind, uint32_t begin) const;

    std::string_view text_;
    uint32_t at_ = 0;
    bool after_value_ = false;  // a '%' that follows a number is the remainder operator
};

}  // namespace ttt::ptx
