// The shared page as another process sees it: revoked by one store, dead sessions grant nothing.
#include "ipc/lease_page.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ttt::ipc {
namespace {

using std::chrono::milliseconds;
constexpr uint64_t kMs = 1'000'000;

struct LeasePageTest : testing::Test {
    void SetUp() override {
        auto made = LeasePage::create(64);
        ASSERT_TRUE(made.ok());
        session.emplace(std::move(*made));
        auto mapped = LeasePage::map(Fd(::dup(session->fd())));
        ASSERT_TRUE(mapped.ok());
        reader.emplace(std::move(*mapped));
    }
    void open_for(uint64_t ms) {
        session->words().until_ns.store(lease_clock_ns() + ms * kMs);
        session->words().beat_ns.store(lease_clock_ns());
    }
    std::optional<LeasePage> session, reader;
};

TEST_F(LeasePageTest, DescriptorsKeepAwayFromTheProgramsNumbers) {
    EXPECT_GE(session->fd(), 64);
    EXPECT_NE(::fcntl(session->fd(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST_F(LeasePageTest, GrantsWorkThatFits) {
    EXPECT_FALSE(reader->granted(milliseconds(0))) << "a new page";
    open_for(1000);
    EXPECT_TRUE(reader->granted(milliseconds(0)));
    EXPECT_TRUE(reader->granted(milliseconds(500)));
    EXPECT_FALSE(reader->granted(milliseconds(1001)));
}

TEST_F(LeasePageTest, OneStoreOfTheLaunchPathRevokes) {
    open_for(1000);
    session->words().busy.store(1, std::memory_order_relaxed);
    EXPECT_FALSE(reader->granted(milliseconds(0)));
}

TEST_F(LeasePageTest, ADeadOrStoppedSessionGrantsNothing) {
    open_for(100000);
    session->words().beat_ns.store(lease_clock_ns() - 2 * 200 * kMs);
    EXPECT_FALSE(reader->granted(milliseconds(0)));
    // A session that died: its page stays as it was, and goes stale.
    open_for(100000);
    const pid_t child = ::fork();
    if (child == 0) {
        session->words().beat_ns.store(lease_clock_ns());
        ::_exit(0);
    }
    ::waitpid(child, nullptr, 0);
    EXPECT_TRUE(reader->granted(milliseconds(0))) << "too early to tell";
    ::usleep(250000);
    EXPECT_FALSE(reader->granted(milliseconds(0)));
}

TEST_F(LeasePageTest, ProofsAreOddWhileOneRuns) {
    reader->begin_proof();
    EXPECT_EQ(session->words().proofs.load() % 2, 1u);
    reader->end_proof();
    EXPECT_EQ(session->words().proofs.load(), 2u);
    reader->end_proof();  // after a kill, by whoever cleans up: never odd
    EXPECT_EQ(session->words().proofs.load() % 2, 0u);
    reader->begin_proof();
    reader->begin_proof();  // one that never ended
    EXPECT_EQ(session->words().proofs.load() % 2, 1u);
}

TEST(LeasePage, OtherDescriptorsAreRefused) {
    EXPECT_FALSE(LeasePage::map(Fd()).ok());
    EXPECT_FALSE(LeasePage::map(Fd(::open("/dev/null", O_RDWR))).ok());
    Fd cuttable(::memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    ASSERT_EQ(::ftruncate(cuttable.get(), 4096), 0);
    EXPECT_FALSE(LeasePage::map(std::move(cuttable)).ok()) << "its owner could make us fault";
}

}  // namespace
}  // namespace ttt::ipc
