#include "platform/api/follow.h"

#include "base/deadline.h"
#include "base/status.h"
#include "platform/api/json.h"
#include "platform/api/query.h"

namespace tutti::api {
namespace {

using service::FollowResult;
using service::Service;

constexpr absl::Duration kLookForMore =
    absl::Milliseconds(500);  // whether the client is still there
constexpr absl::Duration kAlive = absl::Seconds(10);

// One follower. Holds no more than one batch.
class Follower {
 public:
  Follower(Service* service, std::string job, std::string cursor, bool follow)
      : service_(service), job_(std::move(job)), cursor_(std::move(cursor)), follow_(follow) {}

  // The next batch; the first one, before the answer begins, also finds what is wrong.
  absl::StatusOr<FollowResult> Next(absl::Duration wait) {
    return service_->Follow(job_, cursor_, base::Deadline::After(wait));
  }

  absl::Status Run(FollowResult batch, http::Writer& writer) {
    base::Deadline alive = base::Deadline::After(kAlive);
    while (true) {
      if (!batch.items.empty()) {
        TUTTI_RETURN_IF_ERROR(Send(batch, writer));
        alive = base::Deadline::After(kAlive);
      }
      if (batch.ended || (batch.items.empty() && !follow_)) return absl::OkStatus();
      if (writer.Closed()) return absl::CancelledError("the follower has gone");
      if (alive.Expired()) {
        TUTTI_RETURN_IF_ERROR(writer.Write("{\"type\":\"alive\"}\n"));
        alive = base::Deadline::After(kAlive);
      }
      TUTTI_ASSIGN_OR_RETURN(batch, Next(follow_ ? kLookForMore : absl::ZeroDuration()));
    }
  }

 private:
  absl::Status Send(const FollowResult& batch, http::Writer& writer) {
    std::string lines;
    for (const service::FollowItem& item : batch.items) lines += FollowLine(item);
    cursor_ = batch.items.back().cursor;
    return writer.Write(lines);
  }

  Service* const service_;
  const std::string job_;
  std::string cursor_;
  const bool follow_;
};

}  // namespace

http::Response FollowJob(Service* service, const Call& call) {
  const auto follow = QueryFlag(call.request, "follow", true);
  if (!follow.ok()) return http::ErrorResponse(follow.status());
  auto follower = std::make_shared<Follower>(service, call["job"],
                                             std::string(call.request.Query("cursor")), *follow);
  auto first = follower->Next(absl::ZeroDuration());
  if (!first.ok()) return http::ErrorResponse(first.status());
  return {.content_type = "application/x-ndjson",
          .stream = [follower, batch = *std::move(first)](http::Writer& writer) {
            return follower->Run(batch, writer);
          }};
}

}  // namespace tutti::api
