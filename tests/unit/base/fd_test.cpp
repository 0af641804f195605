#include "base/fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

namespace ttt {
namespace {

int open_file() { return ::memfd_create("ttt-test", MFD_CLOEXEC); }
bool is_open(int fd) { return ::fcntl(fd, F_GETFD) != -1; }

TEST(Fd, ClosesWhatItOwns) {
    const int number = open_file();
    {
        const Fd fd(number);
        EXPECT_TRUE(fd.ours());
    }
    EXPECT_FALSE(is_open(number));
}

TEST(Fd, MovesWithItsIdentity) {
    Fd a(open_file());
    const int number = a.get();
    Fd b(std::move(a));
    EXPECT_FALSE(a.valid());
    EXPECT_TRUE(b.ours());
    Fd c;
    c = std::move(b);
    EXPECT_EQ(c.get(), number);
    EXPECT_TRUE(c.ours());
    c.reset();
    EXPECT_FALSE(is_open(number));
}

TEST(Fd, LeavesAloneWhatAnotherPutOnItsNumber) {
    const int other = open_file();
    int number = -1;
    {
        Fd fd(open_file());
        number = fd.get();
        ASSERT_EQ(::dup2(other, number), number);
        EXPECT_FALSE(fd.ours());
    }
    EXPECT_TRUE(is_open(number)) << "the other's file was closed";
    ::close(number);
    ::close(other);
}

TEST(Fd, ANumberThatWasClosedIsNotOurs) {
    Fd fd(open_file());
    ::close(fd.get());
    EXPECT_FALSE(fd.ours());
    EXPECT_FALSE(Fd().ours());
    EXPECT_FALSE(Fd(-1).valid());
}

}  // namespace
}  // namespace ttt
