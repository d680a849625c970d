#include "platform/launch/delivery/upload.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "base/text/percent_encode.h"
#include "http/file_batch.h"
#include "http/url.h"

namespace tutti::launch {
namespace {

constexpr size_t kBatchBytes = 4 << 20;  // from which on a batch is sent
constexpr size_t kBatchFiles = 1000;
static_assert(kBatchBytes + kSmallResult + 8192 <= http::kLargestBatch);
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
  Batch(int node, ServiceLink* link, Patience patience, const std::string& question,
        const std::function<void(const Result&)>& taken)
      : node_(node),
        link_(link),
        patience_(patience),
        target_(absl::StrCat("/results", QuestionParameter(question, "?"))),
        taken_(taken) {}

  bool empty() const { return files_.empty(); }
  bool full() const { return body_.size() >= kBatchBytes || files_.size() >= kBatchFiles; }
  // `result` lives until Send.
  void Add(const Result& result, absl::string_view bytes) {
    http::AppendToBatch(result.path, bytes, body_);
    files_.push_back(&result);
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
        response.ok() ? TakeAnswer(response->body)
                      : base::Annotate(response.status(),
                                       absl::StrCat("sending ", files_.size(), " results, ",
                                                    files_.front()->path, " the first"));
    body_.clear();
    files_.clear();
    return status;
  }

 private:
  // Returns the first file that is refused; the others are taken.
  absl::Status TakeAnswer(const std::string& answer) const {
    const auto parsed = nlohmann::json::parse(answer, nullptr, /*allow_exceptions=*/false);
    if (!parsed.is_object() || !parsed.contains("refused") || !parsed["refused"].is_array()) {
      return absl::InternalError("the service's answer to results is not readable");
    }
    absl::Status first;
    std::set<size_t> all_refused;
    for (const nlohmann::json& refused : parsed["refused"]) {
      const size_t file = refused.value("file", size_t{0});
      all_refused.insert(file);
      first.Update(absl::InvalidArgumentError(
          absl::StrCat("sending ", file < files_.size() ? files_[file]->path : "", ": ",
                       refused.value("why", ""))));
    }
    for (size_t i = 0; taken_ && i < files_.size(); ++i) {
      if (!all_refused.contains(i)) taken_(*files_[i]);
    }
    return first;
  }

  const int node_;
  ServiceLink* const link_;
  const Patience patience_;
  const std::string target_;
  const std::function<void(const Result&)>& taken_;
  std::string body_;
  std::vector<const Result*> files_;
};

bool IsSmall(const Result& result) {
  std::error_code error;
  const uint64_t bytes = std::filesystem::file_size(result.file, error);
  return !error && bytes <= kSmallResult;
}

}  // namespace

absl::Status UploadResults(const std::vector<Result>& files, int node, ServiceLink* link,
                           Patience patience, const std::string& question,
                           const std::function<void(const Result&)>& taken) {
  absl::Status first;
  Batch batch(node, link, patience, question, taken);
  for (const Result& result : files) {
    // One that grows meanwhile, or cannot be read, goes alone, which says why.
    const auto bytes = IsSmall(result) ? base::ReadFile(result.file, kSmallResult)
                                       : absl::StatusOr<std::string>(absl::UnknownError("large"));
    if (bytes.ok()) batch.Add(result, *bytes);
    if (bytes.ok() && !batch.full()) continue;
    const absl::Status status = bytes.ok()
                                    ? batch.Send()
                                    : base::Annotate(Upload(result, node, link, patience, question),
                                                     absl::StrCat("sending ", result.path));
    if (status.ok() && !bytes.ok() && taken) taken(result);
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
