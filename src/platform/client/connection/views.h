// Reads the service's answers as the views that the service writes (spec/views/).
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "spec/views/job_view.h"
#include "spec/views/model_view.h"
#include "spec/views/node_view.h"

namespace tutti::client {

using spec::ChildView;
using spec::EventView;
using spec::FailureView;
using spec::FileServerView;
using spec::FilesView;
using spec::FileView;
using spec::JobView;
using spec::LoggedFileView;
using spec::LoggedMetricView;
using spec::LoggedParamView;
using spec::LoggedRunView;
using spec::ModelsView;
using spec::ModelVersionsView;
using spec::ModelVersionView;
using spec::ModelView;
using spec::NodeChecksView;
using spec::NodeCheckView;
using spec::NodesView;
using spec::NodeView;
using spec::PrunedView;
using spec::RemovalView;
using spec::SecretsView;
using spec::SecretView;
using spec::SubmissionView;
using spec::TrialsView;

// Jobs of a list: what it does not tell of one is empty.
struct JobListView {
  static constexpr char kSchema[] = "Jobs";
  std::vector<JobView> jobs;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("jobs", &JobListView::jobs, spec::kNeeded);
  }
};

// Reads an answer as one of the views above (view_reader.h). Internal for a text that is none.
template <class View>
absl::StatusOr<View> Parse(absl::string_view json);

// One line of a job's stream (docs/formats/rest.md).
struct FollowLine {
  enum class Kind { kState, kOutput } kind = Kind::kOutput;
  std::string cursor;
  std::string time;
  std::string state, reason;  // kState
  int rank = 0;               // kOutput
  std::string stream, text;
  bool partial = false;  // kOutput: no newline came; a piece of a line
};
// Parses a line; nullopt for a kind of line that this client does not know.
absl::StatusOr<std::optional<FollowLine>> ParseFollowLine(absl::string_view json);
// Returns the version in the answer to GET /v1/health; "" if there is none.
std::string ParseVersion(absl::string_view json);
// Returns the body of POST /v1/jobs. `nonce` empty: none.
std::string CreateJobBody(const SubmissionView& submission, absl::string_view nonce = "");

}  // namespace tutti::client
