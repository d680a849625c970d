// Makes the calls of docs/formats/launch-plan.md, for a launcher and for the collector that makes
// them in the place of launchers. Errors as ServiceLink::Call.
#pragma once

#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/deadline.h"
#include "platform/launch/delivery/secret_masks.h"
#include "platform/launch/delivery/service_link.h"
#include "spec/json/question.h"

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

// Sends samples of what the node's processes use, lines of JSON, in one attempt that gives way to
// other calls, also while it is under way, and ends within a few seconds. Returns the pause that
// the service asks for.
absl::StatusOr<absl::Duration> PostUsage(ServiceLink& link, int node, std::string lines);

// Asks in one attempt what the service wants to know; ends within a few seconds.
absl::StatusOr<spec::Questions> AskForQuestions(ServiceLink& link, int node);

// Sends the answer for a rank, JSON, in one attempt that ends within 10 s. NotFound if nobody
// wants it any more.
absl::Status PostAnswer(ServiceLink& link, int node, const std::string& question, int rank,
                        std::string json);

// Fetches the values of the secrets that the allocation's job names. Goes on until the service
// answers.
absl::StatusOr<SecretValues> GetSecrets(ServiceLink& link, int node, base::Deadline deadline);

// A job's run in the service's MLflow tracking.
struct TrackedRun {
  std::string id;
  std::string experiment;  // its name
  std::string token;       // secret
};
// Has the service make the job's run, and goes on until it answers. NotFound of a service without
// tracking.
absl::StatusOr<TrackedRun> PostRun(ServiceLink& link, int node, base::Deadline deadline);

// Waits up to `wait` (whole seconds) for it, or until another call needs the link.
absl::StatusOr<bool> AskForGo(ServiceLink& link, int node, absl::Duration wait,
                              base::Deadline deadline);

// Writes the archive's bytes into `file`; their hash must be the one that names the snapshot. Goes
// on until the service answers or the link is abandoned.
absl::Status Download(ServiceLink& link, const std::string& snapshot,
                      const std::filesystem::path& file);

}  // namespace tutti::launch
