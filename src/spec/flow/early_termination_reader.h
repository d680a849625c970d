// Reads a sweep's early_termination: when a trial is stopped before its end. Inside the room spec
// only.
#pragma once

#include "spec/text/diagnostics.h"
#include "spec/text/mapping_reader.h"
#include "spec/types/sweep.h"

namespace tutti::spec {

// Takes the key from `sweep`; without it `policy` stays as it is.
void ReadEarlyTermination(MappingReader& sweep, Diagnostics& diagnostics, EarlyTermination& policy);

}  // namespace tutti::spec
