// The one home of the decompressors.
#include <lz4.h>
#include <zstd.h>

#include <limits>
#include <new>

#include "image/bytes.h"
#include "image/image.h"

namespace ttt::image {
namespace {

Result<std::string> unpack_lz4(Bytes payload, uint64_t size) {
    if (payload.size() > LZ4_MAX_INPUT_SIZE || size > LZ4_MAX_INPUT_SIZE)
        return make_error(Code::kExhausted, "LZ4 entry is larger than one block can be");
    std::string out(static_cast<size_t>(size), '\0');
    const int n = LZ4_decompress_safe(reinterpret_cast<const char*>(payload.data()), out.data(),
                                      static_cast<int>(payload.size()), static_cast<int>(size));
    if (n < 0 || static_cast<uint64_t>(n) != size)
        return make_error(Code::kParse, "LZ4 entry does not unpack to the size its header states");
    return out;
}

Result<std::string> unpack_zstd(Bytes payload, uint64_t size) {
    std::string out(static_cast<size_t>(size), '\0');
    const size_t n = ZSTD_decompress(out.data(), out.size(), payload.data(), payload.size());
    if (ZSTD_isError(n) != 0)
        return make_error(Code::kParse, std::string("zstd entry: ") + ZSTD_getErrorName(n));
    if (n != size)
        return make_error(Code::kParse, "zstd entry does not unpack to the size its header states");
    return out;
}

Result<std::string> unpack(const Entry& entry, uint64_t limit) {
    if (!entry.compressed) {
        if (entry.payload.size() > limit)
            return make_error(Code::kExhausted, "entry of " + std::to_string(entry.payload.size()) +
                                                    " bytes is over the limit of " +
                                                    std::to_string(limit));
        return std::string(as_text(entry.payload));
    }
    if (entry.uncompressed_size > limit)
        return make_error(Code::kExhausted, "entry of " + std::to_string(entry.uncompressed_size) +
                                                " bytes unpacked is over the limit of " +
                                                std::to_string(limit));
    switch (entry.scheme) {
        case Compression::kLz4:
            // One LZ4 byte yields at most 255 bytes.
            if (entry.uncompressed_size / 256 > entry.payload.size())
                return make_error(Code::kParse, "LZ4 entry states a size it cannot have");
            return unpack_lz4(entry.payload, entry.uncompressed_size);
        case Compression::kZstd: {
            // A block of at least four bytes yields at most 128 KiB.
            if (entry.uncompressed_size / 32768 > entry.payload.size())
                return make_error(Code::kParse, "zstd entry states a size it cannot have");
            const unsigned long long stated =
                ZSTD_getFrameContentSize(entry.payload.data(), entry.payload.size());
            if (stated == ZSTD_CONTENTSIZE_ERROR)
                return make_error(Code::kParse, "zstd entry has no valid frame");
            if (stated != ZSTD_CONTENTSIZE_UNKNOWN && stated != entry.uncompressed_size)
                return make_error(Code::kParse, "zstd entry and fat binary disagree on the size");
            return unpack_zstd(entry.payload, entry.uncompressed_size);
        }
        default:
            return make_error(Code::kUnsupported,
                              "entry is compressed in a way this version does not know");
    }
}

}  // namespace

Result<std::string> contents(const Entry& entry, uint64_t limit) {
    try {
        TTT_TRY(std::string out, unpack(entry, limit));
        // Padding and the terminator are no part of the text; a NUL inside ends it for the driver
        // too.
        if (entry.kind == EntryKind::kPtx) {
            const size_t end = out.find('\0');
            if (end != std::string::npos) out.resize(end);
        }
        return out;
    } catch (const std::bad_alloc&) {
        return make_error(Code::kExhausted, "no memory to unpack an entry");
    }
}

}  // namespace ttt::image
