#include "session/function_table.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace ttt::session {
namespace {

CUfunction handle(uintptr_t n) { return reinterpret_cast<CUfunction>(n * 16); }

std::unique_ptr<Function> entry(uintptr_t n, uint64_t epoch) {
    auto f = std::make_unique<Function>();
    f->handle = handle(n);
    f->kernel_id = n;
    f->valid_epoch.store(epoch);
    return f;
}

TEST(FunctionTable, FindsWhatWasInsertedAndNothingElse) {
    FunctionTable t;
    EXPECT_EQ(t.find(handle(1)), nullptr);
    EXPECT_EQ(t.find(nullptr), nullptr);
    for (uintptr_t i = 1; i <= 2000; ++i) t.insert(entry(i, t.epoch()));
    for (uintptr_t i = 1; i <= 2000; ++i) {
        ASSERT_NE(t.find(handle(i)), nullptr) << i;
        EXPECT_EQ(t.find(handle(i))->kernel_id, i);
    }
    EXPECT_EQ(t.find(handle(2001)), nullptr);
    EXPECT_EQ(t.all().size(), 2000u);
}

TEST(FunctionTable, AnUnloadHidesEverythingUntilRenewed) {
    FunctionTable t;
    Function* kept = t.insert(entry(1, t.epoch()));
    Function* dropped = t.insert(entry(2, t.epoch()));
    const uint64_t epoch = t.advance_epoch();
    EXPECT_EQ(t.find(handle(1)), nullptr);
    EXPECT_EQ(t.find(handle(2)), nullptr);
    FunctionTable::kill(dropped);
    t.renew(epoch);
    EXPECT_EQ(t.find(handle(1)), kept);
    EXPECT_EQ(t.find(handle(2)), nullptr) << "a dead entry stays dead";
}

TEST(FunctionTable, AReusedHandleGetsItsNewMeaning) {
    FunctionTable t;
    Function* old = t.insert(entry(5, t.epoch()));
    FunctionTable::kill(old);
    auto fresh = entry(5, t.epoch());
    fresh->kernel_id = 99;
    t.insert(std::move(fresh));
    EXPECT_EQ(t.find(handle(5))->kernel_id, 99u);
    EXPECT_EQ(t.all().size(), 1u);
}

TEST(FunctionTable, ReadersNeverSeeAWrongEntryWhileItGrows) {
    FunctionTable t;
    std::atomic<bool> stop{false};
    std::atomic<int> wrong{0};
    std::thread reader([&] {
        while (!stop.load())
            for (uintptr_t i = 1; i <= 3000; i += 7)
                if (const Function* f = t.find(handle(i)); f != nullptr && f->kernel_id != i)
                    wrong.fetch_add(1);
    });
    for (uintptr_t i = 1; i <= 3000; ++i) t.insert(entry(i, t.epoch()));
    stop.store(true);
    reader.join();
    EXPECT_EQ(wrong.load(), 0);
}

}  // namespace
}  // namespace ttt::session
