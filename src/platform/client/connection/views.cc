#include "platform/client/connection/views.h"

#include <nlohmann/json.hpp>

#include "base/status.h"
#include "spec/views/view_reader.h"

namespace tutti::client {
namespace {

using nlohmann::json;

// A line of a job's stream, of whatever kind.
struct StreamLineView {
  static constexpr char kSchema[] = "FollowLine";
  std::string type, cursor, time, state, reason, stream, text;
  int rank = 0;
  bool partial = false;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("type", &StreamLineView::type);
    visitor.Field("cursor", &StreamLineView::cursor);
    visitor.Field("time", &StreamLineView::time);
    visitor.Field("state", &StreamLineView::state);
    visitor.Field("reason", &StreamLineView::reason);
    visitor.Field("rank", &StreamLineView::rank);
    visitor.Field("stream", &StreamLineView::stream);
    visitor.Field("text", &StreamLineView::text);
    visitor.Field("partial", &StreamLineView::partial);
  }
};

struct HealthView {
  static constexpr char kSchema[] = "Health";
  std::string version;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("version", &HealthView::version);
  }
};

}  // namespace

template <class View>
absl::StatusOr<View> Parse(absl::string_view text) {
  return spec::ViewReader::Read<View>(text);
}

template absl::StatusOr<JobView> Parse(absl::string_view);
template absl::StatusOr<JobListView> Parse(absl::string_view);
template absl::StatusOr<spec::WarningsView> Parse(absl::string_view);
template absl::StatusOr<SubmissionView> Parse(absl::string_view);
template absl::StatusOr<FilesView> Parse(absl::string_view);
template absl::StatusOr<NodesView> Parse(absl::string_view);
template absl::StatusOr<NodeChecksView> Parse(absl::string_view);
template absl::StatusOr<spec::ProblemsView> Parse(absl::string_view);
template absl::StatusOr<SecretsView> Parse(absl::string_view);
template absl::StatusOr<spec::FailedJobsView> Parse(absl::string_view);
template absl::StatusOr<PrunedView> Parse(absl::string_view);
template absl::StatusOr<ModelsView> Parse(absl::string_view);
template absl::StatusOr<ModelVersionView> Parse(absl::string_view);
template absl::StatusOr<spec::LineageView> Parse(absl::string_view);
template absl::StatusOr<ModelVersionsView> Parse(absl::string_view);

absl::StatusOr<std::optional<FollowLine>> ParseFollowLine(absl::string_view text) {
  TUTTI_ASSIGN_OR_RETURN(StreamLineView line, spec::ViewReader::Read<StreamLineView>(text));
  if (line.type != "state" && line.type != "output") return std::nullopt;
  const bool is_state = line.type == "state";
  return FollowLine{.kind = is_state ? FollowLine::Kind::kState : FollowLine::Kind::kOutput,
                    .cursor = std::move(line.cursor),
                    .time = std::move(line.time),
                    .state = std::move(line.state),
                    .reason = std::move(line.reason),
                    .rank = line.rank,
                    .stream = std::move(line.stream),
                    .text = std::move(line.text),
                    .partial = line.partial};
}

std::string ParseVersion(absl::string_view text) {
  const auto health = spec::ViewReader::Read<HealthView>(text);
  return health.ok() ? health->version : "";
}

std::string CreateJobBody(const SubmissionView& submission, absl::string_view nonce) {
  json body;
  body["file"] = submission.file;
  body["text"] = submission.text;
  body["base_directory"] = submission.base_directory;
  body["snapshot"] = submission.snapshot.empty() ? json(nullptr) : json(submission.snapshot);
  if (!submission.snapshots.empty()) body["snapshots"] = submission.snapshots;
  if (!submission.origin.empty()) body["origin"] = submission.origin;
  if (!nonce.empty()) body["nonce"] = std::string(nonce);
  return body.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace tutti::client
