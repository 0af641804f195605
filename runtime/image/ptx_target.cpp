#include "image/ptx_target.h"

#include <algorithm>

namespace ttt::image {
namespace {

// Skips white space and comments.
std::string_view skip_blank(std::string_view text) {
    for (;;) {
        const size_t start = text.find_first_not_of(" \t\r\n\f\v");
        if (start == std::string_view::npos) return {};
        text.remove_prefix(start);
        const bool line = text.substr(0, 2) == "//";
        if (!line && text.substr(0, 2) != "/*") return text;
        const size_t end = line ? text.find('\n') : text.find("*/", 2);
        if (end == std::string_view::npos) return {};
        text.remove_prefix(end + (line ? 1 : 2));
    }
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// At most four digits: anything longer is no version or architecture.
uint32_t number(std::string_view& text) {
    uint32_t value = 0;
    size_t n = 0;
    while (n < text.size() && n < 4 && is_digit(text[n]))
        value = value * 10 + static_cast<uint32_t>(text[n++] - '0');
    text.remove_prefix(n);
    return value;
}

bool take(std::string_view& text, std::string_view word) {
    if (text.substr(0, word.size()) != word) return false;
    text.remove_prefix(word.size());
    return true;
}

void read_version(std::string_view text, PtxTarget& out) {
    text = skip_blank(text);
    const uint32_t major = number(text);
    const uint32_t minor = take(text, ".") ? number(text) : 0;
    out.version = major * 10 + std::min<uint32_t>(minor, 9);
}

void read_target(std::string_view text, PtxTarget& out) {
    text = skip_blank(text);
    if (!take(text, "sm_") && !take(text, "compute_")) return;
    out.arch = number(text);
    if (!text.empty() && (text.front() == 'a' || text.front() == 'f')) out.suffix = text.front();
}

}  // namespace

PtxTarget ptx_target(std::string_view ptx) {
    PtxTarget out;
    std::string_view rest = skip_blank(ptx);
    // .version, .target and .address_size lead, in this order; give up at the first other
    // statement.
    for (int i = 0; i < 3 && !rest.empty(); ++i) {
        if (take(rest, ".version"))
            read_version(rest, out);
        else if (take(rest, ".target"))
            read_target(rest, out);
        else if (!take(rest, ".address_size"))
            break;
        const size_t end = rest.find('\n');
        if (end == std::string_view::npos) break;
        rest = skip_blank(rest.substr(end));
    }
    return out;
}

}  // namespace ttt::image
