// Checks what another rank says of who is in a group, before anything is made of it. Pure.
#pragma once

#include "absl/status/status.h"
#include "runtime/comm/rendezvous/wire/control_message.h"

namespace tutti::comm {

// Checks a table; InvalidArgument unless its ranks are numbered from 0, each knows how many they
// are, and no two are found at the same port.
absl::Status CheckTable(const Table& table);

// Checks a promise; InvalidArgument unless a member of `generation` can say this: its number is one
// of a rank there, and what it has agreed to, if anything, at which rank of it, is a table.
absl::Status CheckPromise(const Promise& promise, const Table& generation);

}  // namespace tutti::comm
