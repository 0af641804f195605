// An owned file descriptor. Every descriptor of ours is close-on-exec. In the program's process the
// numbers are not ours alone: a program may close them all, or put its own file on one (dup2). So
// the file behind the number is remembered, and nothing is closed that has become another's.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <utility>

namespace ttt {

class Fd {
  public:
    Fd() = default;
    explicit Fd(int fd) { adopt(fd); }
    Fd(Fd&& other) noexcept { take(other); }
    Fd& operator=(Fd&& other) noexcept {
        if (this == &other) return *this;
        reset();
        take(other);
        return *this;
    }
    ~Fd() { reset(); }
    int get() const { return fd_; }
    bool valid() const { return fd_ >= 0; }
    // Does the number still name the file it was made for? To be asked before each use of one that
    // lives long.
    bool ours() const {
        struct stat now {};
        return valid() && ::fstat(fd_, &now) == 0 && now.st_dev == device_ && now.st_ino == inode_;
    }
    int release() { return std::exchange(fd_, -1); }
    void reset(int fd = -1) {
        if (ours()) ::close(fd_);
        adopt(fd);
    }

  private:
    void adopt(int fd) {
        fd_ = fd;
        struct stat now {};
        if (fd < 0 || ::fstat(fd, &now) != 0) return;
        device_ = now.st_dev;
        inode_ = now.st_ino;
    }
    void take(Fd& other) {
        device_ = other.device_;
        inode_ = other.inode_;
        fd_ = other.release();
    }

    int fd_ = -1;
    dev_t device_ = 0;
    ino_t inode_ = 0;
};

}  // namespace ttt
