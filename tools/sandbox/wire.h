// Messages ↔ plain data for everything that speaks of snapshots. What comes from a peer is checked
// here, once.
#pragma once

#include <vector>

#include "base/dim3.h"
#include "base/result.h"
#include "ipc/channel.h"
#include "measure/snapshot.h"

namespace ttt::wire {

inline constexpr size_t kMaxRegions = 1024;
inline constexpr size_t kMaxParamBytes = 32764;  // the driver's own limit

// Absent → (1,1,1).
Dim3 dim3(const ipc::Dim3* d);
ipc::Dim3 dim3(const Dim3& d);

// kProtocol when a region lies outside the arena, overflows, or names a pointer outside the
// parameters.
Result<measure::Snapshot> snapshot(
    const ipc::Dim3* grid, const ipc::Dim3* block, uint32_t shared,
    const flatbuffers::Vector<uint8_t>* params,
    const flatbuffers::Vector<flatbuffers::Offset<ipc::RegionRecord>>* regions,
    uint64_t arena_bytes);

std::vector<flatbuffers::Offset<ipc::RegionRecord>> records(
    flatbuffers::FlatBufferBuilder& builder, const std::vector<measure::Region>& regions);

}  // namespace ttt::wire
