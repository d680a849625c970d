// Sends the job's results (results.h) from this node to the service.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "platform/launch/delivery/patience.h"
#include "platform/launch/delivery/results.h"
#include "platform/launch/delivery/service_link.h"

namespace tutti::launch {

// The largest file, in bytes, that goes together with others.
inline constexpr uint64_t kSmallResult = 256 << 10;

// Goes on after a file that cannot be sent and returns the first such error with the file's name.
// Aborted when the service does not know the allocation; Cancelled when the link is abandoned.
// `question`: the one for whose sake they are sent while the processes run, "" at their end;
// Aborted, too, if nobody waits for that any more. `taken` is called for each file that the service
// has then.
absl::Status UploadResults(const std::vector<Result>& files, int node, ServiceLink* link,
                           Patience patience, const std::string& question = "",
                           const std::function<void(const Result&)>& taken = {});

}  // namespace tutti::launch
