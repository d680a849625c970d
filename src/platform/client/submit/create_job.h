// Creates a job exactly once, also where the service's answer is lost: the body has a nonce, by
// which the service knows it again (docs/formats/rest.md).
#pragma once

#include <functional>
#include <ostream>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "platform/client/connection/connection.h"
#include "platform/client/connection/service_client.h"

namespace tutti::client {

struct CreateOptions {
  absl::Duration give_up_after = absl::Minutes(1);      // once an answer was lost
  absl::Duration first_pause = absl::Milliseconds(50);  // between two tries; doubles ...
  absl::Duration longest_pause = absl::Seconds(1);      // ... up to this
};

// Returns the created job, as JSON. `body` has a nonce. Where the service was reached and its
// answer did not come, as where it was killed meanwhile, the same body is sent again, each time by
// a connection of its own, so that a service that came back at another address is found; that is
// said to `remarks`. Blocks for `give_up_after` beside the limit of one call (30 s); then, and at
// once where the service was never reached, its last error, Unavailable as a rule.
absl::StatusOr<std::string> CreateJobOnce(ServiceClient& service, const Connect& connect,
                                          const std::string& body, std::ostream& remarks,
                                          const CreateOptions& options = {});

// Does the same for another call, whose body has a nonce too. `what_may_be` ends the error where
// the answer stays lost.
using CallWithNonce =
    std::function<absl::StatusOr<std::string>(ServiceClient& service, bool* asked)>;
absl::StatusOr<std::string> CallOnce(ServiceClient& service, const Connect& connect,
                                     const CallWithNonce& call, absl::string_view what_may_be,
                                     std::ostream& remarks, const CreateOptions& options = {});

}  // namespace tutti::client
