#include "spec/launch_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <new>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "ptx/float_soft.h"

namespace ttt::spec {
namespace {

using Json = nlohmann::json;
using ptx::Type;

constexpr uint64_t kMostBytes = uint64_t{1} << 40;

Error bad(const std::string& key, const std::string& what) {
    return make_error(Code::kInvalidArgument, fmt::format("launch spec: \"{}\": {}", key, what));
}

struct ScalarName {
    std::string_view name;
    Type type;
};
constexpr ScalarName kScalars[] = {
    {"u8", Type::kU8},   {"u16", Type::kU16},   {"u32", Type::kU32}, {"u64", Type::kU64},
    {"s8", Type::kS8},   {"s16", Type::kS16},   {"s32", Type::kS32}, {"s64", Type::kS64},
    {"f16", Type::kF16}, {"bf16", Type::kBF16}, {"f32", Type::kF32}, {"f64", Type::kF64},
};

Type scalar_type(std::string_view name) {
    for (const ScalarName& s : kScalars)
        if (s.name == name) return s.type;
    return Type::kNone;
}

std::string_view scalar_name(Type type) {
    for (const ScalarName& s : kScalars)
        if (s.type == type) return s.name;
    return "?";
}

// The bits of `value` rounded to a floating type.
uint64_t float_bits(Type type, double value) {
    using namespace ptx::soft;
    switch (type) {
        case Type::kF16:
            return convert(kF64, kF16, bits_of(value), Round::kNearest);
        case Type::kBF16:
            return convert(kF64, kBF16, bits_of(value), Round::kNearest);
        case Type::kF32:
            return bits_of(static_cast<float>(value));
        default:
            return bits_of(value);
    }
}

uint64_t integer_bits(Type type, double value) {
    using namespace ptx::soft;
    if (std::isnan(value)) return 0;
    const Integer n = to_integer(kF64, bits_of(value), Round::kNearest);
    const bool is_signed = ptx::is_signed(type);
    const uint32_t bits = ptx::bit_size(type);
    const uint64_t top = is_signed ? (uint64_t{1} << (bits - 1)) - 1 : ~uint64_t{0} >> (64 - bits);
    if (n.negative && n.magnitude == 0 && !n.huge) return 0;
    if (!n.negative) return n.huge || n.magnitude > top ? top : n.magnitude;
    if (!is_signed) return 0;
    const uint64_t lowest = top + 1;
    return ~(n.huge || n.magnitude > lowest ? lowest : n.magnitude) + 1;
}

uint64_t element_bits(Type type, double value) {
    return ptx::is_float(type) ? float_bits(type, value) : integer_bits(type, value);
}

std::vector<std::byte> little_endian(uint64_t bits, uint32_t bytes) {
    std::vector<std::byte> out(bytes);
    for (uint32_t i = 0; i < bytes; ++i) out[i] = static_cast<std::byte>(bits >> (8 * i) & 0xFF);
    return out;
}

Status check_keys(const Json& object, const std::string& where,
                  std::initializer_list<std::string_view> allowed) {
    for (const auto& [key, value] : object.items()) {
        bool known = false;
        for (std::string_view a : allowed) known = known || a == key;
        if (!known) return bad(where.empty() ? key : where + "." + key, "unknown key");
    }
    return ok_status();
}

Result<uint64_t> unsigned_of(const Json& value, const std::string& key, uint64_t most) {
    if (!value.is_number_integer() || (value.is_number_integer() && !value.is_number_unsigned()))
        return bad(key, "must be a non-negative integer");
    const auto n = value.get<uint64_t>();
    if (n > most) return bad(key, fmt::format("{} is more than {}", n, most));
    return n;
}

Result<Dim3> dim_of(const Json& root, const std::string& key) {
    const auto it = root.find(key);
    if (it == root.end()) return bad(key, "missing");
    if (!it->is_array() || it->empty() || it->size() > 3)
        return bad(key, "must be a list of 1 to 3 integers");
    uint64_t n[3] = {1, 1, 1};
    for (size_t i = 0; i < it->size(); ++i) {
        TTT_TRY(n[i], unsigned_of((*it)[i], key, 0x7FFFFFFF));
        if (n[i] == 0) return bad(key, "must be at least 1 in each direction");
    }
    return Dim3{static_cast<uint32_t>(n[0]), static_cast<uint32_t>(n[1]),
                static_cast<uint32_t>(n[2])};
}

Result<uint64_t> scalar_bits(const Json& value, Type type, const std::string& key) {
    if (!value.is_number()) return bad(key, "must be a number");
    if (ptx::is_float(type)) return float_bits(type, value.get<double>());
    if (!value.is_number_integer()) return bad(key, "must be an integer");
    const uint32_t bits = ptx::bit_size(type);
    const bool positive = value.is_number_unsigned();
    const uint64_t top = ~uint64_t{0} >> (64 - bits + (ptx::is_signed(type) ? 1 : 0));
    if (positive) {
        const auto n = value.get<uint64_t>();
        return n > top ? Result<uint64_t>(bad(key, fmt::format("{} is out of range", n)))
                       : Result<uint64_t>(n);
    }
    const auto n = value.get<int64_t>();
    if (!ptx::is_signed(type) || n < -static_cast<int64_t>(top) - 1)
        return bad(key, fmt::format("{} is out of range", n));
    return static_cast<uint64_t>(n);
}

Result<double> number_of(const Json& object, const std::string& where, const char* key,
                         double standard) {
    const auto it = object.find(key);
    if (it == object.end()) return standard;
    if (!it->is_number()) return bad(where + "." + key, "must be a number");
    return it->get<double>();
}

Result<Fill> fill_of(const Json& value, const std::string& where) {
    if (!value.is_object()) return bad(where, "must be an object");
    TTT_CHECK_OK(check_keys(value, where, {"type", "min", "max", "seed"}));
    Fill fill;
    const auto type = value.find("type");
    if (type == value.end() || !type->is_string())
        return bad(where + ".type", "must name a scalar type");
    fill.type = scalar_type(type->get<std::string>());
    if (fill.type == Type::kNone)
        return bad(where + ".type", "unknown type " + type->get<std::string>());
    TTT_TRY(fill.min, number_of(value, where, "min", 0));
    TTT_TRY(fill.max, number_of(value, where, "max", 1));
    if (const auto seed = value.find("seed"); seed != value.end()) {
        TTT_TRY(fill.seed, unsigned_of(*seed, where + ".seed", ~uint64_t{0}));
    }
    return fill;
}

Result<Argument> buffer_of(const Json& value, const std::string& where) {
    if (!value.is_object()) return bad(where, "must be an object");
    TTT_CHECK_OK(check_keys(value, where, {"bytes", "hex", "fill"}));
    Argument arg;
    arg.kind = Argument::Kind::kBuffer;
    const auto bytes = value.find("bytes");
    if (bytes == value.end()) return bad(where + ".bytes", "missing");
    TTT_TRY(arg.buffer_bytes, unsigned_of(*bytes, where + ".bytes", kMostBytes));
    if (const auto hex = value.find("hex"); hex != value.end()) {
        if (!hex->is_string()) return bad(where + ".hex", "must be a string of hexadecimal digits");
        auto data = from_hex(hex->get<std::string>());
        if (!data) return bad(where + ".hex", data.error().message);
        arg.data = std::move(*data);
        if (arg.data.size() > arg.buffer_bytes)
            return bad(where + ".hex", "longer than the buffer");
    }
    if (const auto fill = value.find("fill"); fill != value.end()) {
        if (!arg.data.empty()) return bad(where + ".fill", "a buffer has either hex or fill");
        TTT_TRY(arg.fill, fill_of(*fill, where + ".fill"));
    }
    return arg;
}

Result<Argument> argument_of(const Json& value, const std::string& where) {
    if (!value.is_object() || value.size() != 1)
        return bad(where, "must be an object with one key: buffer, bytes or a scalar type");
    const std::string key = value.begin().key();
    const Json& content = value.begin().value();
    const std::string path = where + "." + key;
    if (key == "buffer") return buffer_of(content, path);
    Argument arg;
    if (key == "bytes") {
        if (!content.is_string()) return bad(path, "must be a string of hexadecimal digits");
        arg.kind = Argument::Kind::kBytes;
        auto data = from_hex(content.get<std::string>());
        if (!data) return bad(path, data.error().message);
        arg.data = std::move(*data);
        return arg;
    }
    arg.type = scalar_type(key);
    if (arg.type == Type::kNone) return bad(path, "is neither buffer, bytes nor a scalar type");
    TTT_TRY(const uint64_t bits, scalar_bits(content, arg.type, path));
    arg.data = little_endian(bits, ptx::byte_size(arg.type));
    return arg;
}

Result<LaunchSpec> spec_of(const Json& root) {
    if (!root.is_object()) return bad("", "must be an object");
    TTT_CHECK_OK(check_keys(root, "", {"entry", "grid", "block", "shared", "args", "variables"}));
    LaunchSpec spec;
    const auto entry = root.find("entry");
    if (entry == root.end() || !entry->is_string())
        return bad("entry", "must be the name of a kernel");
    spec.entry = entry->get<std::string>();
    TTT_TRY(spec.grid, dim_of(root, "grid"));
    TTT_TRY(spec.block, dim_of(root, "block"));
    if (std::max({spec.block.x, spec.block.y, spec.block.z}) > 1024 || spec.block.count() > 1024)
        return bad("block", "has more than 1024 threads");
    if (const auto shared = root.find("shared"); shared != root.end()) {
        TTT_TRY(const uint64_t bytes, unsigned_of(*shared, "shared", 1 << 20));
        spec.shared = static_cast<uint32_t>(bytes);
    }
    if (const auto variables = root.find("variables"); variables != root.end()) {
        if (!variables->is_object()) return bad("variables", "must be an object");
        for (const auto& [name, contents] : variables->items()) {
            if (name.empty()) return bad("variables", "a variable without a name");
            TTT_TRY(Argument variable, buffer_of(contents, "variables." + name));
            if (variable.buffer_bytes == 0) return bad("variables." + name, "has no bytes");
            spec.variables.emplace_back(name, std::move(variable));
        }
    }
    const auto args = root.find("args");
    if (args == root.end()) return spec;
    if (!args->is_array()) return bad("args", "must be a list");
    for (size_t i = 0; i < args->size(); ++i) {
        TTT_TRY(Argument arg, argument_of((*args)[i], fmt::format("args[{}]", i)));
        spec.args.push_back(std::move(arg));
    }
    return spec;
}

double double_of(uint64_t bits, Type type) {
    using namespace ptx::soft;
    switch (type) {
        case Type::kF16:
            return f64_of(convert(kF16, kF64, bits, Round::kNearest));
        case Type::kBF16:
            return f64_of(convert(kBF16, kF64, bits, Round::kNearest));
        case Type::kF32:
            return static_cast<double>(f32_of(bits));
        default:
            return f64_of(bits);
    }
}

Json scalar_json(const Argument& arg) {
    uint64_t bits = 0;
    for (size_t i = 0; i < arg.data.size() && i < 8; ++i)
        bits |= static_cast<uint64_t>(arg.data[i]) << (8 * i);
    if (ptx::is_float(arg.type)) return double_of(bits, arg.type);
    if (!ptx::is_signed(arg.type)) return bits;
    const uint32_t unused = 64 - ptx::bit_size(arg.type);
    return static_cast<int64_t>(bits << unused) >> unused;
}

Json argument_json(const Argument& arg) {
    if (arg.kind == Argument::Kind::kBytes) return {{"bytes", to_hex(arg.data)}};
    if (arg.kind == Argument::Kind::kScalar)
        return {{std::string(scalar_name(arg.type)), scalar_json(arg)}};
    Json buffer = {{"bytes", arg.buffer_bytes}};
    if (!arg.data.empty()) buffer["hex"] = to_hex(arg.data);
    if (arg.fill)
        buffer["fill"] = {{"type", std::string(scalar_name(arg.fill->type))},
                          {"min", arg.fill->min},
                          {"max", arg.fill->max},
                          {"seed", arg.fill->seed}};
    return {{"buffer", buffer}};
}

int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

}  // namespace

Result<LaunchSpec> parse(std::string_view json) {
    try {
        return spec_of(Json::parse(json));
    } catch (const Json::exception& e) {
        return make_error(Code::kInvalidArgument,
                          fmt::format("launch spec is not valid JSON: {}", e.what()));
    }
}

Result<std::string> read_text(const std::string& path, uint64_t limit) {
    const auto fail = [&](const std::string& why) {
        return make_error(Code::kIo, path + ": " + why);
    };
    std::error_code ec;
    if (std::filesystem::is_directory(path, ec)) return fail("is a directory");
    std::ifstream in(path, std::ios::binary);
    if (!in) return fail("cannot be read");
    // In parts: a device or a pipe has no size to be trusted.
    std::string text;
    std::array<char, 1 << 16> part;
    while (in.read(part.data(), part.size()) || in.gcount() > 0) {
        text.append(part.data(), static_cast<size_t>(in.gcount()));
        if (text.size() > limit) return fail(fmt::format("larger than {} MiB", limit >> 20));
    }
    return text;
}

Result<LaunchSpec> read_file(const std::string& path) {
    constexpr uint64_t kLargestSpec = uint64_t{1} << 30;  // by-value buffers in hex
    auto text = read_text(path, kLargestSpec);
    if (!text.ok()) return std::move(text).error().with("launch spec");
    auto spec = parse(*text);
    if (!spec) return std::move(spec).error().with(path);
    return spec;
}

std::string to_json(const LaunchSpec& spec) {
    Json root = {{"entry", spec.entry},
                 {"grid", {spec.grid.x, spec.grid.y, spec.grid.z}},
                 {"block", {spec.block.x, spec.block.y, spec.block.z}},
                 {"shared", spec.shared},
                 {"args", Json::array()}};
    for (const Argument& arg : spec.args) root["args"].push_back(argument_json(arg));
    for (const auto& [name, contents] : spec.variables)
        root["variables"][name] = argument_json(contents)["buffer"];
    return root.dump();
}

Result<std::vector<std::byte>> materialise(const Argument& buffer) {
    try {
        std::vector<std::byte> out(buffer.buffer_bytes);
        if (!buffer.data.empty()) std::memcpy(out.data(), buffer.data.data(), buffer.data.size());
        if (!buffer.fill) return out;
        const Fill& fill = *buffer.fill;
        const uint32_t size = ptx::byte_size(fill.type);
        for (uint64_t i = 0; i < buffer.buffer_bytes / size; ++i) {
            const double u = static_cast<double>(splitmix64(fill.seed + i) >> 11) * 0x1p-53;
            const uint64_t bits = element_bits(fill.type, fill.min + (fill.max - fill.min) * u);
            std::memcpy(out.data() + i * size, &bits, size);
        }
        return out;
    } catch (const std::bad_alloc&) {
        return make_error(Code::kExhausted,
                          fmt::format("no memory for a buffer of {} bytes", buffer.buffer_bytes));
    }
}

Result<std::vector<std::byte>> pack_params(const ptx::Module& module, const ptx::Function& entry,
                                           const LaunchSpec& spec,
                                           std::span<const uint64_t> addresses) {
    const auto layout = ptx::param_layout(module, entry);
    if (layout.size() != spec.args.size())
        return bad("args", fmt::format("{} given, entry {} takes {}", spec.args.size(), entry.name,
                                       layout.size()));
    uint32_t total = 0;
    for (const auto& p : layout) total = std::max(total, p.offset + p.size);
    std::vector<std::byte> out(total);
    size_t next = 0;
    for (size_t i = 0; i < layout.size(); ++i) {
        const Argument& arg = spec.args[i];
        std::vector<std::byte> bytes = arg.data;
        if (arg.kind == Argument::Kind::kBuffer) {
            if (next >= addresses.size()) return bad("args", "fewer addresses than buffers");
            bytes = little_endian(addresses[next++], 8);
        }
        if (bytes.size() != layout[i].size)
            return bad(fmt::format("args[{}]", i),
                       fmt::format("has {} bytes, parameter {} of {} has {}", bytes.size(), i,
                                   entry.name, layout[i].size));
        std::memcpy(out.data() + layout[i].offset, bytes.data(), bytes.size());
    }
    return out;
}

std::string to_hex(std::span<const std::byte> bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    std::string out;
    out.reserve(bytes.size() * 2);
    for (std::byte b : bytes) {
        out += kDigits[static_cast<unsigned>(b) >> 4];
        out += kDigits[static_cast<unsigned>(b) & 15];
    }
    return out;
}

Result<std::vector<std::byte>> from_hex(std::string_view text) {
    if (text.size() % 2 != 0)
        return make_error(Code::kInvalidArgument, "odd number of hexadecimal digits");
    std::vector<std::byte> out(text.size() / 2);
    for (size_t i = 0; i < out.size(); ++i) {
        const int hi = hex_digit(text[2 * i]), lo = hex_digit(text[2 * i + 1]);
        if (hi < 0 || lo < 0) return make_error(Code::kInvalidArgument, "not a hexadecimal digit");
        out[i] = static_cast<std::byte>(hi << 4 | lo);
    }
    return out;
}

}  // namespace ttt::spec
