#include "platform/api/json/status_json.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "platform/api/json/json_values.h"
#include "platform/service/attempt/node_room.h"
#include "spec/json/job_json.h"

namespace tutti::api {
namespace {

using json = OrderedJson;

constexpr size_t kLongestNonce = 128;
constexpr size_t kMostOrigins = 16;

json Rfc3339OrNull(const std::optional<absl::Time>& time) {
  return time ? json(Rfc3339(*time)) : json(nullptr);
}

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

json Failures(const std::vector<service::Failure>& failures) {
  json list = json::array();
  for (const service::Failure& failure : failures) {
    list.push_back({{"rank", failure.rank < 0 ? json(nullptr) : json(failure.rank)},
                    {"node", failure.node},
                    {"what", failure.what},
                    {"consequence", failure.consequence}});
  }
  return list;
}

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

// Adds what a job asks for of each node, and what it has been given, if it asks for parts of nodes.
void AddParts(const service::JobStatus& status, json& object) {
  const auto part = service::PartOf(status.record.job.spec);
  if (!part) return;
  object["part"] = {
      {"cpus", part->cores}, {"memory_bytes", part->memory_bytes}, {"gpus", part->gpus}};
  json has = json::array();
  for (const service::PlacedNode& node : status.parts) {
    has.push_back({{"node", node.name},
                   {"cores", node.cores},
                   {"memory_bytes", node.memory_bytes},
                   {"gpus", node.gpus}});
  }
  object["parts"] = std::move(has);
}

json Job(const service::JobStatus& status) {
  const store::Job& job = status.record.job;
  const spec::JobSpec& spec = job.spec;
  const bool pipeline = spec.kind == spec::JobKind::kPipeline;  // its steps have their own
  const bool runs = spec.kind == spec::JobKind::kCommand;       // the others' jobs do
  json object = {{"id", job.id},
                 {"type", KindName(spec.kind)},
                 {"parent", TextOrNull(job.parent)},
                 {"step", TextOrNull(job.step)},
                 {"sequence", job.sequence},
                 {"name", TextOrNull(spec.name)},
                 {"display_name", spec.display_name.empty() ? job.id : spec.display_name},
                 {"experiment_name", spec.experiment_name},
                 {"description", spec.description},
                 {"tags", json(spec.tags)},
                 {"command", spec.command},
                 {"origin", json(spec.origin)},
                 {"environment", pipeline ? "" : spec.environment.name},
                 {"state", StateName(status.record.last.state)},
                 {"reason", status.reason},
                 {"created", Rfc3339(job.created)},
                 {"started", Rfc3339OrNull(status.record.started)},
                 {"ended", Rfc3339OrNull(status.record.ended())},
                 {"compute", spec.compute},
                 {"node_count", runs ? spec.instance_count : 0},
                 {"world_size", runs ? spec.WorldSize() : 0},
                 {"priority", Name(spec.priority)},
                 {"expected_start", Rfc3339OrNull(status.expected_start)},
                 {"nodes", status.nodes},
                 {"warnings", job.warnings},
                 {"failures", Failures(status.failures)},
                 {"snapshot", TextOrNull(job.snapshot)}};
  AddParts(status, object);
  return object;
}

// As a JSON text. What needs more than quotes is left to the library.
void AppendQuoted(absl::string_view text, std::string& to) {
  const bool plain = std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
  });
  if (plain) {
    absl::StrAppend(&to, "\"", text, "\"");
  } else {
    to += Text(json(std::string(text)));
  }
}

std::string Quoted(absl::string_view text) {
  std::string quoted;
  AppendQuoted(text, quoted);
  return quoted;
}

// Rfc3339, and some times as fast.
std::string QuotedTime(const std::optional<absl::Time>& time) {
  if (!time) return "null";
  const absl::CivilSecond at = absl::ToCivilSecond(*time, absl::UTCTimeZone());
  const int64_t micros =
      absl::ToInt64Microseconds(*time - absl::FromCivil(at, absl::UTCTimeZone()));
  std::array<char, 48> text;
  const int length =
      std::snprintf(text.data(), text.size(), "\"%04d-%02d-%02dT%02d:%02d:%02d.%06dZ\"",
                    static_cast<int>(at.year()), at.month(), at.day(), at.hour(), at.minute(),
                    at.second(), static_cast<int>(micros));
  return std::string(text.data(), static_cast<size_t>(length));
}

std::string QuotedOrNull(absl::string_view text) { return text.empty() ? "null" : Quoted(text); }

void AppendChildren(const service::Children& children, std::string& text);

// Written by hand, as the library takes some times as long and a page may have a thousand.
void AppendChild(const service::ChildStatus& child, std::string& text) {
  const store::JobRecord* const record = child.job ? &child.job->record : nullptr;
  const absl::string_view state = record != nullptr ? store::Name(record->last.state)
                                  : child.never     ? "NotStarted"
                                                    : "Waiting";
  absl::StrAppend(&text, "{\"step\":", Quoted(child.step), ",\"type\":\"", KindName(child.kind),
                  "\",\"id\":", record == nullptr ? "null" : Quoted(record->job.id),
                  ",\"state\":\"", state,
                  "\",\"reason\":", Quoted(child.job ? child.job->reason : ""));
  absl::StrAppend(&text, ",\"started\":", record == nullptr ? "null" : QuotedTime(record->started),
                  ",\"ended\":", record == nullptr ? "null" : QuotedTime(record->ended()),
                  ",\"reused_from\":", QuotedOrNull(child.reused_from), ",\"values\":{");
  for (const auto& [name, value] : child.values) {
    absl::StrAppend(&text, text.back() == '{' ? "" : ",", Quoted(name), ":", Quoted(value));
  }
  absl::StrAppend(&text, "},\"metric\":", child.metric ? Text(json(*child.metric)) : "null",
                  ",\"best\":", child.best ? "true" : "false", ",");
  AppendChildren(child.children, text);
  text += '}';
}

void AppendList(const char* name, const std::vector<service::ChildStatus>& children,
                std::string& text) {
  absl::StrAppend(&text, "\"", name, "\":[");
  for (const service::ChildStatus& child : children) {
    if (&child != children.data()) text += ',';
    AppendChild(child, text);
  }
  text += ']';
}

void AppendSummary(const service::TrialSummary& trials, std::string& text) {
  int64_t count = 0;
  std::string states;
  for (const auto& [state, trials_in_it] : trials.counts) {
    count += trials_in_it;
    absl::StrAppend(&states, states.empty() ? "" : ",", Quoted(store::Name(state)), ":",
                    trials_in_it);
  }
  absl::StrAppend(&text, "{\"count\":", count, ",\"states\":{", states, "},");
  AppendList("best", trials.best, text);
  text += ',';
  AppendList("failed", trials.failed, text);
  absl::StrAppend(&text, ",\"next\":", QuotedOrNull(trials.next), "}");
}

// The two fields of a job and of a child.
void AppendChildren(const service::Children& children, std::string& text) {
  AppendList("children", children.list, text);
  text += ",\"trials\":";
  if (children.trials) {
    AppendSummary(*children.trials, text);
  } else {
    text += "null";
  }
}

json EventList(const std::vector<store::Event>& events) {
  json list = json::array();
  for (const store::Event& event : events) {
    list.push_back({{"sequence", event.sequence},
                    {"time", Rfc3339(event.time)},
                    {"state", StateName(event.state)},
                    {"reason", event.reason}});
  }
  return list;
}

json BeforeOrNull(const service::EventPage& page) {
  return page.before == 0 ? json(nullptr) : json(page.before);
}

json MetricsJson(const std::vector<mlflow::Metric>& metrics) {
  json list = json::array();
  for (const mlflow::Metric& metric : metrics) {
    list.push_back({{"name", metric.name},
                    {"value", std::isfinite(metric.value) ? json(metric.value) : json(nullptr)},
                    {"step", metric.step}});
  }
  return list;
}

json RunsJson(const std::vector<mlflow::Run>& runs) {
  json list = json::array();
  for (const mlflow::Run& run : runs) {
    list.push_back({{"id", run.id},
                    {"name", run.name},
                    {"parent", TextOrNull(run.parent)},
                    {"metrics", MetricsJson(run.metrics)}});
  }
  return list;
}

json LoggedJson(const mlflow::Logged& logged) {
  json models = json::array(), params = json::array(), artifacts = json::array();
  for (const mlflow::Param& param : logged.params) {
    params.push_back({{"name", param.name}, {"value", param.value}});
  }
  for (const mlflow::Model& model : logged.models) {
    models.push_back({{"name", model.name}, {"path", model.path}});
  }
  for (const mlflow::Artifact& artifact : logged.artifacts) {
    artifacts.push_back({{"name", artifact.name}, {"path", artifact.path}});
  }
  return {{"metrics", MetricsJson(logged.metrics)},
          {"runs", RunsJson(logged.runs)},
          {"params", std::move(params)},
          {"models", std::move(models)},
          {"artifacts", std::move(artifacts)}};
}

json TrackedRunJson(const tracking::RunInfo& run) {
  return {{"id", run.id}, {"name", run.name}, {"experiment_id", absl::StrCat(run.experiment)}};
}

absl::Status Wrong(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("the body of the request: ", what));
}

// What the parser says, without its own name and number.
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
void AddSnapshots(const spec::JobSpec& spec, const std::string& snapshot, json& snapshots) {
  if (!snapshot.empty() && !spec.AllCode().empty()) snapshots[spec.AllCode()] = snapshot;
  for (const spec::Step& step : spec.steps) AddSnapshots(step.job, step.snapshot, snapshots);
}

json StoredLogsJson(const service::StoredLogs& logs) {
  return {{"place", logs.place},
          {"state", std::string(store::Name(logs.note.state))},
          {"reason", logs.note.reason},
          {"time", Rfc3339(logs.note.time)}};
}

}  // namespace

std::string JobJson(const service::JobStatus& status) { return Text(Job(status)); }

std::string JobJson(const service::JobStatus& status, const service::EventPage& events,
                    const service::Children& children, const mlflow::Logged& logged,
                    const std::vector<store::RemovedFiles>& removed,
                    const std::optional<service::StoredLogs>& stored_logs,
                    const std::optional<tracking::Run>& run) {
  json job = Job(status);
  if (run) job["mlflow_run"] = TrackedRunJson(run->info);
  job["removed"] = json::array();
  for (const store::RemovedFiles& files : removed) {
    job["removed"].push_back({{"kind", files.kind}, {"time", Rfc3339(files.time)}});
  }
  job["stored_logs"] = stored_logs ? StoredLogsJson(*stored_logs) : json();
  job["events"] = EventList(events.events);
  job["events_before"] = BeforeOrNull(events);
  std::string text = Text(job);
  text.back() = ',';  // its fields go on
  AppendChildren(children, text);
  absl::StrAppend(&text, ",\"logged\":", Text(LoggedJson(logged)), "}");
  return text;
}

std::string SubmissionJson(const store::Job& job, const std::string& former) {
  json snapshots = json::object();
  AddSnapshots(job.spec, job.snapshot, snapshots);
  return Text({{"file", job.spec.file_name},
               {"text", job.file_text},
               {"base_directory", TextOrNull(job.spec.directory)},
               {"snapshot", TextOrNull(job.snapshot)},
               {"snapshots", std::move(snapshots)},
               {"origin", json(job.spec.origin)},
               {"former", TextOrNull(former)},
               {"job", json::parse(spec::ToJson(job.spec))}});
}

std::string EventsJson(const service::EventPage& page) {
  return Text({{"events", EventList(page.events)}, {"before", BeforeOrNull(page)}});
}

std::string TrialsJson(const service::TrialPage& page) {
  std::string text = "{";
  AppendList("trials", page.trials, text);
  absl::StrAppend(&text, ",\"next\":", QuotedOrNull(page.next), "}");
  return text;
}

std::string JobsJson(const std::vector<service::JobStatus>& jobs) {
  json list = json::array();
  for (const service::JobStatus& job : jobs) list.push_back(Job(job));
  return Text({{"jobs", std::move(list)}});
}

std::string SummariesJson(const std::vector<service::JobSummary>& jobs) {
  std::string text = "{\"jobs\":[";
  text.reserve(64 + 400 * jobs.size());
  for (const service::JobSummary& job : jobs) {
    absl::StrAppend(&text, text.back() == '[' ? "" : ",", "{\"id\":", Quoted(job.id),
                    ",\"sequence\":", job.sequence, ",\"display_name\":", Quoted(job.display_name),
                    ",\"experiment_name\":", Quoted(job.experiment_name),
                    ",\"command\":", Quoted(job.command), ",\"state\":\"", store::Name(job.state));
    absl::StrAppend(&text, "\",\"reason\":", Quoted(job.reason),
                    ",\"created\":", QuotedTime(job.created),
                    ",\"started\":", QuotedTime(job.started), ",\"ended\":", QuotedTime(job.ended),
                    ",\"node_count\":", job.node_count, ",\"priority\":\"", Name(job.priority),
                    "\",\"expected_start\":", QuotedTime(job.expected_start), "}");
  }
  return text + "]}";
}

std::string WarningsJson(const std::vector<std::string>& warnings) {
  return Text({{"warnings", warnings}});
}

std::string NodesJson(const service::NodeList& nodes) {
  json list = json::array();
  for (const service::NodeStatus& node : nodes.nodes) {
    list.push_back({{"name", node.node.name},
                    {"compute", node.compute},
                    {"address", node.node.address},
                    {"cores", node.node.cores},
                    {"memory_bytes", node.node.memory_bytes},
                    {"gpus", node.node.gpus},
                    {"used",
                     {{"cores", node.used.cores},
                      {"memory_bytes", node.used.memory_bytes},
                      {"gpus", node.used.gpus}}},
                    {"state", std::string(StateOf(node))},
                    {"reason", TextOrNull(node.node.reason)},
                    {"cordoned_by", TextOrNull(node.cordoned_by)},
                    {"job", TextOrNull(node.job)},
                    {"jobs", node.jobs}});
  }
  return Text({{"nodes", std::move(list)}, {"warnings", nodes.warnings}});
}

std::string PruneJson(bool dry_run, const std::vector<service::Removal>& removals,
                      const service::ModelTotals& models) {
  json list = json::array();
  uint64_t bytes = 0;
  for (const service::Removal& removal : removals) {
    bytes += removal.what.bytes;
    list.push_back({{"kind", std::string(service::Name(removal.what.kind))},
                    {"name", removal.what.name},
                    {"place", TextOrNull(removal.what.place)},
                    {"bytes", removal.what.bytes},
                    {"last_used", Rfc3339(removal.what.last_use)},
                    {"why", removal.why}});
  }
  return Text({{"dry_run", dry_run},
               {"bytes", bytes},
               {"removed", std::move(list)},
               {"models", {{"versions", models.versions}, {"bytes", models.bytes}}}});
}

std::string SecretsJson(const std::vector<service::SecretInfo>& secrets) {
  json list = json::array();
  for (const service::SecretInfo& secret : secrets) {
    list.push_back({{"name", secret.name},
                    {"created", Rfc3339(secret.created)},
                    {"set", Rfc3339(secret.set)},
                    {"readable", secret.readable},
                    {"waiting_jobs", secret.waiting_jobs}});
  }
  return Text({{"secrets", std::move(list)}});
}

std::string SecretValuesJson(const service::SecretValues& values) {
  json all = json::object();
  for (const auto& [name, value] : values) all[name] = absl::Base64Escape(value);
  return Text({{"secrets", std::move(all)}});
}

std::string ChecksJson(const std::vector<health::NodeCheck>& checks) {
  static constexpr std::array<const char*, 3> kOutcomes = {"ok", "ill", "unknown"};
  json list = json::array();
  for (const health::NodeCheck& check : checks) {
    list.push_back({{"name", check.name},
                    {"outcome", kOutcomes.at(static_cast<size_t>(check.outcome))},
                    {"detail", check.detail}});
  }
  return Text({{"checks", std::move(list)}});
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
  json list = json::array();
  for (const service::JobFile& file : files) {
    list.push_back({{"path", file.path}, {"bytes", file.bytes}});
  }
  return Text({{"files", std::move(list)}});
}

// Written by hand, as the library takes some times as long and a rank may print ten million lines.
std::string FollowLines(const std::vector<service::FollowItem>& items) {
  std::string text;
  std::string time;  // of the item before, which came with many others
  for (const service::FollowItem& item : items) {
    if (&item == items.data() || item.time != (&item - 1)->time) time = QuotedTime(item.time);
    absl::StrAppend(&text, "{\"type\":\"", item.event ? "state" : "output", "\",\"cursor\":\"",
                    item.cursor, "\",\"time\":", time);
    if (item.event) {
      absl::StrAppend(&text, ",\"state\":\"", store::Name(item.event->state), "\",\"reason\":");
      AppendQuoted(item.event->reason, text);
    } else {
      absl::StrAppend(&text, ",\"rank\":", item.rank, ",\"stream\":\"", service::Name(item.stream),
                      "\",\"text\":");
      AppendQuoted(item.text, text);
      if (item.partial) text += ",\"partial\":true";
    }
    text += "}\n";
  }
  return text;
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
