#include "platform/api/json/status_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "platform/api/json/json_values.h"
#include "platform/service/attempt/node_room.h"
#include "spec/json/job_json.h"
#include "spec/views/job_view.h"
#include "spec/views/node_view.h"
#include "spec/views/view_writer.h"

namespace tutti::api {
namespace {

using json = OrderedJson;
using spec::Rfc3339;
using spec::ViewWriter;

constexpr size_t kLongestNonce = 128;
constexpr size_t kMostOrigins = 16;

const char* Name(spec::Priority priority) {
  switch (priority) {
    case spec::Priority::kLow:
      return "low";
    case spec::Priority::kHigh:
      return "high";
    case spec::Priority::kNormal:
      break;
  }
  return "normal";
}

std::string StateName(store::JobState state) { return std::string(store::Name(state)); }

const char* KindName(spec::JobKind kind) {
  switch (kind) {
    case spec::JobKind::kPipeline:
      return "pipeline";
    case spec::JobKind::kSweep:
      return "sweep";
    case spec::JobKind::kCommand:
      break;
  }
  return "command";
}

const char* Name(service::StartIs what) {
  const auto index = static_cast<size_t>(what);
  return index == 0 ? "" : spec::kStartIs[index - 1];
}

spec::QueuePlaceView ViewOf(const service::QueuePlace& place) {
  spec::QueuePlaceView view{.place = place.place};
  for (const service::QueuePlace::Ahead& job : place.ahead) {
    view.ahead.push_back({.id = job.id, .display_name = job.display_name});
  }
  return view;
}

std::vector<spec::FailureView> FailureViews(const std::vector<service::Failure>& failures) {
  std::vector<spec::FailureView> views;
  for (const service::Failure& failure : failures) {
    views.push_back(
        {.node = failure.node, .what = failure.what, .consequence = failure.consequence});
    if (failure.rank >= 0) views.back().rank = failure.rank;
  }
  return views;
}

// Adds what a job asks for of each node, and what it has been given, if it asks for shares of
// nodes.
void AddShares(const service::JobStatus& status, spec::BriefJobView& view) {
  const auto share = service::NodeShareOf(status.record.job.spec);
  if (!share) return;
  view.part = {.cpus = share->cores,
               .memory_bytes = static_cast<uint64_t>(share->memory_bytes),
               .gpus = share->gpus};
  view.parts.emplace();
  for (const service::PlacedNode& node : status.shares) {
    view.parts->push_back({.node = node.name,
                           .cores = node.cores,
                           .memory_bytes = static_cast<uint64_t>(node.memory_bytes),
                           .gpus = node.gpus});
  }
}

spec::BriefJobView ViewOf(const service::JobStatus& status) {
  const store::Job& job = status.record.job;
  const spec::JobSpec& spec = job.spec;
  const bool pipeline = spec.kind == spec::JobKind::kPipeline;  // its steps have their own
  const bool runs = spec.kind == spec::JobKind::kCommand;       // the others' jobs do
  spec::BriefJobView view;
  view.id = job.id;
  view.type = KindName(spec.kind);
  view.parent = job.parent;
  view.step = job.step;
  view.sequence = job.sequence;
  view.name = spec.name;
  view.display_name = spec.display_name.empty() ? job.id : spec.display_name;
  view.experiment_name = spec.experiment_name;
  view.description = spec.description;
  view.tags = spec.tags;
  view.command = spec.command;
  view.origin = spec.origin;
  if (!pipeline) view.environment = spec.environment.name;
  view.state = StateName(status.record.last.state);
  view.reason = status.reason;
  view.created = Rfc3339(job.created);
  view.started = Rfc3339(status.record.started);
  view.ended = Rfc3339(status.record.ended());
  view.compute = spec.compute;
  view.node_count = runs ? spec.instance_count : 0;
  view.world_size = runs ? spec.WorldSize() : 0;
  view.priority = Name(spec.priority);
  view.expected_start = Rfc3339(status.expected_start);
  view.expected_start_is = Name(status.start_is);
  if (status.queue) view.queue = ViewOf(*status.queue);
  view.nodes = status.nodes;
  view.warnings = job.warnings;
  view.failures = FailureViews(status.failures);
  AddShares(status, view);
  view.snapshot = job.snapshot;
  return view;
}

spec::TrialsView ViewOf(const service::TrialSummary& trials);

spec::ChildView ViewOf(const service::ChildStatus& child);

std::vector<spec::ChildView> ChildViews(const std::vector<service::ChildStatus>& children) {
  std::vector<spec::ChildView> views;
  views.reserve(children.size());
  for (const service::ChildStatus& child : children) views.push_back(ViewOf(child));
  return views;
}

std::optional<spec::TrialsView> TrialsOf(const service::Children& children) {
  if (!children.trials) return std::nullopt;
  return ViewOf(*children.trials);
}

spec::ChildView ViewOf(const service::ChildStatus& child) {
  spec::ChildView view;
  view.step = child.step;
  view.type = KindName(child.kind);
  view.state = child.never ? "NotStarted" : "Waiting";
  if (child.job) {
    const store::JobRecord& record = child.job->record;
    view.id = record.job.id;
    view.state = StateName(record.last.state);
    view.reason = child.job->reason;
    view.started = Rfc3339(record.started);
    view.ended = Rfc3339(record.ended());
  }
  view.reused_from = child.reused_from;
  view.values = {child.values.begin(), child.values.end()};
  view.metric = child.metric;
  view.best = child.best;
  view.children = ChildViews(child.children.list);
  view.trials = TrialsOf(child.children);
  return view;
}

spec::TrialsView ViewOf(const service::TrialSummary& trials) {
  spec::TrialsView view;
  for (const auto& [state, count] : trials.counts) {
    view.count += count;
    view.states[StateName(state)] = count;
  }
  view.best = ChildViews(trials.best);
  view.failed = ChildViews(trials.failed);
  view.next = trials.next;
  return view;
}

spec::EventsView ViewOf(const service::EventPage& page) {
  spec::EventsView view;
  for (const store::Event& event : page.events) {
    view.events.push_back({.sequence = event.sequence,
                           .time = Rfc3339(event.time),
                           .state = StateName(event.state),
                           .reason = event.reason});
  }
  if (page.before != 0) view.before = page.before;
  return view;
}

std::vector<spec::LoggedMetricView> MetricViews(const std::vector<mlflow::Metric>& metrics) {
  std::vector<spec::LoggedMetricView> views;
  for (const mlflow::Metric& metric : metrics) {
    views.push_back({.name = metric.name,
                     .value = metric.value,
                     .step = metric.step,
                     .not_finite = NotFinite(metric.value)});
  }
  return views;
}

spec::LoggedView ViewOf(const mlflow::Logged& logged) {
  spec::LoggedView view{.metrics = MetricViews(logged.metrics)};
  for (const mlflow::Run& run : logged.runs) {
    view.runs.push_back({run.id, run.name, run.parent, MetricViews(run.metrics)});
  }
  for (const mlflow::Param& param : logged.params) view.params.push_back({param.name, param.value});
  for (const mlflow::Model& model : logged.models) view.models.push_back({model.name, model.path});
  for (const mlflow::Artifact& artifact : logged.artifacts) {
    view.artifacts.push_back({artifact.name, artifact.path});
  }
  return view;
}

spec::StoredLogsView ViewOf(const service::StoredLogs& logs) {
  return {.place = logs.place,
          .state = std::string(store::Name(logs.note.state)),
          .reason = logs.note.reason,
          .time = Rfc3339(logs.note.time)};
}

absl::Status Wrong(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("the body of the request: ", what));
}

// Returns what the parser says, without its own name and number.
std::string LocationOf(const nlohmann::json::parse_error& error) {
  const std::string what = error.what();
  const size_t at = what.find("] ");
  return at == std::string::npos ? what : what.substr(at + 2);
}

absl::Status ReadField(const nlohmann::json& value, const char* name, bool required,
                       std::string& to) {
  const auto field = value.find(name);
  if (field == value.end() || (field->is_null() && !required)) {
    return required ? Wrong(absl::StrCat("\"", name, "\" is missing")) : absl::OkStatus();
  }
  if (!field->is_string()) return Wrong(absl::StrCat("\"", name, "\" must be a text"));
  to = field->get<std::string>();
  if (absl::StrContains(to, '\0')) return Wrong(absl::StrCat("\"", name, "\" holds a NUL"));
  return absl::OkStatus();
}

// Adds the snapshot of each code that the job and those below it name.
void AddSnapshots(const spec::JobSpec& spec, const std::string& snapshot,
                  std::map<std::string, std::string>& snapshots) {
  if (!snapshot.empty() && !spec.AllCode().empty()) snapshots[spec.AllCode()] = snapshot;
  for (const spec::Step& step : spec.steps) AddSnapshots(step.job, step.snapshot, snapshots);
}

spec::FileServerFillView ViewOf(const file_server::FillState& fill) {
  return {.state = fill.state,
          .from = fill.from,
          .files = fill.files,
          .of_files = fill.of_files,
          .bytes = fill.bytes,
          .of_bytes = fill.of_bytes,
          .updated = Rfc3339(absl::FromUnixSeconds(fill.updated)),
          .reason = fill.error};
}

std::vector<spec::FileServerView> ViewsOf(
    const std::vector<file_server::ServerStatus>& file_servers) {
  std::vector<spec::FileServerView> views;
  views.reserve(file_servers.size());
  for (const file_server::ServerStatus& status : file_servers) {
    const spec::FileServer& server = status.server;
    views.push_back({.name = server.name,
                     .folder = server.folder.native(),
                     .address = server.address,
                     .port = server.port,
                     .access = spec::kFileServerAccess[server.is_writable ? 1 : 0],
                     .state = status.state.state,
                     .reason = status.state.error});
    if (status.fill) views.back().fill = ViewOf(*status.fill);
  }
  return views;
}

}  // namespace

std::string JobJson(const service::JobStatus& status) { return ViewWriter::Text(ViewOf(status)); }

std::string JobJson(const service::JobStatus& status, const service::EventPage& events,
                    const service::Children& children, const JobDetails& details) {
  spec::JobView view;
  static_cast<spec::BriefJobView&>(view) = ViewOf(status);
  spec::EventsView page = ViewOf(events);
  view.events = std::move(page.events);
  view.events_before = page.before;
  view.children = ChildViews(children.list);
  view.trials = TrialsOf(children);
  view.logged = ViewOf(details.logged);
  for (const store::RemovedFiles& files : details.removed) {
    view.removed.push_back({.kind = files.kind, .time = Rfc3339(files.time)});
  }
  if (details.run) {
    const tracking::RunInfo& run = details.run->info;
    view.mlflow_run = {run.id, run.name, absl::StrCat(run.experiment)};
  }
  if (details.stored_logs) view.stored_logs = ViewOf(*details.stored_logs);
  view.peak_memory = details.peak_memory;
  return ViewWriter::Text(view);
}

std::map<std::string, std::string> SnapshotsOf(const store::Job& job) {
  std::map<std::string, std::string> snapshots;
  AddSnapshots(job.spec, job.snapshot, snapshots);
  return snapshots;
}

std::string SubmissionJson(const store::Job& job, const std::string& former) {
  spec::SubmissionView view{.file = job.spec.file_name,
                            .text = job.file_text,
                            .base_directory = job.spec.directory,
                            .snapshot = job.snapshot,
                            .snapshots = SnapshotsOf(job),
                            .origin = job.spec.origin,
                            .former = former,
                            .job = {spec::ToJson(job.spec)}};
  return ViewWriter::Text(view);
}

std::string EventsJson(const service::EventPage& page) { return ViewWriter::Text(ViewOf(page)); }

std::string TrialsJson(const service::TrialPage& page) {
  return ViewWriter::Text(
      spec::TrialPageView{.trials = ChildViews(page.trials), .next = page.next});
}

std::string JobsJson(const std::vector<service::JobStatus>& jobs) {
  spec::JobsView view;
  for (const service::JobStatus& job : jobs) view.jobs.push_back(ViewOf(job));
  return ViewWriter::Text(view);
}

std::string SummariesJson(const std::vector<service::JobSummary>& jobs) {
  spec::JobSummariesView view;
  view.jobs.reserve(jobs.size());
  for (const service::JobSummary& job : jobs) {
    view.jobs.push_back({.id = job.id,
                         .sequence = job.sequence,
                         .display_name = job.display_name,
                         .experiment_name = job.experiment_name,
                         .command = job.command,
                         .state = StateName(job.state),
                         .reason = job.reason,
                         .created = Rfc3339(job.created),
                         .started = Rfc3339(job.started),
                         .ended = Rfc3339(job.ended),
                         .node_count = job.node_count,
                         .priority = Name(job.priority),
                         .expected_start = Rfc3339(job.expected_start),
                         .expected_start_is = Name(job.start_is)});
  }
  return ViewWriter::Text(view);
}

std::string QueuesJson(const std::vector<service::ComputeQueue>& queues) {
  spec::QueuesView view;
  for (const service::ComputeQueue& queue : queues) {
    spec::QueueView& one =
        view.queues.emplace_back(spec::QueueView{.compute = queue.compute, .count = queue.count});
    for (const service::ComputeQueue::Job& job : queue.jobs) {
      one.jobs.push_back({.place = job.place,
                          .id = job.summary.id,
                          .parent = job.parent,
                          .step = job.step,
                          .display_name = job.summary.display_name,
                          .reason = job.summary.reason,
                          .created = Rfc3339(job.summary.created),
                          .node_count = job.summary.node_count,
                          .priority = Name(job.summary.priority),
                          .expected_start = Rfc3339(job.summary.expected_start),
                          .expected_start_is = Name(job.summary.start_is)});
    }
  }
  return ViewWriter::Text(view);
}

std::string WarningsJson(const std::vector<std::string>& warnings) {
  return ViewWriter::Text(spec::WarningsView{.warnings = warnings});
}

std::string NodesJson(const service::NodeList& nodes,
                      const std::vector<file_server::ServerStatus>& file_servers) {
  spec::NodesView view{.file_servers = ViewsOf(file_servers), .warnings = nodes.warnings};
  for (const service::NodeStatus& node : nodes.nodes) {
    view.nodes.push_back({.name = node.node.name,
                          .compute = node.compute,
                          .address = node.node.address,
                          .cores = node.node.cores,
                          .memory_bytes = static_cast<uint64_t>(node.node.memory_bytes),
                          .gpus = node.node.gpus,
                          .used = {.cores = node.used.cores,
                                   .memory_bytes = static_cast<uint64_t>(node.used.memory_bytes),
                                   .gpus = node.used.gpus},
                          .state = std::string(StateOf(node)),
                          .reason = node.node.reason,
                          .cordoned_by = node.cordoned_by,
                          .job = node.job,
                          .jobs = node.jobs});
  }
  return ViewWriter::Text(view);
}

std::string FileServersJson(const std::vector<file_server::ServerStatus>& file_servers) {
  return ViewWriter::Text(spec::FileServersView{.file_servers = ViewsOf(file_servers)});
}

std::string PruneJson(bool dry_run, const std::vector<service::Removal>& removals,
                      const service::ModelTotals& models) {
  spec::PrunedView view{.dry_run = dry_run,
                        .models = {.versions = models.versions, .bytes = models.bytes}};
  for (const service::Removal& removal : removals) {
    view.bytes += removal.what.bytes;
    view.removed.push_back({.kind = std::string(service::Name(removal.what.kind)),
                            .name = removal.what.name,
                            .place = removal.what.place,
                            .bytes = removal.what.bytes,
                            .last_used = Rfc3339(removal.what.last_use),
                            .why = removal.why});
  }
  return ViewWriter::Text(view);
}

std::string SecretsJson(const std::vector<service::SecretInfo>& secrets) {
  spec::SecretsView view;
  for (const service::SecretInfo& secret : secrets) {
    view.secrets.push_back({.name = secret.name,
                            .created = Rfc3339(secret.created),
                            .set = Rfc3339(secret.set),
                            .readable = secret.readable,
                            .waiting_jobs = secret.waiting_jobs});
  }
  return ViewWriter::Text(view);
}

std::string SecretValuesJson(const service::SecretValues& values) {
  json all = json::object();
  for (const auto& [name, value] : values) all[name] = absl::Base64Escape(value);
  return Text({{"secrets", std::move(all)}});
}

std::string ChecksJson(const std::vector<health::NodeCheck>& checks) {
  spec::NodeChecksView view;
  for (const health::NodeCheck& check : checks) {
    view.checks.push_back({.name = check.name,
                           .outcome = spec::kCheckOutcomes[static_cast<size_t>(check.outcome)],
                           .detail = check.detail});
  }
  return ViewWriter::Text(view);
}

std::string AwayJson(const std::vector<service::AwayFolder>& folders) {
  json away = json::array();
  for (const service::AwayFolder& folder : folders) {
    for (const std::string& name : folder.names) {
      away.push_back({{"folder", name}, {"since", Rfc3339(folder.since)}});
    }
  }
  return Text(away);
}

std::string FilesJson(const std::vector<service::JobFile>& files) {
  spec::FilesView view;
  view.files.reserve(files.size());
  for (const service::JobFile& file : files) {
    view.files.push_back({.path = file.path, .bytes = file.bytes});
  }
  return ViewWriter::Text(view);
}

// Lines are written field by field: a rank may print ten million of them.
std::string FollowLines(const std::vector<service::FollowItem>& items) {
  std::string text;
  std::string time;  // of the item before, which came with many others
  for (const service::FollowItem& item : items) {
    if (&item == items.data() || item.time != (&item - 1)->time) time = Rfc3339(item.time);
    absl::StrAppend(&text, "{\"type\":\"", item.event ? "state" : "output", "\",\"cursor\":\"",
                    item.cursor, "\",\"time\":\"", time, "\"");
    if (item.event) {
      absl::StrAppend(&text, ",\"state\":\"", store::Name(item.event->state), "\",\"reason\":");
      spec::AppendQuoted(item.event->reason, text);
    } else {
      absl::StrAppend(&text, ",\"rank\":", item.rank, ",\"stream\":\"", service::Name(item.stream),
                      "\",\"text\":");
      spec::AppendQuoted(item.text, text);
      if (item.partial) text += ",\"partial\":true";
    }
    text += "}\n";
  }
  return text;
}

std::string LinesJson(const service::LinesPage& page) {
  std::string lines = FollowLines(page.items);
  if (!lines.empty()) lines.pop_back();
  std::replace(lines.begin(), lines.end(), '\n', ',');  // those between lines: texts have none
  const std::string before = page.before.empty() ? "null" : absl::StrCat("\"", page.before, "\"");
  return absl::StrCat("{\"lines\":[", lines, "],\"before\":", before, "}\n");
}

absl::StatusOr<std::string> ReasonFromJson(absl::string_view body) {
  const auto value = nlohmann::json::parse(body.begin(), body.end(), nullptr, false);
  if (!value.is_object()) return Wrong("must be a JSON object");
  if (value.size() != 1 || !value.contains("reason")) return Wrong("has one field, \"reason\"");
  std::string reason;
  TUTTI_RETURN_IF_ERROR(ReadField(value, "reason", true, reason));
  return reason;
}

absl::StatusOr<service::StorageQuestion> StorageQuestionFromJson(absl::string_view body) {
  const auto value = nlohmann::json::parse(body.begin(), body.end(), nullptr, false);
  if (!value.is_object()) return Wrong("must be a JSON object");
  service::StorageQuestion question;
  TUTTI_RETURN_IF_ERROR(ReadField(value, "address", true, question.address));
  for (const auto& [name, field] : value.items()) {
    if (name == "address") continue;
    if (name == "write" && field.is_boolean()) {
      question.write = field.get<bool>();
    } else if (name == "seconds" && field.is_number_unsigned() &&
               field <= absl::ToInt64Seconds(service::kLongestSignature)) {
      question.lasts = absl::Seconds(field.get<int64_t>());
    } else if (name == "write") {
      return Wrong("write must be true or false");
    } else if (name == "seconds") {
      return Wrong("seconds must be a number, at most 604800");
    } else {
      return Wrong(absl::StrCat("\"", name, "\" is not known"));
    }
  }
  return question;
}

absl::StatusOr<service::Submission> SubmissionFromJson(absl::string_view body) {
  nlohmann::json value;
  try {
    value = nlohmann::json::parse(body.begin(), body.end());
  } catch (const nlohmann::json::parse_error& error) {
    return Wrong(LocationOf(error));
  }
  if (!value.is_object()) return Wrong("must be a JSON object");
  for (const auto& [name, field] : value.items()) {
    if (name != "file" && name != "text" && name != "base_directory" && name != "snapshot" &&
        name != "snapshots" && name != "nonce" && name != "origin") {
      return Wrong(absl::StrCat(
          "unknown field \"", name.substr(0, 80),
          "\": file, text, base_directory, snapshot, snapshots, nonce and origin are known"));
    }
  }
  service::Submission submission;
  std::string directory;
  absl::Status status = ReadField(value, "file", false, submission.file);
  status.Update(ReadField(value, "text", true, submission.text));
  status.Update(ReadField(value, "base_directory", true, directory));
  status.Update(ReadField(value, "snapshot", false, submission.snapshot));
  status.Update(ReadField(value, "nonce", false, submission.nonce));
  if (submission.nonce.size() > kLongestNonce) {
    status.Update(Wrong(absl::StrCat("\"nonce\" has more than ", kLongestNonce, " bytes")));
  }
  if (const auto field = value.find("snapshots"); field != value.end()) {
    if (!field->is_object()) return Wrong("\"snapshots\" must be an object");
    for (const auto& [code, snapshot] : field->items()) {
      status.Update(ReadField(*field, code.c_str(), true, submission.snapshots[code]));
    }
  }
  if (const auto field = value.find("origin"); field != value.end()) {
    if (!field->is_object() || field->size() > kMostOrigins) {
      return Wrong(
          absl::StrCat("\"origin\" must be an object of at most ", kMostOrigins, " texts"));
    }
    for (const auto& [name, text] : field->items()) {
      status.Update(ReadField(*field, name.c_str(), true, submission.origin[name]));
    }
  }
  if (!status.ok()) return status;
  submission.base_directory = directory;
  return submission;
}

}  // namespace tutti::api
