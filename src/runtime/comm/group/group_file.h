// Reads and writes the group file, which says where the members of a running group are found, a
// line each. Rank 0 writes it anew at every generation, newcomers read it. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/comm/rendezvous/wire/control_message.h"
#include "runtime/comm/rendezvous/wire/stream_socket.h"

namespace tutti::comm {

// Reads "address:port", "[address]:port". InvalidArgument for anything else.
absl::StatusOr<Endpoint> ParseEndpoint(absl::string_view text);

std::string GroupFileOf(const Table& table);
absl::StatusOr<std::vector<Endpoint>> ReadGroupFile(absl::string_view text);

}  // namespace tutti::comm
