// A port for a job's rendezvous (MASTER_PORT).
#pragma once

#include <string>

namespace tutti::service {

// `preferred` if a listener can be bound to it on the numeric address now, else one that the system
// says is free. `preferred` also where the address is none of this machine: only its own node can
// tell then.
int FindFreePort(const std::string& address, int preferred);

}  // namespace tutti::service
