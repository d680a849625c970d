// Finds a free port for a job's rendezvous (MASTER_PORT).
#pragma once

#include <memory>
#include <string>

#include "base/unique_fd.h"

namespace tutti::service {

struct FreePort {
  int port = 0;
  // While it lives, no other service of this machine, whoever's it is, finds the port: a job's
  // processes bind it a while after it was found. Null where the port is none of this machine's.
  std::shared_ptr<const base::UniqueFd> claim;
};

// Returns `preferred` if a listener can be bound to it on the numeric address now and nobody has
// claimed it, else another that is free now, by chance from 10000 to 31999. Returns `preferred`
// also where the address is none of this machine: only its own node can tell then. Any thread.
FreePort FindFreePort(const std::string& address, int preferred);

}  // namespace tutti::service
