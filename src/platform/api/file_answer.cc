#include "platform/api/file_answer.h"

#include <spdlog/spdlog.h>

#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "base/deadline.h"

namespace tutti::api {
namespace {

using http::Response;

constexpr absl::Duration kLook = absl::Milliseconds(50);  // at whether its folder is away

// One answer on its way. Thread-safe.
class FileAnswer {
 public:
  explicit FileAnswer(std::function<Response()> make) : make_(std::move(make)) {}

  void Make() {
    std::function<Response()> make;
    {
      absl::MutexLock lock(&mutex_);
      make = std::exchange(make_, nullptr);
    }
    if (make == nullptr) return;
    Response made = Guarded(make);
    absl::MutexLock lock(&mutex_);
    made_ = std::move(made);
  }
  // What has not been begun is not done, and what it holds goes now.
  void GiveUp() {
    std::function<Response()> dropped;
    absl::MutexLock lock(&mutex_);
    dropped = std::exchange(make_, nullptr);
  }
  std::optional<Response> Take() {
    absl::MutexLock lock(&mutex_);
    return std::exchange(made_, std::nullopt);
  }

 private:
  static Response Guarded(const std::function<Response()>& make) {
    try {
      return make();
    } catch (const std::exception& e) {
      spdlog::error("work on files: {}", e.what());
      return http::ErrorResponse(500, "internal", "the service failed; its log has the reason");
    }
  }

  absl::Mutex mutex_;
  std::function<Response()> make_ ABSL_GUARDED_BY(mutex_);
  std::optional<Response> made_ ABSL_GUARDED_BY(mutex_);
};

// The connection that waits for it: nobody does once it is gone.
class Wait {
 public:
  Wait(std::shared_ptr<FileAnswer> answer, const FileCall& call, base::Deadline deadline)
      : answer_(std::move(answer)), call_(call), deadline_(deadline) {}
  ~Wait() { answer_->GiveUp(); }
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;

  std::optional<Response> Look(base::Deadline& again) {
    again = base::Deadline::Sooner(deadline_, base::Deadline::After(kLook));
    if (std::optional<Response> made = answer_->Take()) return made;
    absl::Status folder = call_.service->CheckFolder(call_.kind, call_.queue);
    if (folder.ok() && deadline_.Expired()) {
      folder =
          absl::UnavailableError("the service's folder for this does not answer: try again later");
    }
    return folder.ok() ? std::nullopt : std::optional(http::ErrorResponse(folder));
  }

 private:
  const std::shared_ptr<FileAnswer> answer_;
  const FileCall call_;
  const base::Deadline deadline_;
};

}  // namespace

Response AnswerByFileWork(const FileCall& call, http::Connection& connection,
                          std::function<Response()> make) {
  const auto answer = std::make_shared<FileAnswer>(std::move(make));
  const auto work = [answer, wake = connection.Waker()] {
    answer->Make();
    wake();
  };
  const auto deadline = call.service->DoFileWork(call.kind, call.queue, work);
  if (!deadline.ok()) return http::ErrorResponse(deadline.status());
  const auto wait = std::make_shared<Wait>(answer, call, *deadline);
  return {.later = [wait](base::Deadline& again) { return wait->Look(again); }};
}

Response DownloadResponse(std::string content_type, std::filesystem::path file) {
  return {.content_type = std::move(content_type),
          .headers = {{"X-Content-Type-Options", "nosniff"},
                      {"Content-Disposition", "attachment"},
                      {"Content-Security-Policy", "sandbox"}},
          .file = std::move(file)};
}

}  // namespace tutti::api
