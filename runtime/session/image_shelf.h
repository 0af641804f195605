// Module images that wait for the tuner, all in one memfd: a program may load thousands of modules
// before it has a context, and a descriptor each would leave it none of its own. Our thread only.
#pragma once

#include <cstdint>
#include <map>
#include <span>

#include "base/fd.h"

namespace ttt::session {

class ImageShelf {
  public:
    using Id = uint64_t;  // 0: none

    // Copies the image. 0 when there is no memory for it or a gigabyte waits already.
    Id put(std::span<const std::byte> image);
    // A sealed memfd of its own with the image, which leaves the shelf; invalid when that fails.
    Fd take(Id id);
    void drop(Id id);
    size_t size() const { return places_.size(); }

  private:
    struct Place {
        uint64_t offset, bytes;
    };
    Fd file_;
    std::map<Id, Place> places_;
    Id next_ = 1;
    uint64_t end_ = 0, waiting_ = 0;
};

}  // namespace ttt::session
