#include "platform/client/connection/views.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tutti::client {
namespace {

using nlohmann::json;

std::string Text(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

int64_t Number(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<int64_t>() : 0;
}

std::vector<std::string> Texts(const json& object, const char* key) {
  std::vector<std::string> texts;
  const auto found = object.find(key);
  if (found == object.end() || !found->is_array()) return texts;
  for (const json& item : *found) {
    if (item.is_string()) texts.push_back(item.get<std::string>());
  }
  return texts;
}

absl::StatusOr<json> Object(absl::string_view text, absl::string_view what) {
  json object = json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) {
    return absl::InternalError(
        absl::StrCat("the service's ", what, " is not readable: ", text.substr(0, 80)));
  }
  return object;
}

bool Flag(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_boolean() && found->get<bool>();
}

// The objects in the array `key`, if there is one.
std::vector<json> ObjectsIn(const json& object, const char* key) {
  std::vector<json> objects;
  const auto found = object.find(key);
  if (found == object.end() || !found->is_array()) return objects;
  for (const json& item : *found) {
    if (item.is_object()) objects.push_back(item);
  }
  return objects;
}

FailureView FailureOf(const json& object) {
  const auto rank = object.find("rank");
  const bool has_rank = rank != object.end() && rank->is_number_integer();
  return {has_rank ? rank->get<int>() : -1, Text(object, "node"), Text(object, "what"),
          Flag(object, "consequence")};
}

// The objects of the array `key`.
absl::StatusOr<std::vector<json>> Objects(absl::string_view text, const char* key) {
  TUTTI_ASSIGN_OR_RETURN(const json object, Object(text, key));
  const auto found = object.find(key);
  if (found == object.end() || !found->is_array()) {
    return absl::InternalError(absl::StrCat("the service's answer has no \"", key, "\""));
  }
  return ObjectsIn(object, key);
}

constexpr int kDeepestTree = 20;  // levels of children

ChildView ChildOf(const json& object, int depth);

TrialsView TrialsIn(const json& object, int depth) {
  TrialsView view;
  const auto trials = object.find("trials");
  if (trials == object.end() || !trials->is_object()) return view;
  view.count = Number(*trials, "count");
  if (const auto states = trials->find("states"); states != trials->end() && states->is_object()) {
    for (const auto& [state, count] : states->items()) {
      view.states.emplace_back(state, Number(*states, state.c_str()));
    }
  }
  for (const json& trial : ObjectsIn(*trials, "best")) view.best.push_back(ChildOf(trial, depth));
  for (const json& trial : ObjectsIn(*trials, "failed")) {
    view.failed.push_back(ChildOf(trial, depth));
  }
  view.next = Text(*trials, "next");
  return view;
}

ChildView ChildOf(const json& object, int depth) {
  ChildView child;
  child.step = Text(object, "step");
  child.type = Text(object, "type");
  child.id = Text(object, "id");
  child.state = Text(object, "state");
  child.reason = Text(object, "reason");
  child.started = Text(object, "started");
  child.ended = Text(object, "ended");
  child.reused_from = Text(object, "reused_from");
  if (const auto values = object.find("values"); values != object.end() && values->is_object()) {
    for (const auto& [name, value] : values->items()) {
      child.values.push_back(absl::StrCat(name, "=", Text(*values, name.c_str())));
    }
  }
  const auto metric = object.find("metric");
  if (metric != object.end() && metric->is_number()) child.metric = metric->get<double>();
  child.best = Flag(object, "best");
  if (depth == kDeepestTree) return child;
  for (const json& below : ObjectsIn(object, "children")) {
    child.children.push_back(ChildOf(below, depth + 1));
  }
  child.trials = TrialsIn(object, depth + 1);
  return child;
}

std::vector<LoggedMetric> MetricsIn(const json& logged, const char* key) {
  std::vector<LoggedMetric> metrics;
  for (const json& metric : ObjectsIn(logged, key)) {
    metrics.push_back({.name = Text(metric, "name")});
    const auto value = metric.find("value");
    if (value != metric.end() && value->is_number()) metrics.back().value = value->get<double>();
  }
  return metrics;
}

void ReadLogged(const json& object, JobView& job) {
  const auto logged = object.find("logged");
  if (logged == object.end() || !logged->is_object()) return;
  job.metrics = MetricsIn(*logged, "metrics");
  for (const json& run : ObjectsIn(*logged, "runs")) {
    job.runs.push_back({.id = Text(run, "id"),
                        .name = Text(run, "name"),
                        .parent = Text(run, "parent"),
                        .metrics = MetricsIn(run, "metrics")});
  }
  for (const json& param : ObjectsIn(*logged, "params")) {
    job.params.push_back({Text(param, "name"), Text(param, "value")});
  }
  for (const json& model : ObjectsIn(*logged, "models")) {
    job.models.push_back({Text(model, "name"), Text(model, "path")});
  }
  for (const json& artifact : ObjectsIn(*logged, "artifacts")) {
    job.artifacts.push_back(Text(artifact, "name"));
  }
}

std::vector<int> CoresIn(const json& object) {
  std::vector<int> numbers;
  const auto cores = object.find("cores");
  if (cores == object.end() || !cores->is_array()) return numbers;
  for (const json& core : *cores) {
    if (core.is_number_integer()) numbers.push_back(core.get<int>());
  }
  return numbers;
}

uint64_t MemoryIn(const json& object) {
  return static_cast<uint64_t>(std::max<int64_t>(0, Number(object, "memory_bytes")));
}

// What a job has of a node.
PartView PartOf(const json& object) {
  return {.node = Text(object, "node"),
          .cores = CoresIn(object),
          .memory_bytes = MemoryIn(object),
          .gpus = Texts(object, "gpus")};
}

// As numbers: {"cpus": 2, …}, where a node's name them cores.
PartView AmountIn(const json& object, const char* name, const char* cpus) {
  const auto part = object.find(name);
  if (part == object.end() || !part->is_object()) return {};
  return {.cpus = static_cast<int>(Number(*part, cpus)),
          .memory_bytes = MemoryIn(*part),
          .gpu_count = static_cast<int>(Number(*part, "gpus"))};
}

// Returns the texts of an object.
std::map<std::string, std::string> TextsByName(const json& object, const char* key) {
  std::map<std::string, std::string> texts;
  const auto found = object.find(key);
  if (found == object.end() || !found->is_object()) return texts;
  for (const auto& [name, value] : found->items()) {
    if (value.is_string()) texts[name] = value.get<std::string>();
  }
  return texts;
}

JobView JobOf(const json& object) {
  JobView job;
  job.id = Text(object, "id");
  if (const std::string type = Text(object, "type"); !type.empty()) job.type = type;
  job.parent = Text(object, "parent");
  for (const json& child : ObjectsIn(object, "children")) job.children.push_back(ChildOf(child, 0));
  job.trials = TrialsIn(object, 0);
  job.has_older_events = Number(object, "events_before") > 0;
  job.sequence = Number(object, "sequence");
  job.display_name = Text(object, "display_name");
  job.experiment_name = Text(object, "experiment_name");
  job.description = Text(object, "description");
  job.environment = Text(object, "environment");
  job.command = Text(object, "command");
  job.origin = TextsByName(object, "origin");
  if (const auto tags = object.find("tags"); tags != object.end() && tags->is_object()) {
    for (const auto& [name, value] : tags->items()) {
      job.tags.push_back(absl::StrCat(name, "=", Text(*tags, name.c_str())));
    }
  }
  job.state = Text(object, "state");
  job.reason = Text(object, "reason");
  job.created = Text(object, "created");
  job.started = Text(object, "started");
  job.ended = Text(object, "ended");
  job.compute = Text(object, "compute");
  job.priority = Text(object, "priority");
  job.node_count = static_cast<int>(Number(object, "node_count"));
  job.world_size = static_cast<int>(Number(object, "world_size"));
  job.expected_start = Text(object, "expected_start");
  job.nodes = Texts(object, "nodes");
  if (object.contains("part")) job.part = AmountIn(object, "part", "cpus");
  for (const json& part : ObjectsIn(object, "parts")) job.parts.push_back(PartOf(part));
  job.warnings = Texts(object, "warnings");
  for (const json& failure : ObjectsIn(object, "failures")) {
    job.failures.push_back(FailureOf(failure));
  }
  for (const json& event : ObjectsIn(object, "events")) {
    job.events.push_back({Text(event, "time"), Text(event, "state"), Text(event, "reason")});
  }
  for (const json& files : ObjectsIn(object, "removed")) {
    job.removed.push_back({Text(files, "kind"), Text(files, "time")});
  }
  const auto logs = object.find("stored_logs");
  if (logs != object.end() && logs->is_object()) {
    job.stored_logs = {Text(*logs, "place"), Text(*logs, "state"), Text(*logs, "reason")};
  }
  if (const auto run = object.find("mlflow_run"); run != object.end() && run->is_object()) {
    job.mlflow_run = Text(*run, "id");
  }
  ReadLogged(object, job);
  return job;
}

NodeView NodeOf(const json& object) {
  NodeView node{Text(object, "name"),  Text(object, "compute"), Text(object, "address"),
                Text(object, "state"), Text(object, "reason"),  Text(object, "job")};
  node.cordoned_by = Text(object, "cordoned_by");
  node.memory_bytes = MemoryIn(object);
  node.cores = CoresIn(object);
  node.gpus = Texts(object, "gpus");
  node.jobs = Texts(object, "jobs");
  node.used = AmountIn(object, "used", "cores");
  return node;
}

}  // namespace

bool JobView::ended_already() const {
  return state == "Completed" || state == "Failed" || state == "Canceled";
}

absl::StatusOr<JobView> ParseJob(absl::string_view text) {
  TUTTI_ASSIGN_OR_RETURN(const json object, Object(text, "job"));
  return JobOf(object);
}

absl::StatusOr<std::vector<JobView>> ParseJobs(absl::string_view text) {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<json> objects, Objects(text, "jobs"));
  std::vector<JobView> jobs;
  for (const json& object : objects) jobs.push_back(JobOf(object));
  return jobs;
}

absl::StatusOr<NodesView> ParseNodes(absl::string_view text) {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<json> objects, Objects(text, "nodes"));
  NodesView view;
  for (const json& object : objects) view.nodes.push_back(NodeOf(object));
  TUTTI_ASSIGN_OR_RETURN(const json document, Object(text, "nodes"));
  view.warnings = Texts(document, "warnings");
  return view;
}

absl::StatusOr<std::vector<NodeCheckView>> ParseNodeChecks(absl::string_view text) {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<json> objects, Objects(text, "checks"));
  std::vector<NodeCheckView> checks;
  for (const json& object : objects) {
    checks.push_back({Text(object, "name"), Text(object, "outcome"), Text(object, "detail")});
  }
  return checks;
}

absl::StatusOr<std::vector<std::string>> ParseWarnings(absl::string_view text) {
  TUTTI_ASSIGN_OR_RETURN(const json document, Object(text, "a job"));
  return Texts(document, "warnings");
}

absl::StatusOr<std::vector<std::string>> ParseProblems(absl::string_view text) {
  TUTTI_ASSIGN_OR_RETURN(const json document, Object(text, "what is broken"));
  return Texts(document, "problems");
}

absl::StatusOr<std::vector<PrunedView>> ParsePruned(absl::string_view text) {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<json> objects, Objects(text, "removed"));
  std::vector<PrunedView> pruned;
  for (const json& object : objects) {
    pruned.push_back({Text(object, "kind"), Text(object, "name"), Text(object, "last_used"),
                      Text(object, "why"), Text(object, "place")});
    pruned.back().bytes = static_cast<uint64_t>(std::max<int64_t>(0, Number(object, "bytes")));
  }
  return pruned;
}

namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

Pairs TextsOf(const json& object, const char* key) {
  const auto texts = TextsByName(object, key);
  return {texts.begin(), texts.end()};
}

void AddLine(Pairs& lines, const char* name, const std::string& value) {
  if (!value.empty()) lines.emplace_back(name, value);
}

Pairs LineageOf(const json& version) {
  Pairs lines;
  const auto found = version.find("lineage");
  if (found == version.end() || !found->is_object()) return lines;
  for (const char* key : {"job", "path", "submitted", "experiment", "command", "code"}) {
    AddLine(lines, key, Text(*found, key));
  }
  const auto environment = found->find("environment");
  if (environment != found->end() && environment->is_object()) {
    AddLine(lines, "environment", Text(*environment, "name"));
  }
  for (const json& data : ObjectsIn(*found, "data")) {
    const std::string asset = Text(data, "asset");
    AddLine(lines, "data",
            absl::StrCat(Text(data, "input"), ": ", asset, asset.empty() ? "" : " = ",
                         Text(data, "address")));
  }
  for (const auto& [name, value] : TextsOf(*found, "values")) {
    AddLine(lines, "value", absl::StrCat(name, "=", value));
  }
  return lines;
}

ModelVersionView VersionOf(const json& object) {
  ModelVersionView view{
      .name = Text(object, "name"),
      .version = Text(object, "version"),
      .type = Text(object, "type"),
      .description = Text(object, "description"),
      .stage = Text(object, "stage"),
      .created = Text(object, "created"),
      .digest = Text(object, "digest"),
      .file = Text(object, "file"),
      .aliases = Texts(object, "aliases"),
      .tags = TextsOf(object, "tags"),
      .properties = TextsOf(object, "properties"),
      .archived = Flag(object, "archived"),
      .file_count = Number(object, "file_count"),
      .bytes = static_cast<uint64_t>(std::max<int64_t>(0, Number(object, "bytes"))),
      .lineage = LineageOf(object)};
  for (const json& file : ObjectsIn(object, "files")) {
    view.files.push_back(
        {.path = Text(file, "path"),
         .bytes = static_cast<uint64_t>(std::max<int64_t>(0, Number(file, "bytes")))});
  }
  return view;
}

}  // namespace

absl::StatusOr<std::vector<ModelView>> ParseModels(absl::string_view text, std::string& after) {
  TUTTI_ASSIGN_OR_RETURN(const json document, Object(text, "answer"));
  after = Text(document, "after");
  std::vector<ModelView> models;
  for (const json& object : ObjectsIn(document, "models")) {
    models.push_back({Text(object, "name"), Text(object, "description"), Text(object, "latest"),
                      Text(object, "created"), Number(object, "versions"),
                      Flag(object, "archived")});
  }
  return models;
}

absl::StatusOr<ModelVersionView> ParseModelVersion(absl::string_view text) {
  TUTTI_ASSIGN_OR_RETURN(const json document, Object(text, "answer"));
  return VersionOf(document);
}

absl::StatusOr<std::vector<ModelVersionView>> ParseModelVersions(absl::string_view text,
                                                                 int64_t& before) {
  TUTTI_ASSIGN_OR_RETURN(const json document, Object(text, "answer"));
  before = Number(document, "before");
  std::vector<ModelVersionView> versions;
  for (const json& object : ObjectsIn(document, "versions")) {
    versions.push_back(VersionOf(object));
  }
  return versions;
}

KeptModelsView ParseKeptModels(absl::string_view text) {
  const auto document = Object(text, "answer");
  const json models = document.ok() ? document->value("models", json()) : json();
  if (!models.is_object()) return {};
  return {Number(models, "versions"),
          static_cast<uint64_t>(std::max<int64_t>(0, Number(models, "bytes")))};
}

absl::StatusOr<std::vector<SecretView>> ParseSecrets(absl::string_view text) {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<json> objects, Objects(text, "secrets"));
  std::vector<SecretView> secrets;
  for (const json& object : objects) {
    secrets.push_back({Text(object, "name"), Text(object, "created"), Text(object, "set"),
                       Flag(object, "readable"), Texts(object, "waiting_jobs")});
  }
  return secrets;
}

absl::StatusOr<std::vector<std::string>> ParseFailedJobs(absl::string_view text) {
  TUTTI_ASSIGN_OR_RETURN(const json document, Object(text, "secret"));
  return Texts(document, "failed_jobs");
}

absl::StatusOr<std::vector<FileView>> ParseFiles(absl::string_view text) {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<json> objects, Objects(text, "files"));
  std::vector<FileView> files;
  for (const json& object : objects) {
    const int64_t bytes = Number(object, "bytes");
    files.push_back({Text(object, "path"), static_cast<uint64_t>(std::max<int64_t>(0, bytes))});
  }
  return files;
}

absl::StatusOr<std::optional<FollowLine>> ParseFollowLine(absl::string_view text) {
  TUTTI_ASSIGN_OR_RETURN(const json object, Object(text, "stream"));
  FollowLine line;
  const std::string type = Text(object, "type");
  line.cursor = Text(object, "cursor");
  line.time = Text(object, "time");
  if (type == "state") {
    line.kind = FollowLine::Kind::kState;
    line.state = Text(object, "state");
    line.reason = Text(object, "reason");
  } else if (type == "output") {
    line.rank = static_cast<int>(Number(object, "rank"));
    line.stream = Text(object, "stream");
    line.text = Text(object, "text");
    line.partial = Flag(object, "partial");
  } else {
    return std::nullopt;
  }
  return line;
}

std::string ParseVersion(absl::string_view text) {
  const auto object = Object(text, "health");
  return object.ok() ? Text(*object, "version") : "";
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

absl::StatusOr<SubmissionView> ParseSubmission(absl::string_view text) {
  TUTTI_ASSIGN_OR_RETURN(const json object, Object(text, "submission"));
  return SubmissionView{.file = Text(object, "file"),
                        .text = Text(object, "text"),
                        .base_directory = Text(object, "base_directory"),
                        .snapshot = Text(object, "snapshot"),
                        .snapshots = TextsByName(object, "snapshots"),
                        .origin = TextsByName(object, "origin"),
                        .former = Text(object, "former"),
                        .job = object.contains("job") ? object["job"].dump() : ""};
}

}  // namespace tutti::client
