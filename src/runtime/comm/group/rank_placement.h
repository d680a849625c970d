// Says on which node each rank of a group is, and where it stands among the ranks there, from the
// table of the rendezvous.
#pragma once

#include "runtime/comm/communicator.h"
#include "runtime/comm/rendezvous/wire/control_message.h"

namespace tutti::comm {

// Returns whether two ranks are of one node: they are when they say so (NODE_RANK) and can reach
// each other's memory.
bool SameNode(const Hello& a, const Hello& b);

Placement PlacementOf(const Table& table, int rank);

}  // namespace tutti::comm
