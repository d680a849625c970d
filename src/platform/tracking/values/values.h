// Defines what MLflow's tracking knows as plain values: experiments, their runs, and what runs log.
// Times are milliseconds since 1970, as in MLflow.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tutti::tracking {

// KeyValue is a param or a tag.
struct KeyValue {
  std::string key, value;
  bool operator==(const KeyValue&) const = default;
};

struct Point {
  int64_t step = 0;
  int64_t time = 0;
  double value = 0;  // also infinite, or no number
};

struct Metric {
  std::string key;
  Point point;
  // The point belongs to this logged model, measured with this data set; empty: to the run alone.
  std::string model, dataset_name, dataset_digest;
};

struct Experiment {
  int64_t id = 0;
  std::string name, artifact_location;
  bool deleted = false;
  int64_t created = 0, updated = 0;
  std::vector<KeyValue> tags;
};

// The numbers are MLflow's own.
enum class RunStatus { kRunning = 1, kScheduled = 2, kFinished = 3, kFailed = 4, kKilled = 5 };

struct RunInfo {
  int64_t sequence = 0;  // the store's own number
  std::string id;
  std::string name;
  int64_t experiment = 0;
  std::string user;
  RunStatus status = RunStatus::kRunning;
  int64_t start = 0;
  std::optional<int64_t> end;
  bool deleted = false;
  std::string artifact_uri;
  // The run of the job by which it was begun, which of a job's own run is itself; empty: a user's.
  std::string job_run;
  // For a job's own run: the job, and whether it has ended and its runs with it, which no client
  // can change.
  std::string job;
  bool settled = false;
};

struct Dataset {
  std::string name, digest, source_type, source, schema, profile;
};

struct DatasetInput {
  Dataset dataset;
  std::vector<KeyValue> tags;
};

// The numbers are MLflow's own.
enum class ModelStatus { kUnknown = 0, kPending = 1, kReady = 2, kFailed = 3 };

struct ModelMetric {
  Metric metric;
  std::string run;  // which measured it
};

// Model is a logged model of MLflow 3.
struct Model {
  int64_t sequence = 0;  // the store's own number
  std::string id;        // "m-…"
  int64_t experiment = 0;
  std::string name, type;
  std::string source_run;  // its id; empty: no run made it
  ModelStatus status = ModelStatus::kPending;
  bool deleted = false;
  int64_t created = 0, updated = 0;
  std::string artifact_uri;
  std::vector<KeyValue> params, tags;
  std::vector<ModelMetric> metrics;  // the last of each
};

// ModelOfRun is a model that a run has used or made.
struct ModelOfRun {
  std::string id;
  int64_t step = 0;
};

struct Run {
  RunInfo info;
  std::vector<Metric> metrics;  // the last of each
  std::vector<KeyValue> params, tags;
  std::vector<DatasetInput> inputs;
  std::vector<ModelOfRun> model_inputs, model_outputs;
};

// ViewType says which of them a list has.
enum class ViewType { kActiveOnly, kDeletedOnly, kAll };

}  // namespace tutti::tracking
