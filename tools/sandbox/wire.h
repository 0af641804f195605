// Messages ↔ plain data for everything that speaks of snapshots. What comes from a peer is checked
// here, once.
#pragma once

#include <vector>

#include "base/dim3.h"
#include "base/result.h"
#include "base/variable_cell.h"
#include "ipc/channel.h"
#include "measure/snapshot.h"

namespace ttt::wire {

inline constexpr size_t kMaxRegions = 1024;
inline constexpr size_t kMaxNameBytes = 4096;
inline constexpr size_t kMaxParamBytes = 32764;  // the driver's own limit

// Absent → (1,1,1).
Dim3 dim3(const ipc::Dim3* d);
ipc::Dim3 dim3(const Dim3& d);

// kProtocol when a region lies outside the arena, overflows, names a pointer outside the
// parameters, or is a module variable that a parameter points to or the launch writes.
Result<measure::Snapshot> snapshot(
    const ipc::Dim3* grid, const ipc::Dim3* block, uint32_t shared,
    const flatbuffers::Vector<uint8_t>* params,
    const flatbuffers::Vector<flatbuffers::Offset<ipc::RegionRecord>>* regions,
    uint64_t arena_bytes);

std::vector<flatbuffers::Offset<ipc::RegionRecord>> records(
    flatbuffers::FlatBufferBuilder& builder, const std::vector<measure::Region>& regions);

// kProtocol when there are too many, or a name is missing or no C string.
Result<std::vector<VariableCell>> cells(
    const flatbuffers::Vector<flatbuffers::Offset<ipc::VariableCell>>* cells);
std::vector<flatbuffers::Offset<ipc::VariableCell>> cell_records(
    flatbuffers::FlatBufferBuilder& builder, const std::vector<VariableCell>& cells);

}  // namespace ttt::wire
