#include "ptx/module_variables.h"

namespace ttt::ptx {
namespace {
constexpr std::string_view kPrefix = "ttt_at_";
}

bool is_compilers_own(std::string_view name) {
    return name.starts_with("__cudart_") || name.starts_with("$str") ||
           name.starts_with("__internal_");
}

std::string cell_name(std::string_view variable) {
    return std::string(kPrefix) + std::string(variable);
}

bool is_cell(const Symbol& s) {
    return s.kind == Symbol::Kind::kVariable && s.space == Space::kConst && s.type == Type::kU64 &&
           s.vector == 1 && s.elements == 1 && s.function == 0xFFFFFFFFu &&
           s.name.starts_with(kPrefix);
}

std::string_view cell_variable(std::string_view cell) {
    return cell.starts_with(kPrefix) ? cell.substr(kPrefix.size()) : std::string_view{};
}

}  // namespace ttt::ptx
