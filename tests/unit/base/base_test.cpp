#include <gtest/gtest.h>

#include <cstdlib>

#include "base/config.h"
#include "base/hash.h"
#include "base/result.h"

namespace ttt {
namespace {

Result<int> half(int x) {
    if (x % 2 != 0) return make_error(Code::kInvalidArgument, "odd");
    return x / 2;
}

Result<int> quarter(int x) {
    TTT_TRY(const int h, half(x));
    TTT_TRY(const int q, half(h));
    return q;
}

TEST(Result, PropagatesTheFirstError) {
    EXPECT_EQ(*quarter(8), 2);
    const auto r = quarter(6);
    ASSERT_FALSE(r.ok());
    EXPECT_EQ(r.error().message, "odd");
}

TEST(Error, ContextReadsFromOutside) {
    const Error e =
        make_error(Code::kIo, "no such file").with("reading x").with("loading the store");
    EXPECT_EQ(e.str(), "loading the store: reading x: no such file");
}

TEST(Hash, KnownValuesOfSplitmix64) {
    // First outputs of the published generator seeded with 0 and 1234567: state += golden gamma,
    // then mixed.
    EXPECT_EQ(splitmix64(0), 0xE220A8397B1DCDAFull);
    EXPECT_EQ(splitmix64(1234567), 0x599ED017FB08FC85ull);
}

TEST(Hash, DiffersByContentAndSeed) {
    EXPECT_EQ(hash_text("abc"), hash_text("abc"));
    EXPECT_NE(hash_text("abc"), hash_text("abd"));
    EXPECT_NE(hash_text("abc", 1), hash_text("abc", 2));
    EXPECT_EQ(hash_text("abc").hex().size(), 32u);
}

TEST(Config, ReadsTheTableAndNamesBadValues) {
    setenv("TTT_MODE", "tune", 1);
    setenv("TTT_SLICE_US", "twenty", 1);
    setenv("TTT_FOREGROUND", "2.5", 1);
    std::string problems;
    const Config c = Config::from_environment(&problems);
    unsetenv("TTT_MODE");
    unsetenv("TTT_SLICE_US");
    unsetenv("TTT_FOREGROUND");
    EXPECT_EQ(c.mode, "tune");
    EXPECT_EQ(c.slice_us, 20);
    EXPECT_DOUBLE_EQ(c.foreground, 2.5);
    EXPECT_NE(problems.find("TTT_SLICE_US=twenty"), std::string::npos);
}

TEST(Config, NumbersAreFiniteAndNotNegative) {
    for (const char* bad : {"nan", "inf", "-inf", "-1", "1e999", "0.02x"}) {
        setenv("TTT_TOLL", bad, 1);
        setenv("TTT_CANARY_S", bad, 1);
        setenv("TTT_SLICE_US", bad, 1);
        std::string problems;
        const Config c = Config::from_environment(&problems);
        EXPECT_EQ(c.toll, Config().toll) << bad;
        EXPECT_EQ(c.canary_s, Config().canary_s) << bad;
        EXPECT_EQ(c.slice_us, Config().slice_us) << bad;
        for (const char* name : {"TTT_TOLL", "TTT_CANARY_S", "TTT_SLICE_US"})
            EXPECT_NE(problems.find(std::string(name) + "=" + bad), std::string::npos) << problems;
    }
    for (const char* name : {"TTT_TOLL", "TTT_CANARY_S", "TTT_SLICE_US"}) unsetenv(name);
}

}  // namespace
}  // namespace ttt
