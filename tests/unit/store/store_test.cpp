#include "store/store.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace ttt::store {
namespace {

namespace fs = std::filesystem;

class StoreFile : public testing::Test {
  protected:
    void SetUp() override {
        dir_ = fs::temp_directory_path() / ("ttt-store-" + std::to_string(::getpid()));
        fs::remove_all(dir_);
        path_ = (dir_ / "deep" / "store.db").string();
    }
    void TearDown() override { fs::remove_all(dir_); }
    fs::path dir_;
    std::string path_;
};

Key key() {
    return {hash_text("kernel"), hash_text("site"), "n=4", "H200", "580.1", "nvJitLink 13.0"};
}

TEST_F(StoreFile, KeepsAWinnerAcrossOpens) {
    {
        auto s = Store::open(path_);
        ASSERT_TRUE(s.ok()) << s.error().str();
        ASSERT_TRUE((*s)->put(key(), {"registers(max=48)", 1.5, "100 pairs"}).ok());
    }
    auto s = Store::open(path_);
    ASSERT_TRUE(s.ok());
    auto w = (*s)->get(key());
    ASSERT_TRUE(w.ok() && w->has_value());
    EXPECT_EQ((*w)->recipe, "registers(max=48)");
    EXPECT_DOUBLE_EQ((*w)->speedup, 1.5);
    EXPECT_EQ((*w)->evidence, "100 pairs");
}

TEST_F(StoreFile, EveryKeyFieldMatters) {
    auto s = Store::open(":memory:");
    ASSERT_TRUE(s.ok());
    ASSERT_TRUE((*s)->put(key(), {"r", 2, ""}).ok());
    std::vector<Key> others(6, key());
    others[0].kernel = hash_text("other");
    others[1].site = hash_text("other");
    others[2].guard = "n=5";
    others[3].gpu = "Orin";
    others[4].driver = "581";
    others[5].compiler = "ptxas";
    for (const Key& k : others) {
        auto w = (*s)->get(k);
        ASSERT_TRUE(w.ok());
        EXPECT_FALSE(w->has_value());
    }
}

TEST_F(StoreFile, ReplacesAndRemoves) {
    auto s = Store::open(":memory:");
    ASSERT_TRUE(s.ok());
    ASSERT_TRUE((*s)->put(key(), {"a", 2, ""}).ok());
    ASSERT_TRUE((*s)->put(key(), {"b", 3, "it's \"quoted\""}).ok());
    auto w = (*s)->get(key());
    ASSERT_TRUE(w.ok() && w->has_value());
    EXPECT_EQ((*w)->recipe, "b");
    EXPECT_EQ((*w)->evidence, "it's \"quoted\"");
    ASSERT_TRUE((*s)->remove(key()).ok());
    w = (*s)->get(key());
    ASSERT_TRUE(w.ok());
    EXPECT_FALSE(w->has_value());
}

TEST_F(StoreFile, DamagedFileIsAnError) {
    fs::create_directories(fs::path(path_).parent_path());
    std::ofstream(path_) << std::string(8192, 'z');
    auto s = Store::open(path_);
    ASSERT_FALSE(s.ok());
    EXPECT_NE(s.error().str().find(path_), std::string::npos);
}

TEST_F(StoreFile, CutFileNeverCrashes) {
    {
        auto s = Store::open(path_);
        ASSERT_TRUE(s.ok());
        ASSERT_TRUE((*s)->put(key(), {"a", 2, ""}).ok());
    }
    const auto size = fs::file_size(path_);
    for (uintmax_t keep : {size / 2, size / 3, uintmax_t{100}, uintmax_t{10}}) {
        fs::resize_file(path_, keep);
        auto s = Store::open(path_);
        if (!s.ok()) continue;
        auto w = (*s)->get(key());
        EXPECT_FALSE(w.ok() && w->has_value()) << "a cut file gave a winner";
    }
}

TEST_F(StoreFile, NewerSchemaIsRefusedByName) {
    {
        auto s = Store::open(path_);
        ASSERT_TRUE(s.ok());
    }
    std::fstream f(path_, std::ios::in | std::ios::out | std::ios::binary);
    f.seekp(60);  // user_version in the file header, big endian
    const char version[4] = {0, 0, 0, 99};
    f.write(version, 4);
    f.close();
    auto s = Store::open(path_);
    ASSERT_FALSE(s.ok());
    EXPECT_EQ(s.error().code, Code::kUnsupported);
}

TEST_F(StoreFile, TwoWritersShareTheFile) {
    auto a = Store::open(path_);
    auto b = Store::open(path_);
    ASSERT_TRUE(a.ok() && b.ok());
    Key other = key();
    other.guard = "n=9";
    ASSERT_TRUE((*a)->put(key(), {"a", 2, ""}).ok());
    ASSERT_TRUE((*b)->put(other, {"b", 2, ""}).ok());
    auto w = (*a)->get(other);
    ASSERT_TRUE(w.ok() && w->has_value());
    EXPECT_EQ((*w)->recipe, "b");
}

TEST_F(StoreFile, UnwritableDirectoryIsAnError) {
    auto s = Store::open("/proc/ttt/store.db");
    ASSERT_FALSE(s.ok());
    EXPECT_EQ(s.error().code, Code::kIo);
}

}  // namespace
}  // namespace ttt::store
