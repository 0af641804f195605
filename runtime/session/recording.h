// The launching thread's part of timing and recording a launch. Rare; may call the driver; never
// allocates device memory, never synchronises unless told to.
#pragma once

#include "session/shared.h"
#include "session/snapshot_job.h"

namespace ttt::session {

// True if the stream is capturing, or cannot be asked (then it is treated as capturing).
bool capturing(Shared& s, const Launch& launch);

// Fills a slot (function, geometry, parameters, targets) and records its first event, behind a
// short wait if asked to (head_start.h). Null: not now.
Sample* begin_sample(Shared& s, Function* f, const Launch& launch, bool head_start);
// Records the second event and hands the slot to our thread. `good`: the launch to be counted was
// made.
void end_sample(Shared& s, const Launch& launch, Sample* sample, bool good);

// Allocations behind every aligned 8 bytes of `params` that look like an address; returns how many
// were written.
uint32_t find_targets(const Shared& s, const ParamLayout& layout, const std::byte* params,
                      Target* out, uint32_t room);

// Records this launch for `job` if it fits: copies, launch, copies, all on the launch's own stream.
// True if the launch was made (its result in *result), whether or not the recording succeeded.
bool try_record(Shared& s, Function* f, const Launch& launch, SnapshotJob* job, CUresult* result);

}  // namespace ttt::session
