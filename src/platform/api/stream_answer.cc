#include "platform/api/stream_answer.h"

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/deadline.h"
#include "base/status.h"
#include "platform/api/file_answer.h"
#include "platform/api/json/status_json.h"
#include "platform/api/routing/query.h"

namespace tutti::api {
namespace {

using service::FollowResult;
using service::Service;

constexpr absl::Duration kAlive = absl::Seconds(10);
constexpr int kQueuesOfAJob = 4;
constexpr int kMostLeftOut = 16;  // batches of which nothing is told, without a sign of life
constexpr int kLines = 1000;      // of a page, where the caller does not say
constexpr int kMostLines = 10'000;

// Followers of a job that find their place in its log at the same time.
std::string QueueOf(const std::string& job) {
  static std::atomic<unsigned> followers = 0;
  return absl::StrCat(job, "/", followers++ % kQueuesOfAJob);
}

// One follower. Holds no more than one batch.
class Follower : public std::enable_shared_from_this<Follower> {
 public:
  Follower(Service* service, std::string job, std::string cursor, bool follow,
           const service::FollowFilter& filter)
      : service_(service),
        job_(std::move(job)),
        cursor_(std::move(cursor)),
        follow_(follow),
        filter_(filter) {}

  // Without a look at files.
  absl::Status Begin(const std::function<void()>& wake) {
    if (!follow_) return absl::OkStatus();
    TUTTI_ASSIGN_OR_RETURN(news_, service_->OnNewsOf(job_, [this, wake] {
      has_news_ = true;
      wake();
    }));
    return absl::OkStatus();
  }

  // Before the answer begins: finds what is wrong, and the first batch.
  http::Response First() {
    auto batch = Look();
    if (!batch.ok()) return http::ErrorResponse(batch.status());
    first_ = *std::move(batch);
    return {
        .content_type = "application/x-ndjson",
        .stream = [self = shared_from_this()](base::Deadline& again) { return self->Next(again); }};
  }

 private:
  absl::StatusOr<http::Piece> Next(base::Deadline& again) {
    FollowResult batch;
    if (first_) {
      batch = *std::exchange(first_, std::nullopt);
    } else if (more_ || has_news_ || !follow_) {
      TUTTI_ASSIGN_OR_RETURN(batch, Look());
    }
    more_ = batch.more;
    http::Piece piece{.bytes = FollowLines(batch.items),
                      .last = batch.ended || (batch.items.empty() && !more_ && !follow_)};
    if (piece.bytes.empty() && !piece.last && (more_ || alive_.Expired())) {
      piece.bytes = "{\"type\":\"alive\"}\n";
    }
    if (!piece.bytes.empty()) alive_ = base::Deadline::After(kAlive);
    again = alive_;
    return piece;
  }

  absl::StatusOr<FollowResult> Look() {
    has_news_ = false;  // what comes from here on the look may not see
    FollowResult batch;
    for (int i = 0; i < kMostLeftOut && batch.items.empty(); ++i) {
      TUTTI_ASSIGN_OR_RETURN(
          batch,
          service_->Follow(job_, cursor_, base::Deadline::After(absl::ZeroDuration()), filter_));
      if (!batch.cursor.empty()) cursor_ = batch.cursor;
      if (!batch.more) break;
    }
    return batch;
  }

  Service* const service_;
  const std::string job_;
  std::string cursor_;
  const bool follow_;
  const service::FollowFilter filter_;
  std::atomic<bool> has_news_ = false;
  bool more_ = false;  // than the last batch had
  std::optional<FollowResult> first_;
  base::Deadline alive_ = base::Deadline::After(kAlive);
  service::Subscription news_;  // goes first: it refers to the above
};

}  // namespace

http::Response FollowJob(Service* service, const Call& call) {
  const auto follow = QueryFlag(call.request, "follow", true);
  if (!follow.ok()) return http::ErrorResponse(follow.status());
  const auto reports = QueryFlag(call.request, "reports", true);
  if (!reports.ok()) return http::ErrorResponse(reports.status());
  auto follower =
      std::make_shared<Follower>(service, call["job"], std::string(call.request.Query("cursor")),
                                 *follow, service::FollowFilter{.reports = *reports});
  const absl::Status begun = follower->Begin(call.connection.Waker());
  if (!begun.ok()) return http::ErrorResponse(begun);
  return AnswerByFileWork({service, Service::FileWork::kReading, QueueOf(call["job"])},
                          call.connection, [follower] { return follower->First(); });
}

http::Response ListLines(Service* service, const Call& call) {
  const auto limit = QueryNumber(call.request, "limit", kLines, 1, kMostLines);
  if (!limit.ok()) return http::ErrorResponse(limit.status());
  const auto make = [service, job = call["job"], limit = static_cast<int>(*limit),
                     before = std::string(call.request.Query("before"))] {
    const auto page = service->LinesBefore(job, before, limit);
    if (!page.ok()) return http::ErrorResponse(page.status());
    return http::JsonResponse(LinesJson(*page));
  };
  return AnswerByFileWork({service, Service::FileWork::kReading, QueueOf(call["job"])},
                          call.connection, make);
}

}  // namespace tutti::api
