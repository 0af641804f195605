// One integer instruction on constants, with the meaning the interpreter gives it. Values are bits
// in the low end of a word. Pure; no errors.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "ptx/ir.h"

namespace ttt::xform {

bool is_integer(ptx::Type type);  // 8 to 64 bits, .bN included

uint64_t truncate(uint64_t value, uint32_t bits);
int64_t as_signed(uint64_t value, uint32_t bits);
// A value of `type` in 64 bits, sign-extended where the type is signed.
uint64_t widen(uint64_t value, ptx::Type type);

// Result of `stmt` on its source operands `in`, in its result's width; nullopt for anything but a
// plain integer form (no .sat, .cc, .hi) and for division by zero.
std::optional<uint64_t> evaluate(const ptx::Stmt& stmt, std::span<const uint64_t> in);

// setp on integers with one plain comparison.
std::optional<bool> compare(const ptx::Stmt& setp, uint64_t a, uint64_t b);

ptx::Operand integer_literal(ptx::Module& module, uint64_t bits);

}  // namespace ttt::xform
