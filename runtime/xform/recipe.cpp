#include "xform/recipe.h"

#include <fmt/format.h>

namespace ttt::xform {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-' || c == ':' || c == '+';
}

class Reader {
  public:
    explicit Reader(std::string_view text) : text_(text) {}

    Result<Recipe> recipe() {
        Recipe out;
        skip_spaces();
        if (at_end()) return out;
        while (true) {
            TTT_TRY(Step step, this->step());
            out.steps.push_back(std::move(step));
            if (at_end()) return out;
            if (!take('|')) return unexpected("'|' or the end of the recipe");
        }
    }

  private:
    Result<Step> step() {
        Step out;
        TTT_TRY(out.transform, word("a transform's name"));
        if (!take('(')) return out;
        if (take(')')) return out;
        while (true) {
            const size_t start = pos_;
            TTT_TRY(std::string key, word("a knob's name"));
            std::string value;
            if (take('=')) {
                TTT_TRY(value, word("the knob's value"));
            }
            if (!out.knobs.emplace(key, std::move(value)).second) {
                return fail(start, fmt::format("knob '{}' is given twice", key));
            }
            if (take(')')) return out;
            if (!take(',')) return unexpected("',' or ')'");
        }
    }

    Result<std::string> word(std::string_view what) {
        skip_spaces();
        const size_t start = pos_;
        while (!at_end() && is_word(text_[pos_])) ++pos_;
        if (pos_ == start) return unexpected(what);
        std::string out(text_.substr(start, pos_ - start));
        skip_spaces();
        return out;
    }

    bool take(char c) {
        skip_spaces();
        if (at_end() || text_[pos_] != c) return false;
        ++pos_;
        skip_spaces();
        return true;
    }

    void skip_spaces() {
        while (!at_end() && is_space(text_[pos_])) ++pos_;
    }
    bool at_end() const { return pos_ >= text_.size(); }

    Error unexpected(std::string_view wanted) const {
        return fail(pos_, at_end() ? fmt::format("the recipe ends where {} is expected", wanted)
                                   : fmt::format("'{}' where {} is expected", text_[pos_], wanted));
    }
    Error fail(size_t pos, std::string message) const {
        Error error = make_error(Code::kInvalidArgument,
                                 fmt::format("recipe, column {}: {}", pos + 1, message));
        error.line = 1;
        error.column = static_cast<uint32_t>(pos + 1);
        return error;
    }

    std::string_view text_;
    size_t pos_ = 0;
};

}  // namespace

Result<Recipe> Recipe::parse(std::string_view text) { return Reader(text).recipe(); }

std::string Recipe::str() const {
    std::string out;
    for (const Step& step : steps) {
        if (!out.empty()) out += " | ";
        out += step.transform;
        char separator = '(';
        for (const auto& [key, value] : step.knobs) {
            out += separator;
            out += key;
            if (!value.empty()) out += "=" + value;
            separator = ',';
        }
        if (!step.knobs.empty()) out += ')';
    }
    return out;
}

Hash128 Recipe::hash() const { return hash_text(str()); }

}  // namespace ttt::xform
