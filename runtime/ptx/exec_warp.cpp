// Instructions that look across the lanes of a warp: shfl, vote, match, redux, activemask, elect.
#include <algorithm>

#include "ptx/exec_lanes.h"

namespace ttt::ptx::exec {
namespace {

uint32_t members(const Context& c, const Op& op, uint32_t mask) {
    if (op.member_source == Op::kNoMember) return mask;
    const auto first = static_cast<uint32_t>(std::countr_zero(mask));
    return mask & static_cast<uint32_t>(c.lane(op.src[op.member_source], first));
}

enum : uint16_t { kShflUp, kShflDown, kShflBfly, kShflIdx };

struct Picked {
    uint32_t lane;
    bool in_range;
};
Picked shuffle_source(uint16_t mode, uint32_t lane, uint32_t b, uint32_t c) {
    const uint32_t by = b & 31, clamp = c & 31, segment = c >> 8 & 31;
    const uint32_t first = lane & segment, last = first | (clamp & ~segment);
    switch (mode) {
        case kShflUp: {
            const int j = static_cast<int>(lane) - static_cast<int>(by);
            const bool ok = j >= static_cast<int>(last);
            return {ok ? static_cast<uint32_t>(j) : lane, ok};
        }
        case kShflDown:
            return lane + by <= last ? Picked{lane + by, true} : Picked{lane, false};
        case kShflBfly:
            return (lane ^ by) <= last ? Picked{lane ^ by, true} : Picked{lane, false};
        default: {
            const uint32_t j = first | (by & ~segment);
            return j <= last ? Picked{j, true} : Picked{lane, false};
        }
    }
}

void run_shfl(Context& c, const Op& op, uint32_t mask) {
    uint32_t a[kLanes];
    std::memcpy(a, c.read<uint32_t>(op.src[0]), sizeof a);
    for_lanes(mask, [&](uint32_t i) {
        const auto b = static_cast<uint32_t>(c.lane(op.src[1], i));
        const auto range = static_cast<uint32_t>(c.lane(op.src[2], i));
        const Picked from = shuffle_source(op.sub, i, b, range);
        c.set_lane(op.dst[1], i, from.in_range ? 1 : 0);
        c.set_lane(op.dst[0], i, a[from.lane]);
    });
}

enum : uint16_t { kVoteAll, kVoteAny, kVoteUni, kVoteBallot };

void run_vote(Context& c, const Op& op, uint32_t mask) {
    const uint32_t who = members(c, op, mask);
    const uint32_t yes = c.predicate(op.src[0]) & who;
    if (op.sub == kVoteBallot) {
        for_lanes(mask, [&](uint32_t i) { c.set_lane(op.dst[0], i, yes); });
        return;
    }
    const bool all = yes == who, any = yes != 0;
    const bool result = op.sub == kVoteAll ? all : op.sub == kVoteAny ? any : all || !any;
    c.set_predicate(op.dst[0].offset, result ? ~0u : 0, mask);
}

void run_match(Context& c, const Op& op, uint32_t mask) {
    const uint32_t who = members(c, op, mask);
    uint64_t value[kLanes] = {};
    for_lanes(who | mask, [&](uint32_t i) { value[i] = c.lane(op.src[0], i); });
    for_lanes(mask, [&](uint32_t i) {
        uint32_t same = 0;
        for_lanes(who, [&](uint32_t j) { same |= (value[j] == value[i] ? 1u : 0u) << j; });
        if (op.sub == 0) {
            c.set_lane(op.dst[0], i, same);
            return;
        }
        const bool all = same == who;
        c.set_lane(op.dst[1], i, all ? 1 : 0);
        c.set_lane(op.dst[0], i, all ? same : 0);
    });
}

enum : uint16_t { kReduxAdd, kReduxMin, kReduxMax, kReduxAnd, kReduxOr, kReduxXor };

uint32_t reduce(uint16_t how, bool is_signed_type, uint32_t x, uint32_t y) {
    const auto sx = static_cast<int32_t>(x), sy = static_cast<int32_t>(y);
    switch (how) {
        case kReduxAdd:
            return x + y;
        case kReduxMin:
            return is_signed_type ? static_cast<uint32_t>(std::min(sx, sy)) : std::min(x, y);
        case kReduxMax:
            return is_signed_type ? static_cast<uint32_t>(std::max(sx, sy)) : std::max(x, y);
        case kReduxAnd:
            return x & y;
        case kReduxOr:
            return x | y;
        default:
            return x ^ y;
    }
}

void run_redux(Context& c, const Op& op, uint32_t mask) {
    const uint32_t who = members(c, op, mask);
    bool first = true;
    uint32_t total = 0;
    for_lanes(who, [&](uint32_t i) {
        const auto x = static_cast<uint32_t>(c.lane(op.src[0], i));
        total = first ? x : reduce(op.sub, is_signed(op.type), total, x);
        first = false;
    });
    for_lanes(mask, [&](uint32_t i) { c.set_lane(op.dst[0], i, total); });
}

void run_activemask(Context& c, const Op& op, uint32_t mask) {
    for_lanes(mask, [&](uint32_t i) { c.set_lane(op.dst[0], i, mask); });
}

void run_elect(Context& c, const Op& op, uint32_t mask) {
    const uint32_t who = members(c, op, mask);
    const auto leader = static_cast<uint32_t>(std::countr_zero(who != 0 ? who : mask));
    for_lanes(mask, [&](uint32_t i) {
        c.set_lane(op.dst[0], i, leader);
        c.set_lane(op.dst[1], i, i == leader ? 1 : 0);
    });
}

void run_nothing(Context&, const Op&, uint32_t) {}

template <size_t N>
bool pick(const Stmt& s, Op& op, const std::pair<Mod, uint16_t> (&choices)[N]) {
    for (const auto& [mod, value] : choices)
        if (s.has(mod)) {
            op.sub = value;
            return true;
        }
    return false;
}

void needs_members(const Stmt& s, Op& op, uint8_t source) {
    if (!s.has(Mod::kSync)) return;
    op.flow = Flow::kCollective;
    op.member_source = source;
}

bool select_shfl(const Stmt& s, Op& op) {
    static constexpr std::pair<Mod, uint16_t> kModes[] = {{Mod::kUp, kShflUp},
                                                          {Mod::kDown, kShflDown},
                                                          {Mod::kBfly, kShflBfly},
                                                          {Mod::kIdx, kShflIdx}};
    if (!pick(s, op, kModes) || s.last_type() != Type::kB32) return false;
    op.run = run_shfl;
    needs_members(s, op, 3);
    return op.sources == (s.has(Mod::kSync) ? 4 : 3);
}

bool select_vote(const Stmt& s, Op& op) {
    static constexpr std::pair<Mod, uint16_t> kModes[] = {{Mod::kAll, kVoteAll},
                                                          {Mod::kAny, kVoteAny},
                                                          {Mod::kUni, kVoteUni},
                                                          {Mod::kBallot, kVoteBallot}};
    if (!pick(s, op, kModes)) return false;
    op.run = run_vote;
    needs_members(s, op, 1);
    return op.sources == (s.has(Mod::kSync) ? 2 : 1);
}

bool select_redux(const Stmt& s, Op& op) {
    static constexpr std::pair<Mod, uint16_t> kModes[] = {
        {Mod::kAdd, kReduxAdd}, {Mod::kMin, kReduxMin}, {Mod::kMax, kReduxMax},
        {Mod::kAnd, kReduxAnd}, {Mod::kOr, kReduxOr},   {Mod::kXor, kReduxXor}};
    op.type = s.last_type();
    if (!pick(s, op, kModes) || bit_size(op.type) != 32 || is_float(op.type)) return false;
    op.run = run_redux;
    needs_members(s, op, 1);
    return op.sources == 2;
}

}  // namespace

bool select_warp(const Stmt& s, Op& op) {
    switch (s.op) {
        case Opcode::kShfl:
            return select_shfl(s, op);
        case Opcode::kVote:
            return select_vote(s, op);
        case Opcode::kRedux:
            return select_redux(s, op);
        case Opcode::kMatch:
            op.sub = s.has(Mod::kAll) ? 1 : 0;
            op.run = run_match;
            needs_members(s, op, 1);
            return op.sources == 2;
        case Opcode::kActivemask:
            op.run = run_activemask;
            return true;
        case Opcode::kElect:
            op.run = run_elect;
            needs_members(s, op, 0);
            return op.sources == 1;
        case Opcode::kBar:
        case Opcode::kBarrier:  // bar.warp.sync only
            op.run = run_nothing;
            needs_members(s, op, 0);
            return op.sources == 1;
        default:
            return false;
    }
}

}  // namespace ttt::ptx::exec
