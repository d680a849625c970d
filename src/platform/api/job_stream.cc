#include "platform/api/job_stream.h"

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "base/deadline.h"
#include "base/status.h"
#include "platform/api/json.h"
#include "platform/api/query.h"

namespace tutti::api {
namespace {

using service::FollowResult;
using service::Service;

constexpr absl::Duration kAlive = absl::Seconds(10);

// One follower. Holds no more than one batch.
class Follower {
 public:
  Follower(Service* service, std::string job, std::string cursor, bool follow)
      : service_(service), job_(std::move(job)), cursor_(std::move(cursor)), follow_(follow) {}

  // Before the answer begins: finds what is wrong, and the first batch.
  absl::Status Begin(const std::function<void()>& wake) {
    if (follow_) {
      TUTTI_ASSIGN_OR_RETURN(news_, service_->OnNewsOf(job_, wake));
    }
    TUTTI_ASSIGN_OR_RETURN(first_, Look());
    return absl::OkStatus();
  }

  absl::StatusOr<http::Piece> Next(base::Deadline& again) {
    FollowResult batch;
    if (first_) {
      batch = *std::exchange(first_, std::nullopt);
    } else {
      TUTTI_ASSIGN_OR_RETURN(batch, Look());
    }
    http::Piece piece{.last = batch.ended || (batch.items.empty() && !follow_)};
    for (const service::FollowItem& item : batch.items) piece.bytes += FollowLine(item);
    if (!batch.items.empty()) cursor_ = batch.items.back().cursor;
    if (piece.bytes.empty() && !piece.last && alive_.Expired()) {
      piece.bytes = "{\"type\":\"alive\"}\n";
    }
    if (!piece.bytes.empty()) alive_ = base::Deadline::After(kAlive);
    again = alive_;
    return piece;
  }

 private:
  absl::StatusOr<FollowResult> Look() {
    return service_->Follow(job_, cursor_, base::Deadline::After(absl::ZeroDuration()));
  }

  Service* const service_;
  const std::string job_;
  std::string cursor_;
  const bool follow_;
  service::Subscription news_;
  std::optional<FollowResult> first_;
  base::Deadline alive_ = base::Deadline::After(kAlive);
};

}  // namespace

http::Response FollowJob(Service* service, const Call& call) {
  const auto follow = QueryFlag(call.request, "follow", true);
  if (!follow.ok()) return http::ErrorResponse(follow.status());
  auto follower = std::make_shared<Follower>(service, call["job"],
                                             std::string(call.request.Query("cursor")), *follow);
  const absl::Status begun = follower->Begin(call.connection.Waker());
  if (!begun.ok()) return http::ErrorResponse(begun);
  return {.content_type = "application/x-ndjson",
          .stream = [follower](base::Deadline& again) { return follower->Next(again); }};
}

}  // namespace tutti::api
