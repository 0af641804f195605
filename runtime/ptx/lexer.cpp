#include "ptx/lexer.h"

#include <array>

namespace ttt::ptx {
namespace {

enum CharClass : uint8_t { kLetter = 1, kDigit = 2, kBlank = 4, kHex = 8, kPunctuation = 16 };

constexpr std::array<uint8_t, 256> make_classes() {
    std::array<uint8_t, 256> classes{};
    const auto set = [&](std::string_view chars, uint8_t bit) {
        for (char c : chars) classes[static_cast<unsigned char>(c)] |= bit;
    };
    set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_$", kLetter);
    set("0123456789", kDigit | kHex);
    set("abcdefABCDEF", kHex);
    set(" \t\r\n\v\f", kBlank);
    set(",;:()[]{}<>|!@+-*/%&^~?=#", kPunctuation);
    return classes;
}
constexpr std::array<uint8_t, 256> kClasses = make_classes();

bool in(char c, uint8_t classes) {
    return (kClasses[static_cast<unsigned char>(c)] & classes) != 0;
}

}  // namespace

// A module handed to the driver ends with a NUL; text read from an image may carry several.
Lexer::Lexer(std::string_view text) : text_(text) {
    while (!text_.empty() && text_.back() == '\0') text_.remove_suffix(1);
}

Token Lexer::make(Token::Kind kind, uint32_t begin) const {
    Token token;
    token.kind = kind;
    token.begin = begin;
    token.end = at_;
    token.text = text_.substr(begin, at_ - begin);
    return token;
}

bool Lexer::skip_blank() {
    while (at_ < text_.size()) {
        const char c = text_[at_];
        if (in(c, kBlank)) {
            ++at_;
        } else if (c == '/' && at_ + 1 < text_.size() && text_[at_ + 1] == '/') {
            const size_t end = text_.find('\n', at_);
            at_ = static_cast<uint32_t>(end == std::string_view::npos ? text_.size() : end + 1);
        } else if (c == '/' && at_ + 1 < text_.size() && text_[at_ + 1] == '*') {
            const size_t end = text_.find("*/", at_ + 2);
            if (end == std::string_view::npos) return false;
            at_ = static_cast<uint32_t>(end + 2);
        } else {
            break;
        }
    }
    return true;
}

Token Lexer::next() {
    const bool after_value = after_value_;
    after_value_ = false;
    if (!skip_blank()) {
        const uint32_t begin = at_;
        at_ = static_cast<uint32_t>(text_.size());
        Token bad = make(Token::Kind::kBad, begin);
        bad.text = text_.substr(begin, 2);
        return bad;
    }
    const uint32_t begin = at_;
    if (at_ >= text_.size()) return make(Token::Kind::kEnd, begin);
    const char c = text_[at_];
    const auto follows = [&](uint8_t classes) {
        return begin + 1 < text_.size() && in(text_[begin + 1], classes);
    };
    if (in(c, kLetter) || (c == '%' && !after_value && follows(kLetter | kDigit))) {
        do ++at_;
        while (at_ < text_.size() && in(text_[at_], kLetter | kDigit));
        return make(Token::Kind::kWord, begin);
    }
    if (c == '.' && follows(kLetter | kDigit)) {
        do ++at_;
        while (at_ < text_.size() && (in(text_[at_], kLetter | kDigit) ||
                                      (text_[at_] == ':' && at_ + 1 < text_.size() &&
                                       (text_[at_ + 1] == ':' || text_[at_ - 1] == ':'))));
        Token dot = make(Token::Kind::kDot, begin);
        dot.text.remove_prefix(1);
        return dot;
    }
    if (in(c, kDigit)) return number(begin);
    if (c == '"') return string(begin);
    ++at_;
    Token token = make(in(c, kPunctuation) ? Token::Kind::kPunct : Token::Kind::kBad, begin);
    token.punct = c;
    after_value_ = c == ')';
    return token;
}

// 0x1F, 0b101, 017, 12U, 0f3F800000, 0d3FF0000000000000, 1.5, 1e-5. Bad digits show up when the
// value is read.
Token Lexer::number(uint32_t begin) {
    const auto peek = [&](uint32_t i) { return i < text_.size() ? text_[i] : '\0'; };
    const char second = peek(begin + 1);
    const bool prefixed = text_[begin] == '0' && in(second, kLetter) && second != 'e' &&
                          second != 'E' && second != 'U';
    ++at_;
    while (in(peek(at_), kLetter | kDigit)) {
        const char c = text_[at_++];
        const bool exponent = !prefixed && (c == 'e' || c == 'E');
        if (exponent && (peek(at_) == '+' || peek(at_) == '-')) ++at_;
    }
    if (!prefixed && peek(at_) == '.' && in(peek(at_ + 1), kDigit)) {
        ++at_;
        while (in(peek(at_), kLetter | kDigit)) {
            const char c = text_[at_++];
            if ((c == 'e' || c == 'E') && (peek(at_) == '+' || peek(at_) == '-')) ++at_;
        }
    }
    after_value_ = true;
    return make(Token::Kind::kNumber, begin);
}

Token Lexer::string(uint32_t begin) {
    ++at_;
    while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n')
        at_ += text_[at_] == '\\' && at_ + 1 < text_.size() ? 2 : 1;
    const bool closed = at_ < text_.size() && text_[at_] == '"';
    if (closed) ++at_;
    return make(closed ? Token::Kind::kString : Token::Kind::kBad, begin);
}

}  // namespace ttt::ptx
