// Objects behind driver handles: a handle is the object's address, valid only while the table holds
// it, so a stale or foreign handle is an error and never a crash. Callers hold the call lock.
#pragma once

#include <memory>
#include <unordered_map>

namespace ttt::emulator {

template <typename T, typename Handle>
class Handles {
  public:
    Handle add(std::unique_ptr<T> object) {
        const Handle handle = reinterpret_cast<Handle>(object.get());
        objects_.emplace(handle, std::move(object));
        return handle;
    }
    T* find(Handle handle) const {
        const auto found = objects_.find(handle);
        return found == objects_.end() ? nullptr : found->second.get();
    }
    static Handle handle_of(T* object) { return reinterpret_cast<Handle>(object); }
    bool remove(Handle handle) { return objects_.erase(handle) != 0; }
    template <typename F>
    void each(F&& call) const {
        for (const auto& [handle, object] : objects_) call(*object);
    }
    template <typename F>
    void remove_if(F&& matches) {
        std::erase_if(objects_, [&](const auto& entry) { return matches(*entry.second); });
    }

  private:
    std::unordered_map<Handle, std::unique_ptr<T>> objects_;
};

}  // namespace ttt::emulator
