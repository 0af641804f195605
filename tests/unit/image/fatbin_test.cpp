#include <gtest/gtest.h>

#include "fixtures.h"
#include "image/image.h"

namespace ttt::image {
namespace {

using test::Blob;
using test::one_entry;
using test::put;
using test::read_file;

std::span<const std::byte> bytes(std::string_view text) {
    return std::as_bytes(std::span(text.data(), text.size()));
}

constexpr std::string_view kPtx = "//\n.version 8.0\n.target sm_90a\n.address_size 64\n";

TEST(Classify, FirstBytesDecide) {
    EXPECT_EQ(classify(bytes(".version 8.0")), Kind::kPtx);
    EXPECT_EQ(classify(bytes("\n\n// Generated")), Kind::kPtx);
    EXPECT_EQ(classify(bytes("/* x */ .version")), Kind::kPtx);
    EXPECT_EQ(classify(bytes("  .vers")), Kind::kPtx);
    EXPECT_EQ(classify(bytes("\x7f"
                             "ELF\2\1\1")),
              Kind::kElf);
    EXPECT_EQ(classify(bytes("\x50\xed\x55\xba"
                             "....")),
              Kind::kFatbin);
    EXPECT_EQ(classify(bytes("\xb1\x43\x62\x46"
                             "....")),
              Kind::kFatbinWrapper);
    for (const char* other :
         {"", "#include", "\xed\x43\x4e\x7f", ".visible", "/", "MZ", "BC\xc0\xde"})
        EXPECT_EQ(classify(bytes(other)), Kind::kUnknown) << other;
}

TEST(Entries, ToolkitFatBinariesOfEveryCompression) {
    std::string plain;
    for (const char* name : {"none.fatbin", "speed.fatbin", "size.fatbin"}) {
        const Blob file = read_file(name);
        auto list = entries(file);
        ASSERT_TRUE(list.ok()) << name << ": " << list.error().str();
        ASSERT_EQ(list->size(), 3u) << name;
        const Entry& elf = (*list)[0];
        EXPECT_EQ(elf.kind, EntryKind::kElf);
        EXPECT_EQ(elf.arch, 80u);
        const Entry& ptx = (*list)[1];
        EXPECT_EQ(ptx.kind, EntryKind::kPtx);
        EXPECT_EQ(ptx.arch, 90u);
        EXPECT_NE(ptx.options.find("-maxrregcount=40"), std::string::npos) << ptx.options;
        EXPECT_TRUE((*list)[2].family_specific);
        EXPECT_EQ((*list)[2].arch, 100u);
        auto cubin = contents(elf);
        ASSERT_TRUE(cubin.ok()) << cubin.error().str();
        EXPECT_EQ(classify(bytes(*cubin)), Kind::kElf);
        auto text = contents(ptx);
        ASSERT_TRUE(text.ok()) << text.error().str();
        EXPECT_EQ(text->find('\0'), std::string::npos);
        EXPECT_NE(text->find(".entry caller"), std::string::npos);
        if (plain.empty()) plain = *text;
        EXPECT_EQ(*text, plain) << name;
    }
    EXPECT_EQ(entries(read_file("none.fatbin")).value()[1].scheme, Compression::kNone);
    EXPECT_EQ(entries(read_file("speed.fatbin")).value()[1].scheme, Compression::kLz4);
    EXPECT_EQ(entries(read_file("size.fatbin")).value()[1].scheme, Compression::kZstd);
    EXPECT_TRUE(entries(read_file("size.fatbin")).value()[0].compressed);
}

TEST(Identity, SameCodeWhateverItIsPackedIn) {
    const auto plain = code_identities(read_file("none.fatbin"));
    ASSERT_EQ(plain.size(), 1u);
    EXPECT_EQ(code_identities(read_file("speed.fatbin")), plain);
    EXPECT_EQ(code_identities(read_file("size.fatbin")), plain);
    const Blob fat = read_file("none.fatbin");
    const std::string elf = contents(entries(fat).value()[0]).value();
    Blob bare(bytes(elf).begin(), bytes(elf).end());
    EXPECT_EQ(code_identities(bare), plain);
    bare.resize(bare.size() + 24);  // as some containers pad it
    EXPECT_EQ(code_identities(bare), plain);
    bare[bare.size() / 2] ^= std::byte{1};
    EXPECT_NE(code_identities(bare), plain);
    EXPECT_TRUE(code_identities(bytes(kPtx)).empty());
}

TEST(Entries, PlainPtxAndCubinAreOneEntry) {
    auto ptx = entries(bytes(kPtx));
    ASSERT_TRUE(ptx.ok());
    ASSERT_EQ(ptx->size(), 1u);
    EXPECT_EQ((*ptx)[0].arch, 90u);
    EXPECT_TRUE((*ptx)[0].arch_specific);
    EXPECT_EQ(contents((*ptx)[0]).value(), kPtx);
    for (const auto& [name, arch] :
         {std::pair{"probe_75.cubin", 75u}, {"probe_120.cubin", 120u}, {"older_90.cubin", 90u}}) {
        const Blob file = read_file(name);
        auto elf = entries(file);
        ASSERT_TRUE(elf.ok()) << name;
        EXPECT_EQ((*elf)[0].kind, EntryKind::kElf);
        EXPECT_EQ((*elf)[0].arch, arch) << name;
    }
}

TEST(Entries, EveryCutOfAFatBinaryIsAnError) {
    const Blob whole = read_file("speed.fatbin");
    for (size_t n = 0; n < whole.size(); n += n < 200 ? 1 : 97)
        EXPECT_FALSE(entries(std::span(whole).first(n)).ok()) << n;
}

TEST(Entries, LyingSizes) {
    const Blob good = one_entry(1, 90, 0x11, std::string(kPtx));
    ASSERT_TRUE(entries(good).ok());
    const auto bent = [&](size_t offset, auto value) {
        Blob b = good;
        put(b, offset, value);
        return b;
    };
    EXPECT_FALSE(entries(bent(6, uint16_t{8})).ok());         // header size
    EXPECT_FALSE(entries(bent(8, uint64_t{1} << 40)).ok());   // size of the whole
    EXPECT_FALSE(entries(bent(8, ~uint64_t{0})).ok());        // would overflow
    EXPECT_FALSE(entries(bent(20, uint32_t{32})).ok());       // entry header too small
    EXPECT_FALSE(entries(bent(20, ~uint32_t{0})).ok());       // entry header too large
    EXPECT_FALSE(entries(bent(24, ~uint64_t{0} - 16)).ok());  // payload would overflow
    EXPECT_FALSE(entries(bent(32, uint32_t{1} << 30)).ok());  // packed larger than its room
    EXPECT_TRUE(entries(bent(36, uint32_t{0x7FFFFFFF}))
                    .value()[0]
                    .options.empty());  // option string elsewhere
    const Blob empty = bent(8, uint64_t{0});
    EXPECT_TRUE(entries(empty).value().empty());
}

TEST(Entries, UnknownKindsAreKeptAsOther) {
    const Blob b = one_entry(0x40, 90, 0x11, "something new");
    auto list = entries(b);
    ASSERT_TRUE(list.ok());
    EXPECT_EQ((*list)[0].kind, EntryKind::kOther);
    EXPECT_EQ(entries(one_entry(8, 90, 0x11, "ltoir")).value()[0].kind, EntryKind::kLtoIr);
}

TEST(Entries, GarbageAndWrappersAreRefusedByName) {
    EXPECT_EQ(entries(bytes("garbage")).error().code, Code::kParse);
    EXPECT_EQ(entries({}).error().code, Code::kParse);
    EXPECT_EQ(entries(bytes("\xb1\x43\x62\x46 wrapper of 24 bytes..")).error().code,
              Code::kInvalidArgument);
}

TEST(Contents, BadCompressedDataIsAnError) {
    const std::string junk = "this is not compressed data at all, not even nearly";
    const auto size = static_cast<uint32_t>(junk.size());
    for (const uint64_t flag : {uint64_t{0x2000}, uint64_t{0x8000}}) {
        for (const uint64_t claimed :
             {uint64_t{0}, uint64_t{10}, uint64_t{5000}, uint64_t{1} << 29, ~uint64_t{0}}) {
            const Blob b = one_entry(1, 90, flag, junk, size, claimed);
            auto list = entries(b);
            ASSERT_TRUE(list.ok());
            EXPECT_FALSE(contents((*list)[0]).ok()) << flag << " " << claimed;
        }
    }
    const Blob unknown = one_entry(1, 90, 0x11, junk, size, 100);
    EXPECT_EQ(contents(entries(unknown).value()[0]).error().code, Code::kUnsupported);
}

TEST(Contents, CutAndChangedFramesNeverGiveText) {
    for (const char* name : {"speed.fatbin", "size.fatbin"}) {
        const Blob file = read_file(name);
        auto list = entries(file);
        ASSERT_TRUE(list.ok());
        Entry e = (*list)[1];
        e.payload = e.payload.first(e.payload.size() / 2);
        EXPECT_FALSE(contents(e).ok()) << name;
        e = (*list)[1];
        e.uncompressed_size += 1;
        EXPECT_FALSE(contents(e).ok()) << name;
        e.uncompressed_size -= 2;
        EXPECT_FALSE(contents(e).ok()) << name;
    }
}

TEST(Contents, LimitIsKept) {
    const Blob file = read_file("size.fatbin");
    auto list = entries(file);
    ASSERT_TRUE(list.ok());
    EXPECT_EQ(contents((*list)[1], 100).error().code, Code::kExhausted);
    EXPECT_EQ(contents(entries(bytes(kPtx)).value()[0], 5).error().code, Code::kExhausted);
}

TEST(BestPtx, EqualArchitectureElseHighestBelow) {
    const auto entry = [](EntryKind kind, uint32_t arch, bool a = false, bool f = false) {
        Entry e;
        e.kind = kind;
        e.arch = arch;
        e.arch_specific = a;
        e.family_specific = f;
        return e;
    };
    const std::vector<Entry> list{entry(EntryKind::kPtx, 70),
                                  entry(EntryKind::kPtx, 80),
                                  entry(EntryKind::kElf, 90),
                                  entry(EntryKind::kPtx, 90, true),
                                  entry(EntryKind::kPtx, 100, false, true),
                                  entry(EntryKind::kPtx, 120)};
    EXPECT_EQ(best_ptx(list, 80)->arch, 80u);
    EXPECT_EQ(best_ptx(list, 87)->arch, 80u);
    EXPECT_EQ(best_ptx(list, 90)->arch, 90u);
    EXPECT_EQ(best_ptx(list, 103)->arch, 100u);  // same family
    EXPECT_EQ(best_ptx(list, 110)->arch,
              80u);  // neither the other family's nor another architecture's own PTX
    EXPECT_EQ(best_ptx(list, 121)->arch, 120u);
    EXPECT_EQ(best_ptx(list, 60), nullptr);
}

TEST(FatbinsInElf, ObjectFile) {
    const Blob file = read_file("object.o");
    auto found = fatbins_in_elf(file);
    ASSERT_TRUE(found.ok()) << found.error().str();
    ASSERT_EQ(found->size(), 1u);
    auto list = entries(found->front());
    ASSERT_TRUE(list.ok());
    ASSERT_EQ(list->size(), 2u);
    EXPECT_FALSE(fatbins_in_elf(std::span(file).first(100)).ok());
    EXPECT_FALSE(fatbins_in_elf(bytes("no elf")).ok());
}

TEST(FatbinsInElf, AmongConstantsAndBesideGarbage) {
    Blob file = read_file("object.o");
    // Hide the section's name, as in libraries that keep fat binaries in their data.
    const std::string_view name = ".nv_fatbin";
    auto text = test::text_of(file);
    for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1))
        file[at + 1] = std::byte{'x'}, file[at + 4] = std::byte{'x'};
    EXPECT_EQ(fatbins_in_elf(file).value().size(), 1u);
    // A magic number with nonsense behind it is no fat binary.
    const std::string magic("\x50\xed\x55\xba", 4);
    const size_t at = text.find(magic);
    ASSERT_NE(at, std::string::npos);
    put<uint32_t>(file, at + 20, 3);
    EXPECT_TRUE(fatbins_in_elf(file).value().empty());
}

}  // namespace
}  // namespace ttt::image
