// Makes a group of one rank, which has no network and no thread. Collectives check their arguments
// as in any group and copy what has to be copied.
#pragma once

#include <memory>

#include "runtime/comm/communicator.h"

namespace tutti::comm {

std::unique_ptr<Communicator> MakeGroupOfOne();

}  // namespace tutti::comm
