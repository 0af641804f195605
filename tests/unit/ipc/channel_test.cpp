#include "ipc/channel.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <cstring>
#include <thread>

namespace ttt::ipc {
namespace {

struct Pair {
    Channel a, b;
};

Pair make() {
    auto p = Channel::make_pair();
    EXPECT_TRUE(p.ok());
    return {std::move(p->first), std::move(p->second)};
}

Status send_done(Channel& c, uint64_t site, const std::string& reason, int fd = -1,
                 int timeout_ms = 2000) {
    flatbuffers::FlatBufferBuilder b;
    return c.send(b, CreateSiteDoneDirect(b, site, reason.c_str()), fd, timeout_ms);
}

// The bytes a well-formed sender would write, for tests that then damage them.
std::vector<char> wire(const std::string& reason) {
    auto p = make();
    EXPECT_TRUE(send_done(p.a, 7, reason).ok());
    std::vector<char> out(1 << 16);
    const ssize_t n = ::recv(p.b.fd(), out.data(), out.size(), MSG_DONTWAIT);
    EXPECT_GT(n, 16);
    out.resize(static_cast<size_t>(n));
    return out;
}

void write_raw(Channel& c, const void* data, size_t bytes) {
    ASSERT_EQ(::send(c.fd(), data, bytes, MSG_NOSIGNAL), static_cast<ssize_t>(bytes));
}

void send_fds(Channel& c, const std::vector<char>& bytes, std::vector<int> fds) {
    std::vector<char> control(CMSG_SPACE(fds.size() * sizeof(int)));
    iovec part{const_cast<char*>(bytes.data()), bytes.size()};
    msghdr m{};
    m.msg_iov = &part;
    m.msg_iovlen = 1;
    m.msg_control = control.data();
    m.msg_controllen = control.size();
    cmsghdr* h = CMSG_FIRSTHDR(&m);
    h->cmsg_level = SOL_SOCKET;
    h->cmsg_type = SCM_RIGHTS;
    h->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
    std::memcpy(CMSG_DATA(h), fds.data(), fds.size() * sizeof(int));
    ASSERT_EQ(::sendmsg(c.fd(), &m, MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
}

int open_descriptors() {
    int n = 0;
    for (int fd = 0; fd < 256; ++fd) n += ::fcntl(fd, F_GETFD) != -1;
    return n;
}

TEST(Channel, CarriesAMessage) {
    auto p = make();
    ASSERT_TRUE(send_done(p.a, 42, "not worth it").ok());
    auto r = p.b.receive(1000);
    ASSERT_TRUE(r.ok());
    ASSERT_TRUE(r->has_value());
    const auto* done = (*r)->message()->payload_as_SiteDone();
    ASSERT_NE(done, nullptr);
    EXPECT_EQ(done->site_id(), 42u);
    EXPECT_EQ(text(done->reason()), "not worth it");
    EXPECT_FALSE((*r)->fd.valid());
}

TEST(Channel, CarriesADescriptorCloseOnExec) {
    auto p = make();
    const char content[] = "module";
    auto memfd = make_memfd("t", std::as_bytes(std::span(content)));
    ASSERT_TRUE(memfd.ok());
    ASSERT_TRUE(send_done(p.a, 1, "x", memfd->get()).ok());
    ASSERT_TRUE(send_done(p.a, 2, "y").ok());
    auto r = p.b.receive(1000);
    ASSERT_TRUE(r.ok() && r->has_value());
    ASSERT_TRUE((*r)->fd.valid());
    EXPECT_NE(::fcntl((*r)->fd.get(), F_GETFD) & FD_CLOEXEC, 0);
    auto back = read_memfd((*r)->fd.get(), 100);
    ASSERT_TRUE(back.ok());
    EXPECT_EQ(std::memcmp(back->data(), content, sizeof content), 0);
    auto second = p.b.receive(1000);
    ASSERT_TRUE(second.ok() && second->has_value());
    EXPECT_FALSE((*second)->fd.valid());
}

TEST(Channel, TimesOutAndKeepsAPartialMessage) {
    auto p = make();
    auto none = p.b.receive(0);
    ASSERT_TRUE(none.ok());
    EXPECT_FALSE(none->has_value());
    const auto bytes = wire("split");
    for (size_t i = 0; i < bytes.size(); ++i) {
        auto r = p.b.receive(0);
        ASSERT_TRUE(r.ok());
        ASSERT_FALSE(r->has_value()) << "complete after " << i << " bytes";
        write_raw(p.a, &bytes[i], 1);
    }
    auto r = p.b.receive(1000);
    ASSERT_TRUE(r.ok() && r->has_value());
    EXPECT_EQ(text((*r)->message()->payload_as_SiteDone()->reason()), "split");
}

TEST(Channel, BigMessageThroughASmallSocketBuffer) {
    auto p = make();
    const std::string big(size_t{9} << 20, 'x');
    std::thread sender([&] { EXPECT_TRUE(send_done(p.a, 3, big, -1, 20000).ok()); });
    auto r = p.b.receive(20000);
    sender.join();
    ASSERT_TRUE(r.ok() && r->has_value());
    EXPECT_EQ((*r)->message()->payload_as_SiteDone()->reason()->size(), big.size());
}

TEST(Channel, SenderDoesNotBlockForEver) {
    auto p = make();
    const std::string big(size_t{4} << 20, 'x');
    auto s = send_done(p.a, 3, big, -1, 50);
    ASSERT_FALSE(s.ok());
    EXPECT_EQ(s.error().code, Code::kTimeout);
    EXPECT_FALSE(p.a.open()) << "half a message was sent: nothing may follow it";
}

TEST(Channel, TimeoutWithNothingSentLeavesItUsable) {
    auto p = make();
    const std::string filler(4000, 'f');
    Status s = ok_status();
    while ((s = send_done(p.a, 1, filler, -1, 0)).ok()) {
    }
    if (!p.a.open()) GTEST_SKIP() << "socket buffer filled up inside a message";
    EXPECT_EQ(s.error().code, Code::kTimeout);
    ASSERT_TRUE(p.b.receive(1000).ok());
    ASSERT_TRUE(p.b.receive(1000).ok());
    ASSERT_TRUE(p.b.receive(1000).ok());
    EXPECT_TRUE(send_done(p.a, 2, "later", -1, 0).ok());
}

// A program may close every descriptor it does not know, or put its own file on the number.
TEST(Channel, NeverTouchesAnotherFileOnItsNumber) {
    auto p = make();
    auto mine = make();
    ASSERT_EQ(::send(mine.b.fd(), "MINE", 4, MSG_NOSIGNAL), 4);
    ASSERT_EQ(::dup2(mine.a.fd(), p.a.fd()), p.a.fd());
    EXPECT_FALSE(p.a.receive(0).ok());
    EXPECT_FALSE(send_done(p.a, 1, "x").ok());
    const int number = p.a.fd();
    p.a.close();
    char text[8] = {};
    EXPECT_EQ(::recv(mine.b.fd(), text, sizeof text, MSG_DONTWAIT), -1)
        << "a message in a stranger's socket";
    EXPECT_EQ(::recv(number, text, sizeof text, MSG_DONTWAIT), 4)
        << "bytes taken, or the socket closed or shut down";
    EXPECT_EQ(std::string(text), "MINE");
    ::close(number);
}

TEST(Channel, EofIsAnErrorAndNoSignal) {
    auto p = make();
    p.a.close();
    auto r = p.b.receive(1000);
    ASSERT_FALSE(r.ok());
    EXPECT_EQ(r.error().code, Code::kIo);
    EXPECT_FALSE(p.b.open());
    EXPECT_FALSE(send_done(p.b, 1, "nobody").ok());
}

TEST(Channel, WriteToADeadPeerRaisesNoSignal) {
    auto p = make();
    p.b.close();
    auto s = send_done(p.a, 1, "nobody");  // SIGPIPE would kill the test
    ASSERT_FALSE(s.ok());
    EXPECT_EQ(s.error().code, Code::kIo);
}

TEST(Channel, RefusesGarbageHeaders) {
    const auto good = wire("x");
    const size_t fields[] = {0, 4, 8};  // magic, flags, size
    for (size_t at : fields) {
        auto p = make();
        auto bytes = good;
        for (size_t i = 0; i < 4; ++i) bytes[at + i] = '\xff';
        write_raw(p.a, bytes.data(), bytes.size());
        auto r = p.b.receive(1000);
        ASSERT_FALSE(r.ok()) << at;
        EXPECT_EQ(r.error().code, Code::kProtocol);
        EXPECT_FALSE(p.b.open());
    }
}

TEST(Channel, RefusesDamagedBodies) {
    const auto good = wire("some reason of some length");
    int refused = 0;
    for (size_t at = 16; at < good.size(); ++at) {
        auto p = make();
        auto bytes = good;
        bytes[at] = static_cast<char>(bytes[at] ^ 0x81);
        write_raw(p.a, bytes.data(), bytes.size());
        auto r = p.b.receive(1000);
        if (!r.ok()) {
            EXPECT_EQ(r.error().code, Code::kProtocol);
            ++refused;
        } else {  // whatever passes must be safe to read
            ASSERT_TRUE(r->has_value());
            EXPECT_NE((*r)->message()->payload(), nullptr);
        }
    }
    EXPECT_GT(refused, 10);
}

TEST(Channel, RefusesAnEmptyUnion) {
    auto p = make();
    flatbuffers::FlatBufferBuilder b;
    b.Finish(CreateMessage(b));
    ASSERT_TRUE(
        p.a.send_bytes({reinterpret_cast<const std::byte*>(b.GetBufferPointer()), b.GetSize()}, -1,
                       1000)
            .ok());
    EXPECT_FALSE(p.b.receive(1000).ok());
}

TEST(Channel, RefusesAMessageOverTheCap) {
    auto p = make();
    std::vector<std::byte> huge(kMaxMessageBytes + 1);
    auto s = p.a.send_bytes(huge, -1, 1000);
    ASSERT_FALSE(s.ok());
    EXPECT_EQ(s.error().code, Code::kExhausted);
    EXPECT_TRUE(p.a.open());
}

TEST(Channel, ClosesUnannouncedAndSurplusDescriptors) {
    const int before = open_descriptors();
    {
        auto p = make();
        send_fds(p.a, wire("unannounced"), {0});
        EXPECT_FALSE(p.b.receive(1000).ok());
    }
    {
        auto p = make();
        send_fds(p.a, wire("several"), {0, 1, 2});
        EXPECT_FALSE(p.b.receive(1000).ok());
    }
    EXPECT_EQ(open_descriptors(), before);
}

TEST(Channel, AnnouncedDescriptorMustCome) {
    auto p = make();
    auto bytes = wire("missing");
    bytes[4] = 1;
    write_raw(p.a, bytes.data(), bytes.size());
    EXPECT_FALSE(p.b.receive(1000).ok());
}

TEST(Memfd, RoundTripAndSeals) {
    std::vector<std::byte> bytes(100000, std::byte{0x5a});
    auto fd = make_memfd("t", bytes);
    ASSERT_TRUE(fd.ok());
    auto back = read_memfd(fd->get(), bytes.size());
    ASSERT_TRUE(back.ok());
    EXPECT_EQ(*back, bytes);
    EXPECT_NE(::ftruncate(fd->get(), 10), 0);
    EXPECT_EQ(::pwrite(fd->get(), "x", 1, 0), -1);
}

TEST(Memfd, RefusesWhatIsTooLargeOrNoFile) {
    std::vector<std::byte> bytes(1000);
    auto fd = make_memfd("t", bytes);
    ASSERT_TRUE(fd.ok());
    auto over = read_memfd(fd->get(), 999);
    ASSERT_FALSE(over.ok());
    EXPECT_EQ(over.error().code, Code::kExhausted);
    auto p = make();
    EXPECT_FALSE(read_memfd(p.a.fd(), 1000).ok());
    EXPECT_FALSE(read_memfd(-1, 1000).ok());
}

}  // namespace
}  // namespace ttt::ipc
