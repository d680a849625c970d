// Gives the outputs of a pipeline that are to be brought to a store to the steps that write them.
// Inside the room spec only.
#pragma once

#include "spec/text/diagnostics.h"
#include "spec/types/job.h"

namespace tutti::spec {

// In all pipelines of the tree: an output of a step that is bound to one of its pipeline's gets
// that one's place. Call it once the file has been read. An error for each output of a sweep's
// trials whose place is the same for all of them.
void SpreadOutputPlaces(JobSpec& job, Diagnostics& diagnostics);

}  // namespace tutti::spec
