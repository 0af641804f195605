#include "sandbox/wire.h"

#include <fmt/format.h>

namespace ttt::wire {
namespace {

bool inside(uint64_t offset, uint64_t bytes, uint64_t total) {
    return offset <= total && bytes <= total - offset;
}

// The name goes to the driver as a C string.
bool is_name(std::string_view name) {
    return !name.empty() && name.size() <= kMaxNameBytes &&
           name.find('\0') == std::string_view::npos;
}

Result<measure::Region> region(const ipc::RegionRecord& r, size_t param_bytes, uint64_t arena) {
    measure::Region out;
    out.address = r.address();
    out.bytes = r.bytes();
    out.pre_offset = r.pre_offset();
    out.post_offset = r.written() ? r.post_offset() : measure::kNoBytes;
    out.read = r.read();
    out.written = r.written();
    if (out.bytes == 0 || out.bytes > arena || out.address + out.bytes < out.address)
        return make_error(Code::kProtocol, "snapshot region with an impossible size");
    if (!inside(out.pre_offset, out.bytes, arena) ||
        (out.written && !inside(out.post_offset, out.bytes, arena)))
        return make_error(Code::kProtocol, "snapshot region outside its arena");
    out.variable = std::string(ipc::text(r.variable()));
    const bool pointers = r.pointers() != nullptr && r.pointers()->size() != 0;
    if (!out.variable.empty() && (!is_name(out.variable) || out.written || pointers))
        return make_error(Code::kProtocol, "module variable of an impossible kind");
    if (!pointers) return out;
    for (uint32_t p : *r.pointers()) {
        if (!inside(p, sizeof(uint64_t), param_bytes))
            return make_error(Code::kProtocol, "pointer outside the parameter buffer");
        out.pointers.push_back(p);
    }
    return out;
}

}  // namespace

Dim3 dim3(const ipc::Dim3* d) { return d == nullptr ? Dim3{} : Dim3{d->x(), d->y(), d->z()}; }
ipc::Dim3 dim3(const Dim3& d) { return {d.x, d.y, d.z}; }

Result<measure::Snapshot> snapshot(
    const ipc::Dim3* grid, const ipc::Dim3* block, uint32_t shared,
    const flatbuffers::Vector<uint8_t>* params,
    const flatbuffers::Vector<flatbuffers::Offset<ipc::RegionRecord>>* regions,
    uint64_t arena_bytes) {
    measure::Snapshot s;
    s.launch.grid = dim3(grid);
    s.launch.block = dim3(block);
    s.launch.dynamic_shared = shared;
    const auto bytes = ipc::bytes_of(params);
    if (bytes.size() > kMaxParamBytes)
        return make_error(Code::kProtocol, "parameter buffer over the driver's limit");
    if (s.launch.grid.count() == 0 || s.launch.block.count() == 0)
        return make_error(Code::kProtocol, "launch with an empty grid or block");
    s.launch.params.assign(bytes.begin(), bytes.end());
    s.arena_bytes = arena_bytes;
    if (regions == nullptr) return s;
    if (regions->size() > kMaxRegions) return make_error(Code::kProtocol, "too many regions");
    for (const ipc::RegionRecord* r : *regions) {
        TTT_TRY(measure::Region one, region(*r, bytes.size(), arena_bytes));
        s.regions.push_back(std::move(one));
    }
    return s;
}

std::vector<flatbuffers::Offset<ipc::RegionRecord>> records(
    flatbuffers::FlatBufferBuilder& b, const std::vector<measure::Region>& regions) {
    std::vector<flatbuffers::Offset<ipc::RegionRecord>> out;
    for (const measure::Region& r : regions)
        out.push_back(ipc::CreateRegionRecord(b, r.address, r.bytes, r.pre_offset, r.post_offset,
                                              r.read, r.written, b.CreateVector(r.pointers),
                                              r.variable.empty() ? 0 : b.CreateString(r.variable)));
    return out;
}

Result<std::vector<VariableCell>> cells(
    const flatbuffers::Vector<flatbuffers::Offset<ipc::VariableCell>>* cells) {
    std::vector<VariableCell> out;
    if (cells == nullptr) return out;
    if (cells->size() > kMaxRegions) return make_error(Code::kProtocol, "too many variables");
    for (const ipc::VariableCell* c : *cells) {
        VariableCell one{std::string(ipc::text(c->cell())), std::string(ipc::text(c->variable())),
                         c->bytes()};
        if (!is_name(one.cell) || !is_name(one.variable) || one.bytes == 0)
            return make_error(Code::kProtocol, "cell without a name or variable");
        out.push_back(std::move(one));
    }
    return out;
}

std::vector<flatbuffers::Offset<ipc::VariableCell>> cell_records(
    flatbuffers::FlatBufferBuilder& b, const std::vector<VariableCell>& cells) {
    std::vector<flatbuffers::Offset<ipc::VariableCell>> out;
    for (const VariableCell& c : cells)
        out.push_back(ipc::CreateVariableCell(b, b.CreateString(c.cell), b.CreateString(c.variable),
                                              c.bytes));
    return out;
}

}  // namespace ttt::wire
