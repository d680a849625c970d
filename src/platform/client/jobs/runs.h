// Prints the MLflow runs that a job logged as a tree, with the metrics of each.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "platform/client/connection/views.h"
#include "platform/client/jobs/summary.h"

namespace tutti::client {

// Returns each run with its metrics, a line each, those within it below it:
//
//   search        loss 0.25
//   ├─ fold-0     loss 0.5
//   └─ 3f2a91c8   loss 0.75      one without a name
//
// None where one run says it all, which is what MetricsText has then. kBrief: the first few, and
// how to see the others.
std::vector<std::string> RunLines(const std::vector<LoggedRunView>& runs, Extent extent,
                                  absl::string_view job_id);

}  // namespace tutti::client
