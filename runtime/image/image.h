// What programs hand to the driver: fat binaries, cubins (ELF), PTX text. Trusts nothing: every
// size is checked against the bytes at hand. Thread-safe (no state). May run before cuInit. No CUDA
// headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ttt::image {

enum class Kind : uint8_t { kUnknown, kPtx, kElf, kFatbin, kFatbinWrapper };
enum class EntryKind : uint16_t { kPtx = 1, kElf = 2, kLtoIr = 8, kOther = 0xFFFF };
enum class Compression : uint8_t { kNone, kLz4, kZstd, kUnknown };

struct Entry {
    EntryKind kind = EntryKind::kOther;
    uint32_t arch = 0;             // 90 for sm_90 / compute_90
    bool arch_specific = false;    // 'a'
    bool family_specific = false;  // 'f'
    bool compressed = false;
    std::string name;
    std::string options;                 // e.g. "--maxrregcount 32"
    std::span<const std::byte> payload;  // raw (maybe compressed) bytes inside the image
    uint64_t uncompressed_size = 0;
    Compression scheme = Compression::kNone;
};

// First bytes decide; needs at most 24 bytes.
Kind classify(std::span<const std::byte> head);

// Entries of a fat binary (header first, not the wrapper) or, for PTX and ELF, one synthetic entry.
Result<std::vector<Entry>> entries(std::span<const std::byte> image);

// Payload as plain bytes (LZ4 and zstd undone). Refuses more than `limit` bytes. PTX loses its
// trailing NUL. LTO-IR in some libraries is scrambled too: an error.
Result<std::string> contents(const Entry& entry, uint64_t limit = uint64_t{1} << 30);

// The PTX entry to prefer for machine code of `arch` (rules.md 7): equal architecture, else the
// highest below it.
const Entry* best_ptx(const std::vector<Entry>& entries, uint32_t arch);

// Identity of each machine code (ELF) in an image, by content: the same whether it is loaded bare
// or inside a fat binary. Unreadable images and entries have none.
std::vector<uint64_t> code_identities(std::span<const std::byte> image);
uint64_t code_identity(std::string_view elf);

// Bytes of an image of unknown length in this process's memory, read so that a lying header cannot
// fault us (process_vm_readv on ourselves). Wrappers (version 1 and 2) are followed: one blob per
// fat binary.
Result<std::vector<std::vector<std::byte>>> copy_foreign(const void* image,
                                                         uint64_t limit = uint64_t{1} << 30);

// Every well-formed fat binary inside an ELF file (shared library, executable, object): sections
// .nv_fatbin,
// __nv_relfatbin and constant data (cuFFT keeps its own there). Spans point into `file`; each
// starts at its header and has its exact length.
Result<std::vector<std::span<const std::byte>>> fatbins_in_elf(std::span<const std::byte> file);

// A cubin: kernels with resources (from .nv.info and symbol tables) and opcode counts of their
// machine code.
struct KernelCode {
    std::string name;
    uint32_t registers = 0, shared_bytes = 0, local_bytes = 0, param_bytes = 0, barriers = 0,
             max_threads = 0;
    std::vector<std::pair<uint32_t, uint32_t>> params;  // offset, size
    // Counts of floating instructions in the machine code, by our own opcode reader (sm_75 –
    // sm_121).
    uint32_t ffma = 0, fmul = 0, fadd = 0, dfma = 0, dmul = 0, dadd = 0, hfma = 0, mufu = 0,
             bar = 0, instructions = 0;
    // shared_bytes: declared by the kernel; what the system reserves in each block (1 KiB from
    // sm_90) is left out.
    std::span<const std::byte> text;  // of the kernel itself, callees not included
    std::vector<std::string>
        calls;  // device functions reached, directly or not; the counts include theirs
};
struct Cubin {
    uint32_t arch = 0;
    uint8_t abi = 0;
    std::vector<KernelCode> kernels;
    std::vector<KernelCode> functions;  // device functions that were not inlined
};
// Text spans point into `elf`. `hfma` leaves out half operations on the zero register: they load
// constants or convert. Pairs (FFMA2 …) count twice. Counts are zero for architectures outside
// sm_75 – sm_121.
Result<Cubin> read_cubin(std::span<const std::byte> elf);

}  // namespace ttt::image
