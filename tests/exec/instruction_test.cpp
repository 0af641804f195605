#include "instruction_test.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace ttt::test {
namespace {

constexpr size_t kWord = 4;  // bytes compared at once where nothing is approximate

std::vector<std::string> lines_after(const std::string& text, const std::string& prefix) {
    std::vector<std::string> out;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);)
        if (line.starts_with(prefix)) out.push_back(line.substr(prefix.size()));
    return out;
}

Error bad(const std::string& what) { return make_error(Code::kParse, what); }

// "2ulp", "2^-23rel", "2^-20.5abs".
Result<ErrorBound> parse_bound(const std::string& text) {
    ErrorBound bound;
    size_t used = 0;
    const bool power = text.starts_with("2^");
    try {
        bound.limit = std::stod(power ? text.substr(2) : text, &used);
    } catch (const std::exception&) {
        return bad("'" + text + "' is no error bound");
    }
    if (power) bound.limit = std::exp2(bound.limit);
    const std::string unit = text.substr(used + (power ? 2 : 0));
    if (unit == "rel")
        bound.kind = ErrorBound::Kind::kRelative;
    else if (unit == "abs")
        bound.kind = ErrorBound::Kind::kAbsolute;
    else if (unit != "ulp")
        return bad("'" + text + "' is no error bound");
    return bound;
}

Result<Approximation> parse_approximation(const std::string& line) {
    Approximation a;
    std::istringstream in(line);
    std::string type;
    if (!(in >> a.arg >> type)) return bad("'" + line + "' names no argument and type");
    if (type == "f16")
        a.format = ptx::soft::kF16;
    else if (type == "bf16")
        a.format = ptx::soft::kBF16;
    else if (type != "f32")
        return bad("approximate type '" + type + "' is not known");
    a.bytes = type == "f32" ? 4 : 2;
    for (std::string word; in >> word;) {
        TTT_TRY(const ErrorBound bound, parse_bound(word));
        a.bounds.push_back(bound);
    }
    if (a.bounds.empty()) return bad("'" + line + "' gives no error bound");
    return a;
}

double value_of(ptx::soft::Format f, uint64_t bits) {
    const double sign = f.negative(bits) ? -1.0 : 1.0;
    if (f.is_inf(bits)) return sign * INFINITY;
    const auto exponent = static_cast<int>((bits & f.infinity()) >> f.mantissa_bits);
    const auto mantissa = static_cast<double>(bits & f.mantissa_mask());
    const double unit = std::exp2(-static_cast<double>(f.mantissa_bits));
    return sign * (exponent == 0 ? mantissa * unit * std::exp2(1 - f.bias())
                                 : (1 + mantissa * unit) * std::exp2(exponent - f.bias()));
}

// Distance in representable values, from a total order of the bits.
double ulps_apart(ptx::soft::Format f, uint64_t a, uint64_t b) {
    const auto order = [&](uint64_t x) {
        const auto magnitude = static_cast<int64_t>(x & (f.sign_bit() - 1));
        return f.negative(x) ? -magnitude : magnitude;
    };
    return static_cast<double>(std::llabs(order(a) - order(b)));
}

bool within(const ErrorBound& bound, ptx::soft::Format f, uint64_t got, uint64_t want) {
    if (f.is_nan(got) || f.is_nan(want)) return f.is_nan(got) && f.is_nan(want);
    if (bound.kind == ErrorBound::Kind::kUlp) return ulps_apart(f, got, want) <= bound.limit;
    const double expected = value_of(f, want);
    // `want` is itself rounded, and so is `got`: half a unit each.
    const double unit =
        std::fabs(value_of(f, (want & (f.sign_bit() - 1)) + 1)) - std::fabs(expected);
    const double limit =
        bound.kind == ErrorBound::Kind::kRelative ? bound.limit * std::fabs(expected) : bound.limit;
    return std::fabs(value_of(f, got) - expected) <= limit + unit;
}

const Approximation* approximation_of(const InstructionTest& test, size_t arg) {
    for (const Approximation& a : test.approximations)
        if (a.arg == arg) return &a;
    return nullptr;
}

// Names come from the order of the results: every form has an equal part of the buffer.
size_t form_of(const InstructionTest& test, size_t at, size_t buffer_bytes) {
    return test.forms == 0 ? 0 : at / std::max<size_t>(1, buffer_bytes / test.forms);
}

void compare(const InstructionTest& test, const Expectation& e, std::span<const std::byte> got,
             std::vector<Difference>& out) {
    const Approximation* approximate = approximation_of(test, e.arg);
    const size_t step = approximate != nullptr ? approximate->bytes : kWord;
    size_t last_form = ~size_t{0};
    for (size_t i = 0; i < e.bytes.size(); i += step) {
        const size_t size = std::min(step, e.bytes.size() - i);
        uint64_t a = 0, b = 0;
        std::memcpy(&a, got.data() + e.offset + i, size);
        std::memcpy(&b, e.bytes.data() + i, size);
        if (a == b) continue;
        if (approximate != nullptr) {
            const auto& bounds = approximate->bounds;
            const size_t part = i * bounds.size() / e.bytes.size();
            if (within(bounds[part], approximate->format, a, b)) continue;
        }
        const size_t form = form_of(test, e.offset + i, got.size());
        if (form != last_form || out.empty()) {
            out.push_back({e.arg, e.offset + i, 0,
                           form < test.form_names.size() ? test.form_names[form] : "",
                           spec::to_hex(std::span(e.bytes).subspan(i, size)),
                           spec::to_hex(got.subspan(e.offset + i, size))});
            last_form = form;
        }
        ++out.back().wrong;
    }
}

Result<InstructionTest> parse_test(const std::string& text) {
    InstructionTest test;
    test.ptx = text;
    const auto launches = lines_after(text, "// launch: "),
               expects = lines_after(text, "// expect: "), forms = lines_after(text, "// forms: ");
    if (launches.size() != 1 || expects.size() != 1 || forms.size() != 1)
        return bad("needs one line each of launch, expect and forms");
    TTT_TRY(test.launch, spec::parse(launches[0]));
    TTT_TRY(test.expectations, parse_expectations(expects[0]));
    for (const auto& line : lines_after(text, "// approx: ")) {
        TTT_TRY(Approximation a, parse_approximation(line));
        test.approximations.push_back(std::move(a));
    }
    test.forms = std::strtoul(forms[0].c_str(), nullptr, 10);
    if (test.forms == 0) return bad("counts no forms");
    test.form_names = lines_after(text, "\t// ");
    if (test.form_names.size() != test.forms) test.form_names.clear();
    return test;
}

}  // namespace

Result<std::vector<Expectation>> parse_expectations(const std::string& expect) {
    const auto list = nlohmann::json::parse(expect, nullptr, false);
    if (!list.is_array() || list.empty()) return bad("the expectation is no list");
    std::vector<Expectation> out;
    for (const auto& item : list) {
        if (!item.is_object() || !item.contains("arg") || !item.contains("hex"))
            return bad("an expectation needs arg and hex");
        Expectation e{item["arg"].get<size_t>(), item.value("offset", size_t{0}), {}};
        TTT_TRY(e.bytes, spec::from_hex(item["hex"].get<std::string>()));
        out.push_back(std::move(e));
    }
    return out;
}

Result<InstructionTest> read_instruction_test(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) return make_error(Code::kIo, path + ": cannot be read");
    std::ostringstream text;
    text << in.rdbuf();
    auto test = parse_test(text.str());
    if (!test.ok()) return std::move(test.error()).with(path);
    test->name = std::filesystem::path(path).stem().string();
    return test;
}

Result<std::vector<Difference>> differences(const InstructionTest& test,
                                            std::span<const std::vector<std::byte>> buffers) {
    std::vector<Difference> out;
    for (const Expectation& e : test.expectations) {
        if (e.arg >= buffers.size() || e.offset + e.bytes.size() > buffers[e.arg].size())
            return bad("the expectation is longer than the buffer");
        compare(test, e, buffers[e.arg], out);
    }
    return out;
}

std::string describe(const Difference& d) {
    return fmt::format("argument {} differs at byte {}{}: {} instead of {}, {} wrong", d.arg,
                       d.offset, d.form.empty() ? "" : " (" + d.form + ")", d.got, d.expected,
                       d.wrong);
}

}  // namespace ttt::test
