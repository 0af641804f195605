// SHA-256 (FIPS 180-4), for printing buffers too big to show. Not used for any security decision.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace ttt::spec {

std::string sha256_hex(std::span<const std::byte> bytes);  // 64 lower-case digits

}  // namespace ttt::spec
