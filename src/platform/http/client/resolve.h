// Resolves a host's addresses by a deadline: the system's resolver has none of its own and cannot
// be stopped, so a name is asked for on a thread that may be left behind. Internal to this room.
#pragma once

#include <netdb.h>

#include <memory>

#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "platform/http/url.h"

namespace tutti::http {

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

// Looks the host up; Unavailable if there is no such host; DeadlineExceeded; Cancelled when
// `cancel_fd` becomes readable.
absl::StatusOr<Addresses> Resolve(const Authority& of, int cancel_fd, base::Deadline deadline);

}  // namespace tutti::http
