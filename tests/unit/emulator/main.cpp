// Also the second process of the shared-memory test.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

namespace ttt::test {
int shared_memory_child(int fd);
}

int main(int argc, char** argv) {
    if (argc == 3 && std::strcmp(argv[1], "--shared-memory-child") == 0) {
        return ttt::test::shared_memory_child(std::atoi(argv[2]));
    }
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
