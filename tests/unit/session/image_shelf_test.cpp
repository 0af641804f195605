#include "session/image_shelf.h"

#include <dirent.h>
#include <gtest/gtest.h>

#include <string>

#include "ipc/channel.h"

namespace ttt::session {
namespace {

std::span<const std::byte> bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string text(const Fd& fd) {
    const auto read = ipc::read_memfd(fd.get(), 1 << 20);
    return read.ok() ? std::string(reinterpret_cast<const char*>(read->data()), read->size())
                     : "(unreadable)";
}

int open_descriptors() {
    int n = 0;
    DIR* d = opendir("/proc/self/fd");
    while (readdir(d) != nullptr) ++n;
    closedir(d);
    return n;
}

TEST(ImageShelf, GivesEachImageOnceInAnyOrder) {
    ImageShelf shelf;
    const auto a = shelf.put(bytes("first")), b = shelf.put(bytes("second one")),
               c = shelf.put(bytes("3"));
    ASSERT_TRUE(a != 0 && b != 0 && c != 0);
    EXPECT_EQ(text(shelf.take(b)), "second one");
    EXPECT_FALSE(shelf.take(b).valid());
    EXPECT_EQ(text(shelf.take(a)), "first");
    EXPECT_EQ(text(shelf.take(c)), "3");
    EXPECT_EQ(shelf.size(), 0u);
    EXPECT_FALSE(shelf.take(0).valid());
    EXPECT_EQ(shelf.put({}), 0u);
}

TEST(ImageShelf, AThousandImagesTakeOneDescriptor) {
    const int before = open_descriptors();
    ImageShelf shelf;
    std::vector<ImageShelf::Id> ids;
    for (int i = 0; i < 1000; ++i) ids.push_back(shelf.put(bytes("image " + std::to_string(i))));
    EXPECT_EQ(open_descriptors(), before + 1);
    EXPECT_EQ(text(shelf.take(ids[777])), "image 777");
    for (const auto id : ids) shelf.drop(id);
    EXPECT_EQ(open_descriptors(), before) << "an empty shelf holds nothing";
}

TEST(ImageShelf, SurvivesAProgramThatTakesItsDescriptor) {
    ImageShelf shelf;
    const auto a = shelf.put(bytes("lost"));
    for (int fd = 64; fd < 1024; ++fd) {  // as a program that closes all it does not know
        char name[64] = {};
        const std::string link = "/proc/self/fd/" + std::to_string(fd);
        if (readlink(link.c_str(), name, sizeof name - 1) > 0 &&
            std::string(name).find("ttt-images") != std::string::npos)
            ::close(fd);
    }
    EXPECT_FALSE(shelf.take(a).valid());
    EXPECT_EQ(shelf.size(), 0u);
    EXPECT_NE(shelf.put(bytes("next")), 0u) << "an empty shelf starts anew";
}

}  // namespace
}  // namespace ttt::session
