#include "session/function_table.h"

namespace ttt::session {

Function* FunctionTable::lookup(CUfunction handle) const {
    const Slots* s = slots_.load(std::memory_order_acquire);
    if (s == nullptr || handle == nullptr) return nullptr;
    for (size_t i = hash(handle) & s->mask;; i = (i + 1) & s->mask) {
        const CUfunction key = s->slot[i].key.load(std::memory_order_acquire);
        if (key == handle) return s->slot[i].entry.load(std::memory_order_acquire);
        if (key == nullptr) return nullptr;
    }
}

void FunctionTable::place(Slots& s, Function* f) {
    size_t i = hash(f->handle) & s.mask;
    while (true) {
        const CUfunction key = s.slot[i].key.load(std::memory_order_relaxed);
        if (key == nullptr || key == f->handle) break;
        i = (i + 1) & s.mask;
    }
    s.slot[i].entry.store(f, std::memory_order_release);
    s.slot[i].key.store(f->handle, std::memory_order_release);
}

Function* FunctionTable::insert(std::unique_ptr<Function> function) {
    entries_.push_back(std::move(function));
    Function* f = entries_.back().get();
    const bool fresh = lookup(f->handle) == nullptr;
    Slots* s = slots_.load(std::memory_order_relaxed);
    if (s == nullptr || (fresh && (used_ + 1) * 2 > s->mask + 1)) {
        generations_.push_back(std::make_unique<Slots>(s == nullptr ? 256 : (s->mask + 1) * 2));
        Slots* bigger = generations_.back().get();
        if (s != nullptr)
            for (Slot& slot : s->slot)
                if (Function* old = slot.entry.load(std::memory_order_relaxed)) place(*bigger, old);
        place(*bigger, f);
        slots_.store(bigger, std::memory_order_release);
    } else {
        place(*s, f);
    }
    if (fresh)
        ++used_;
    else
        std::erase_if(all_, [f](const Function* old) { return old->handle == f->handle; });
    all_.push_back(f);
    return f;
}

void FunctionTable::renew(uint64_t epoch) {
    for (Function* f : all_)
        if (f->valid_epoch.load(std::memory_order_relaxed) != 0)
            f->valid_epoch.store(epoch, std::memory_order_release);
}

}  // namespace ttt::session
