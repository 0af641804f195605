// Numbers of the formats that fat binaries and cubins use. Internal to runtime/image.
#pragma once

#include <cstdint>

namespace ttt::image {

inline constexpr uint32_t kWrapperMagic = 0x466243B1;
inline constexpr uint32_t kFatbinMagic = 0xBA55ED50;
inline constexpr uint32_t kElfMagic = 0x464C457F;

inline constexpr uint64_t kFatbinHeaderBytes =
    16;  // magic u32, version u16, header size u16, size of the rest u64
inline constexpr uint64_t kEntryHeaderBytes = 64;  // smallest entry header that any toolkit wrote
inline constexpr uint64_t kWrapperBytes = 24;

inline constexpr uint64_t kFlagLz4 = 0x2000;
inline constexpr uint64_t kFlagZstd = 0x8000;
inline constexpr uint64_t kFlagArchSpecific = 0x100000;
inline constexpr uint64_t kFlagFamilySpecific = 0x200000;

inline constexpr uint16_t kMachineCuda = 190;
inline constexpr uint8_t kAbiCuda13 =
    8;  // from this ABI version on the architecture is in e_flags bits 8..15

inline constexpr uint32_t kSectionCudaShared =
    0x7000000A;  // has a size but no bytes, like SHT_NOBITS

}  // namespace ttt::image
