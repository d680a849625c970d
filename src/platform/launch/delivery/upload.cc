#include "platform/launch/delivery/upload.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "platform/http/url.h"

namespace tutti::launch {
namespace {

absl::Status Upload(const Result& result, int node, ServiceLink* link, base::Deadline deadline) {
  http::ClientRequest request;
  request.method = "PUT";
  request.target =
      link->Target(node, absl::StrCat("/files?path=", http::PercentEncode(result.path, true)));
  request.content_type = "application/octet-stream";
  request.body_file = result.file;
  request.timeout = absl::Minutes(5);  // the service makes the file durable before it answers
  request.stall_timeout = absl::Seconds(60);
  while (true) {
    const auto response = link->Call(request, deadline);
    // The file became shorter while it was read: a process outside of our reach still writes it.
    if (!absl::IsDataLoss(response.status()) || deadline.Expired()) return response.status();
    link->PauseAfterFailure();
  }
}

}  // namespace

absl::Status UploadResults(const std::vector<Result>& files, int node, ServiceLink* link,
                           base::Deadline deadline) {
  absl::Status first;
  for (const Result& result : files) {
    const absl::Status status = Upload(result, node, link, deadline);
    if (absl::IsAborted(status)) return status;
    first.Update(base::Annotate(status, absl::StrCat("sending ", result.path)));
  }
  return first;
}

}  // namespace tutti::launch
