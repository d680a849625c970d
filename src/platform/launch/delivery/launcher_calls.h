// Makes the calls of docs/formats/launch-plan.md, for a launcher and for the collector that makes
// them in the place of launchers. Errors as ServiceLink::Call.
#pragma once

#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "platform/launch/delivery/secret_masks.h"
#include "platform/launch/delivery/service_link.h"

namespace tutti::launch {

struct EventsAnswer {
  int64_t acknowledged = 0;
  bool go = false;
  bool served = false;  // as Delivery::served
};

// Sends events; `lines` are the events of that node from number `first` on.
absl::StatusOr<EventsAnswer> PostEvents(ServiceLink& link, int node, int64_t first,
                                        std::string lines, base::Deadline deadline);

// Returns how many bytes of the stream the service has.
absl::StatusOr<uint64_t> PostOutput(ServiceLink& link, int node, int rank,
                                    const std::string& stream, uint64_t offset, std::string bytes,
                                    base::Deadline deadline);

// Fetches the values of the secrets that the allocation's job names. Goes on until the service
// answers.
absl::StatusOr<SecretValues> GetSecrets(ServiceLink& link, int node, base::Deadline deadline);

// Waits up to `wait` (whole seconds) for it, or until another call needs the link.
absl::StatusOr<bool> AskForGo(ServiceLink& link, int node, absl::Duration wait,
                              base::Deadline deadline);

// Writes the archive's bytes into `file`; their hash must be the one that names the snapshot. Goes
// on until the service answers or the link is abandoned.
absl::Status Download(ServiceLink& link, const std::string& snapshot,
                      const std::filesystem::path& file);

}  // namespace tutti::launch
