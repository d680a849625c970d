#include "platform/launch/delivery/upload.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "base/text/percent_encode.h"
#include "platform/http/file_batch.h"
#include "platform/http/url.h"

namespace tutti::launch {
namespace {

constexpr uint64_t kSmall = 256 << 10;   // a file that goes with others
constexpr size_t kBatchBytes = 4 << 20;  // from which on a batch is sent
constexpr size_t kBatchFiles = 1000;
static_assert(kBatchBytes + kSmall + 8192 <= http::kLargestBatch);
static_assert(kBatchFiles <= http::kMostOfABatch);

std::string QuestionParameter(const std::string& question, const char* before) {
  return question.empty() ? "" : absl::StrCat(before, "question=", base::PercentEncode(question));
}

bool EndsAll(const absl::Status& status) {
  return absl::IsAborted(status) || absl::IsCancelled(status);
}

absl::Status Upload(const Result& result, int node, ServiceLink* link, Patience patience,
                    const std::string& question) {
  http::ClientRequest request;
  request.method = "PUT";
  request.target =
      link->Target(node, absl::StrCat("/files?path=", base::PercentEncode(result.path, true),
                                      QuestionParameter(question, "&")));
  request.content_type = "application/octet-stream";
  request.body_file = result.file;
  request.timeout = absl::Minutes(5);  // the service makes the file durable before it answers
  request.stall_timeout = absl::Seconds(60);
  while (true) {
    const auto response = link->CallWithin(request, patience);
    // The file became shorter while it was read: a process outside of our reach still writes it.
    const base::Deadline end = patience.EndAfter(link->put_off(Urgency::kOutput));
    if (!absl::IsDataLoss(response.status()) || end.Expired()) return response.status();
    link->PauseAfterFailure();
  }
}

// Small files of one call. What the service has is not asked for: a call that is cut off is
// repeated as a whole, which changes nothing of what had come.
class Batch {
 public:
  Batch(int node, ServiceLink* link, Patience patience, const std::string& question)
      : node_(node),
        link_(link),
        patience_(patience),
        target_(absl::StrCat("/results", QuestionParameter(question, "?"))) {}

  bool empty() const { return paths_.empty(); }
  bool full() const { return body_.size() >= kBatchBytes || paths_.size() >= kBatchFiles; }
  void Add(const std::string& path, absl::string_view bytes) {
    http::AppendToBatch(path, bytes, body_);
    paths_.push_back(path);
  }
  // The first error, with the name of its file; Aborted and Cancelled as UploadResults has them.
  absl::Status Send() {
    http::ClientRequest request;
    request.method = "POST";
    request.target = link_->Target(node_, target_);
    request.content_type = "application/octet-stream";
    request.body = std::move(body_);
    request.timeout = absl::Minutes(5);
    const auto response = link_->CallWithin(request, patience_);
    if (EndsAll(response.status())) return response.status();
    const absl::Status status =
        response.ok() ? FirstRefused(response->body)
                      : base::Annotate(response.status(),
                                       absl::StrCat("sending ", paths_.size(), " results, ",
                                                    paths_.front(), " the first"));
    body_.clear();
    paths_.clear();
    return status;
  }

 private:
  absl::Status FirstRefused(const std::string& answer) const {
    const auto parsed = nlohmann::json::parse(answer, nullptr, /*allow_exceptions=*/false);
    if (!parsed.is_object() || !parsed.contains("refused") || !parsed["refused"].is_array()) {
      return absl::InternalError("the service's answer to results is not readable");
    }
    for (const nlohmann::json& refused : parsed["refused"]) {
      const size_t file = refused.value("file", size_t{0});
      return absl::InvalidArgumentError(absl::StrCat(
          "sending ", file < paths_.size() ? paths_[file] : "", ": ", refused.value("why", "")));
    }
    return absl::OkStatus();
  }

  const int node_;
  ServiceLink* const link_;
  const Patience patience_;
  const std::string target_;
  std::string body_;
  std::vector<std::string> paths_;
};

bool IsSmall(const Result& result) {
  std::error_code error;
  const uint64_t bytes = std::filesystem::file_size(result.file, error);
  return !error && bytes <= kSmall;
}

}  // namespace

absl::Status UploadResults(const std::vector<Result>& files, int node, ServiceLink* link,
                           Patience patience, const std::string& question) {
  absl::Status first;
  Batch batch(node, link, patience, question);
  for (const Result& result : files) {
    // One that grows meanwhile, or cannot be read, goes alone, which says why.
    const auto bytes = IsSmall(result) ? base::ReadFile(result.file, kSmall)
                                       : absl::StatusOr<std::string>(absl::UnknownError("large"));
    if (bytes.ok()) batch.Add(result.path, *bytes);
    if (bytes.ok() && !batch.full()) continue;
    const absl::Status status = bytes.ok()
                                    ? batch.Send()
                                    : base::Annotate(Upload(result, node, link, patience, question),
                                                     absl::StrCat("sending ", result.path));
    if (EndsAll(status)) return status;
    first.Update(status);
  }
  if (batch.empty()) return first;
  const absl::Status last = batch.Send();
  if (EndsAll(last)) return last;
  first.Update(last);
  return first;
}

}  // namespace tutti::launch
