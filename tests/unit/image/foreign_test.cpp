#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fixtures.h"
#include "image/image.h"

namespace ttt::image {
namespace {

using test::Blob;
using test::one_entry;
using test::put;
using test::read_file;

// Memory that ends in a page nobody may read.
class Fenced {
  public:
    explicit Fenced(std::span<const std::byte> bytes)
        : x_page(static_cast<size_t>(::sysconf(_SC_PAGESIZE))) {
        x_room = (bytes.size() + x_page - 1) / x_page * x_page;
        x_base = static_cast<std::byte*>(::mmap(nullptr, x_room + x_page, PROT_READ | PROT_WRITE,
                                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        ::mprotect(x_base + x_room, x_page, PROT_NONE);
        x_start = x_base + x_room - bytes.size();
        std::memcpy(x_start, bytes.data(), bytes.size());
    }
    ~Fenced() { ::munmap(x_base, x_room + x_page); }
    Fenced(const Fenced&) = delete;
    Fenced& operator=(const Fenced&) = delete;
    void* data() const { return x_start; }

  private:
    size_t x_page, x_room = 0;
    std::byte* x_base = nullptr;
    std::byte* x_start = nullptr;
};

struct Wrapper {
    uint32_t magic = 0x466243B1, version = 1;
    const void* data = nullptr;
    const void* extra = nullptr;
};

TEST(CopyForeign, FatBinaryElfAndTextUpToTheirLastByte) {
    for (const char* name : {"speed.fatbin", "size.fatbin", "probe_90.cubin", "probe_120.cubin",
                             "older_90.cubin", "linked_90.cubin"}) {
        const Blob file = read_file(name);
        const Fenced memory(file);
        auto copy = copy_foreign(memory.data());
        ASSERT_TRUE(copy.ok()) << name << ": " << copy.error().str();
        ASSERT_EQ(copy->size(), 1u);
        EXPECT_EQ(copy->front(), file) << name;
    }
    std::string ptx = ".version 8.0\n.target sm_80\n";
    ptx.append(200'000, '\n');
    ptx += "// end";
    ptx.push_back('\0');
    const Fenced memory{std::as_bytes(std::span<const char>(ptx))};
    auto copy = copy_foreign(memory.data());
    ASSERT_TRUE(copy.ok()) << copy.error().str();
    ptx.pop_back();
    EXPECT_EQ(test::text_of(copy->front()), ptx);
}

TEST(CopyForeign, CutImagesAreErrorsNotFaults) {
    for (const char* name : {"speed.fatbin", "probe_90.cubin"}) {
        const Blob file = read_file(name);
        for (size_t n = 1; n < file.size(); n += n < 130 ? 1 : 211) {
            const Fenced memory{std::span<const std::byte>(file).first(n)};
            EXPECT_FALSE(copy_foreign(memory.data()).ok()) << name << " " << n;
        }
    }
    const std::string endless = ".version 8.0 // no terminator";
    const Fenced memory{std::as_bytes(std::span<const char>(endless))};
    EXPECT_FALSE(copy_foreign(memory.data()).ok());
}

TEST(CopyForeign, WildPointers) {
    EXPECT_EQ(copy_foreign(nullptr).error().code, Code::kInvalidArgument);
    for (const uintptr_t address : {uintptr_t{1}, uintptr_t{4096}, uintptr_t{0xDEAD'0000'0000},
                                    ~uintptr_t{0}, ~uintptr_t{0} - 8})
        EXPECT_FALSE(copy_foreign(reinterpret_cast<const void*>(address)).ok()) << address;
}

TEST(CopyForeign, LimitIsKept) {
    const Blob file = read_file("speed.fatbin");
    EXPECT_EQ(copy_foreign(file.data(), 1000).error().code, Code::kExhausted);
    const Blob cubin = read_file("probe_90.cubin");
    EXPECT_FALSE(copy_foreign(cubin.data(), 1000).ok());
    const std::string ptx = ".version 8.0\n.target sm_80\n" + std::string(100'000, ' ');
    EXPECT_EQ(copy_foreign(ptx.c_str(), 1000).error().code, Code::kExhausted);
    const Blob huge = [] {
        Blob b = one_entry(1, 90, 0, "x");
        put<uint64_t>(b, 8, ~uint64_t{0});
        return b;
    }();
    EXPECT_FALSE(copy_foreign(huge.data()).ok());
}

TEST(CopyForeign, WrappersOfBothVersions) {
    const Blob a = read_file("speed.fatbin");
    const Blob b = read_file("none.fatbin");
    const Wrapper one{0x466243B1, 1, a.data(), nullptr};
    auto copy = copy_foreign(&one);
    ASSERT_TRUE(copy.ok()) << copy.error().str();
    ASSERT_EQ(copy->size(), 1u);
    EXPECT_EQ(copy->front(), a);

    const void* array[] = {b.data(), a.data(), nullptr};
    const Wrapper list{0x466243B1, 2, array, nullptr};
    copy = copy_foreign(&list);
    ASSERT_TRUE(copy.ok()) << copy.error().str();
    ASSERT_EQ(copy->size(), 2u);
    EXPECT_EQ((*copy)[0], b);

    const Wrapper linked{0x466243B1, 2, a.data(), array};
    copy = copy_foreign(&linked);
    ASSERT_TRUE(copy.ok()) << copy.error().str();
    EXPECT_EQ(copy->size(), 3u);
}

TEST(CopyForeign, BadWrappers) {
    const Blob a = read_file("speed.fatbin");
    const void* not_fatbin[] = {a.data() + 4, nullptr};
    const void* self[1] = {self};
    const Wrapper unknown{0x466243B1, 7, a.data(), nullptr};
    EXPECT_EQ(copy_foreign(&unknown).error().code, Code::kUnsupported);
    const Wrapper null{0x466243B1, 1, nullptr, nullptr};
    EXPECT_FALSE(copy_foreign(&null).ok());
    const Wrapper wrong{0x466243B1, 1, a.data() + 4, nullptr};
    EXPECT_FALSE(copy_foreign(&wrong).ok());
    const Wrapper list{0x466243B1, 2, not_fatbin, nullptr};
    EXPECT_FALSE(copy_foreign(&list).ok());
    const Wrapper loop{0x466243B1, 2, self, nullptr};
    EXPECT_FALSE(copy_foreign(&loop).ok());
}

}  // namespace
}  // namespace ttt::image
