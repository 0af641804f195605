#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "fixtures.h"
#include "image/image.h"

namespace ttt::image {
namespace {

using test::Blob;
using test::read_file;

struct Expected {
    uint32_t registers, stack, shared;
    std::vector<uint32_t> counts;
};

// file → kernel or function → what NVIDIA's disassembler said (tests/data/image/make.sh).
std::map<std::string, std::map<std::string, Expected>> expectations() {
    std::map<std::string, std::map<std::string, Expected>> out;
    std::istringstream lines(test::text_of(read_file("expected.txt")));
    for (std::string line; std::getline(lines, line);) {
        if (line.empty() || line[0] == '#') continue;
        std::istringstream words(line);
        std::string file, kernel;
        Expected e{};
        words >> file >> kernel >> e.registers >> e.stack >> e.shared;
        for (uint32_t n = 0; words >> n;) e.counts.push_back(n);
        out[file][kernel] = e;
    }
    return out;
}

std::vector<uint32_t> counts(const KernelCode& k) {
    return {k.ffma, k.fmul, k.fadd, k.dfma, k.dmul, k.dadd, k.hfma, k.mufu, k.bar, k.instructions};
}

TEST(Cubin, AgreesWithTheDisassemblerOnEveryArchitecture) {
    const auto all = expectations();
    ASSERT_EQ(all.size(), 8u);
    for (const auto& [file, kernels] : all) {
        if (file == "linked_90.cubin") continue;
        const Blob bytes = read_file(file);
        auto cubin = read_cubin(bytes);
        ASSERT_TRUE(cubin.ok()) << file << ": " << cubin.error().str();
        EXPECT_EQ(cubin->kernels.size(), kernels.size()) << file;
        for (const KernelCode& k : cubin->kernels) {
            ASSERT_TRUE(kernels.contains(k.name)) << file << " " << k.name;
            const Expected& e = kernels.at(k.name);
            EXPECT_EQ(k.registers, e.registers) << file << " " << k.name;
            EXPECT_EQ(k.local_bytes, e.stack) << file << " " << k.name;
            EXPECT_EQ(k.shared_bytes, e.shared) << file << " " << k.name;
            EXPECT_EQ(counts(k), e.counts) << file << " " << k.name;
            EXPECT_EQ(k.text.size(), size_t{k.instructions} * 16) << file << " " << k.name;
        }
    }
}

TEST(Cubin, ParametersBoundsAndBarriers) {
    for (const char* name :
         {"probe_75.cubin", "probe_90.cubin", "probe_120.cubin", "older_90.cubin"}) {
        const Blob bytes = read_file(name);
        auto cubin = read_cubin(bytes);
        ASSERT_TRUE(cubin.ok()) << name;
        EXPECT_EQ(cubin->abi, std::string(name) == "older_90.cubin" ? 7 : 8);
        for (const KernelCode& k : cubin->kernels) {
            if (k.name != "doubles") {
                EXPECT_EQ(k.barriers, 0u) << name << " " << k.name;
                continue;
            }
            const std::vector<std::pair<uint32_t, uint32_t>> params{{0, 8}, {8, 8}, {16, 4}};
            EXPECT_EQ(k.params, params) << name;
            EXPECT_EQ(k.param_bytes, 20u) << name;
            EXPECT_EQ(k.max_threads, 64u) << name;
            EXPECT_EQ(k.barriers, 2u) << name;
        }
    }
}

TEST(Cubin, CalleesCountWithTheirKernel) {
    const Blob bytes = read_file("linked_90.cubin");
    auto cubin = read_cubin(bytes);
    ASSERT_TRUE(cubin.ok());
    ASSERT_EQ(cubin->kernels.size(), 1u);
    ASSERT_EQ(cubin->functions.size(), 1u);
    const auto expected = expectations().at("linked_90.cubin");
    const KernelCode& k = cubin->kernels[0];
    EXPECT_EQ(k.calls, std::vector<std::string>{"scale"});
    EXPECT_EQ(k.fmul, expected.at("caller").counts[1] + expected.at("scale").counts[1]);
    EXPECT_EQ(k.fadd, expected.at("caller").counts[2]);
    EXPECT_EQ(k.instructions, expected.at("caller").counts[9] + expected.at("scale").counts[9]);
    EXPECT_GT(k.fmul, 0u);
}

// Hand-written kernels of cuBLAS have no register record, only the count in the section header.
TEST(Cubin, RegistersFromTheSectionHeader) {
    Blob b = read_file("probe_90.cubin");
    for (size_t i = 0; i + 12 <= b.size(); i += 4) {
        const auto word = [&](size_t at) {
            uint32_t w = 0;
            std::memcpy(&w, b.data() + at, 4);
            return w;
        };
        if (word(i) == 0x00082F04)
            test::put<uint32_t>(b, i, 0x00087F04);  // make the records unknown ones
    }
    ASSERT_EQ(read_cubin(b).value().kernels[0].registers, 0u);
    const auto sections = static_cast<size_t>([&] {
        uint64_t at = 0;
        std::memcpy(&at, b.data() + 0x28, 8);
        return at;
    }());
    for (size_t at = sections; at + 64 <= b.size(); at += 64) {
        uint64_t flags = 0;
        std::memcpy(&flags, b.data() + at + 8, 8);
        if ((flags & 4) != 0)
            test::put<uint8_t>(b, at + 47, 77);  // executable section: top byte of sh_info
    }
    const auto bent = read_cubin(b);
    ASSERT_TRUE(bent.ok());
    for (const KernelCode& k : bent->kernels) EXPECT_EQ(k.registers, 77u) << k.name;
}

// NCCL's cubins end in a shared-memory section that has a size but no bytes.
TEST(Cubin, SharedSectionsWithoutBytes) {
    Blob b = read_file("probe_90.cubin");
    uint64_t sections = 0;
    std::memcpy(&sections, b.data() + 0x28, 8);
    bool bent = false;
    for (size_t at = static_cast<size_t>(sections); at + 64 <= b.size(); at += 64) {
        uint32_t type = 0;
        std::memcpy(&type, b.data() + at + 4, 4);
        if (type != 8) continue;
        test::put<uint32_t>(b, at + 4, 0x7000000A);
        test::put<uint64_t>(b, at + 24, b.size());
        bent = true;
    }
    ASSERT_TRUE(bent);
    auto cubin = read_cubin(b);
    ASSERT_TRUE(cubin.ok()) << cubin.error().str();
    EXPECT_EQ(cubin->kernels.size(), 3u);
    auto copy = copy_foreign(b.data());
    ASSERT_TRUE(copy.ok()) << copy.error().str();
    EXPECT_EQ(copy->front().size(), b.size());
}

TEST(Cubin, EveryCutIsAnErrorOrLosesNothing) {
    const Blob whole = read_file("probe_90.cubin");
    const size_t table = 10928;  // where the program headers, which are not needed, begin
    for (size_t n = 0; n < whole.size(); n += n < 256 ? 1 : 61) {
        auto cubin = read_cubin(std::span(whole).first(n));
        if (!cubin.ok()) continue;
        EXPECT_GE(n, table);
        EXPECT_EQ(cubin->kernels.size(), 3u) << n;
    }
}

TEST(Cubin, ChangedBytesNeverCrash) {
    const Blob whole = read_file("linked_90.cubin");
    uint64_t seed = 1;
    for (int round = 0; round < 4000; ++round) {
        Blob b = whole;
        for (int k = 0; k < 4; ++k) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            b[(seed >> 20) % b.size()] = static_cast<std::byte>(seed >> 56);
        }
        auto cubin = read_cubin(b);
        EXPECT_TRUE(cubin.ok() || !cubin.error().message.empty());
    }
}

TEST(Cubin, HostProgramsAreNoCubins) {
    const Blob bytes = read_file("object.o");
    EXPECT_EQ(read_cubin(bytes).error().code, Code::kUnsupported);
}

}  // namespace
}  // namespace ttt::image
