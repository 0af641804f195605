// Modules found by their bytes in the caches that Triton and TorchInductor keep.
#include "tuner/kernel_caches.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "image/image.h"
#include "ipc/channel.h"
#include "tuner/modules.h"

namespace ttt::tuner {
namespace {

namespace fs = std::filesystem;

struct KernelCaches : testing::Test {
    void SetUp() override {
        root = fs::path(testing::TempDir()) / ("ttt_caches_" + std::to_string(getpid()));
        fs::create_directories(root);
    }
    void TearDown() override { fs::remove_all(root); }
    void put(const fs::path& file, std::string_view text) const {
        fs::create_directories((root / file).parent_path());
        std::ofstream(root / file, std::ios::binary) << text;
    }
    std::optional<CachedPtx> find(std::string_view cubin) const {
        return find_in_caches(std::as_bytes(std::span(cubin)), {root});
    }
    fs::path root;
};

TEST_F(KernelCaches, FindsTheTextBesideTheSameBytes) {
    put("aaa/k.cubin", "code one");
    put("aaa/k.ptx", ".version 8.0 // one");
    put("triton/0/bbb/k.cubin", "code two");
    put("triton/0/bbb/k.ptx", ".version 8.0 // two");
    const auto one = find("code one"), two = find("code two");
    ASSERT_TRUE(one && two);
    EXPECT_EQ(one->ptx, ".version 8.0 // one");
    EXPECT_EQ(two->ptx, ".version 8.0 // two");
    EXPECT_EQ(two->file, root / "triton/0/bbb/k.ptx");
    EXPECT_FALSE(find("code six")) << "same size, other bytes";
}

TEST_F(KernelCaches, IncompleteAndOddEntriesAreNoAnswer) {
    put("aaa/k.cubin", "code one");  // no text beside it
    put("bbb/k.ptx", ".version 8.0");
    fs::create_directories(root / "ccc/k.cubin");
    put("ddd/k.cubin", "code six");
    for (const char* fifo : {"ddd/k.ptx", "ddd/j.cubin"})  // nobody writes: reading would wait
        ASSERT_EQ(::mkfifo((root / fifo).c_str(), 0600), 0);
    EXPECT_FALSE(find("code six"));
    fs::create_directory_symlink(root, root / "loop");
    put("1/2/3/4/5/6/k.cubin", "deep");
    put("1/2/3/4/5/6/k.ptx", ".version 8.0");
    EXPECT_FALSE(find("code one"));
    EXPECT_FALSE(find("")) << "no bytes, no answer";
    EXPECT_FALSE(find("deep"));
    EXPECT_FALSE(find_in_caches({}, {root / "missing"}));
}

TEST_F(KernelCaches, FoldersComeFromTheProgramsEnvironment) {
    fs::create_directories(root / "triton");
    fs::create_directories(root / "inductor");
    setenv("TRITON_CACHE_DIR", (root / "triton").c_str(), 1);
    setenv("TORCHINDUCTOR_CACHE_DIR", (root / "inductor").c_str(), 1);
    EXPECT_EQ(kernel_cache_folders(), (std::vector<fs::path>{root / "triton", root / "inductor"}));
    fs::remove(root / "inductor");
    EXPECT_EQ(kernel_cache_folders(), (std::vector<fs::path>{root / "triton"}));
    unsetenv("TRITON_CACHE_DIR");
    unsetenv("TORCHINDUCTOR_CACHE_DIR");
}

std::vector<std::byte> read_cubin() {
    std::ifstream in(std::string(TTT_SOURCE_DIR) + "/tests/data/image/probe_90.cubin",
                     std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(in), {});
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
}

TEST(Modules, MachineCodeAloneHasThePtxItsCompilerTold) {
    const auto cubin = read_cubin();
    const std::string ptx =
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{ ret; }\n";
    const auto image = ipc::make_memfd("image", cubin);
    const auto text = ipc::make_memfd("ptx", std::as_bytes(std::span(ptx)));
    ASSERT_TRUE(image.ok() && text.ok());
    Modules without, with;
    ASSERT_TRUE(without.add(1, *image, cubin.size(), -1, -1, "").ok());
    EXPECT_FALSE(without.code(1, 90)->ptx);
    EXPECT_EQ(without.code(1, 90)->no_ptx, "its module holds machine code only (cubin, no PTX)");

    const auto codes = image::code_identities(cubin);
    ASSERT_EQ(codes.size(), 1u);
    EXPECT_FALSE(with.add_source(codes, *text, ptx.size() + 1, "NVRTC", "").ok()) << "lying size";
    EXPECT_FALSE(with.add_source(codes, Fd(), ptx.size(), "NVRTC", "").ok());

    Modules linked;
    ASSERT_TRUE(linked.add_source(codes, Fd(), 0, "nvJitLink made it from LTO-IR", "").ok());
    ASSERT_TRUE(linked.add(1, *image, cubin.size(), -1, -1, "").ok());
    EXPECT_EQ(linked.code(1, 90)->no_ptx,
              "its module holds machine code only: nvJitLink made it from LTO-IR");
    ASSERT_TRUE(with.add_source(codes, *text, ptx.size(), "NVRTC", "--maxrregcount=40 -G").ok());
    ASSERT_TRUE(with.add(1, *image, cubin.size(), -1, -1, "").ok());
    const auto code = with.code(1, 90);
    ASSERT_TRUE(code->ptx);
    EXPECT_NE(code->ptx->find("k"), nullptr);
    EXPECT_TRUE(code->has_machine_code);
    EXPECT_EQ(code->option_max_registers, 40u);
    EXPECT_EQ(code->ptx_origin, "from NVRTC in the program (--maxrregcount=40 -G)");
}

}  // namespace
}  // namespace ttt::tuner
