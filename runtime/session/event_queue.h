// Lock-free queue from the program's threads to ours: any thread pushes, our thread drains in push
// order. Pushing allocates (by the caller's new) but never blocks.
#pragma once

#include <atomic>

namespace ttt::session {

// T has a member `T* next`.
template <typename T>
class EventQueue {
  public:
    // Takes ownership.
    void push(T* node) {
        T* head = head_.load(std::memory_order_relaxed);
        do node->next = head;
        while (!head_.compare_exchange_weak(head, node, std::memory_order_release,
                                            std::memory_order_relaxed));
    }
    // All nodes pushed so far, oldest first; the caller owns them. One consumer.
    T* drain() {
        T* newest = head_.exchange(nullptr, std::memory_order_acquire);
        T* oldest = nullptr;
        while (newest != nullptr) {
            T* next = newest->next;
            newest->next = oldest;
            oldest = newest;
            newest = next;
        }
        return oldest;
    }
    bool empty() const { return head_.load(std::memory_order_relaxed) == nullptr; }

  private:
    std::atomic<T*> head_{nullptr};
};

}  // namespace ttt::session
