// Traced makes a group whose collectives are put down in a trace as they happen, on whatever thread
// they run, and those of the groups that it makes, but for messages of less than a KiB there. It
// cannot re-form (elastic.h).
#pragma once

#include <memory>

#include "runtime/comm/communicator.h"
#include "runtime/train/report/trace.h"

namespace tutti::train {

std::unique_ptr<comm::Communicator> Traced(std::unique_ptr<comm::Communicator> group,
                                           std::shared_ptr<Trace> trace);

}  // namespace tutti::train
