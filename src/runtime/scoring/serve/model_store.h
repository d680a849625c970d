// ModelStore holds the models that are served, by name and version, and replaces a version by what
// its folder has become. Thread-safe.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "runtime/scoring/serve/batch_plan.h"
#include "runtime/scoring/serve/batcher.h"
#include "runtime/scoring/serve/serving_metrics.h"
#include "runtime/scoring/trained_model.h"

namespace tutti::scoring {

// ModelSource is where a model comes from.
struct ModelSource {
  std::string name;     // "": the folder's
  std::string version;  // "": counted, from 1, and one more with each load
  std::filesystem::path path;
};

// Reads "PATH", "NAME=PATH" or "NAME:VERSION=PATH". InvalidArgument says what a name may be.
absl::StatusOr<ModelSource> ParseModelSource(absl::string_view text);

// ServedModel is one version, as it was loaded. Immutable.
struct ServedModel {
  std::string name, version;
  std::shared_ptr<TrainedModel> model;
  BatchPlan plan;
  LanePtr lane;
  std::shared_ptr<ModelCounters> counters;
};
using ServedModelPtr = std::shared_ptr<const ServedModel>;

struct ModelStoreOptions {
  std::string precision = "auto";
  absl::Duration max_latency;          // as MeasureBatches has it
  std::function<void()> begin_worker;  // as of Batcher; for measuring
  // Is told of each model that begins to be served. May be null.
  std::function<void(const ServedModel&)> on_loaded;
};

class ModelStore {
 public:
  // `batcher` must outlive it.
  ModelStore(Batcher& batcher, ModelStoreOptions options);
  ~ModelStore();

  // Loads a model and begins to serve it. AlreadyExists where the name and version are taken.
  absl::Status Add(ModelSource source);
  // Loads again what the sources of that name have become, beside what is served, and then serves
  // it in its place. NotFound as Find; after another error what was served goes on.
  absl::Status Load(absl::string_view name);
  // Looks at the folders again and again, and loads those that have changed and then stayed as they
  // are for as long.
  void Watch(absl::Duration every);

  // Returns a version of a model, or its last one ("" for the version). NotFound lists those that
  // there are.
  absl::StatusOr<ServedModelPtr> Find(absl::string_view name, absl::string_view version) const;
  // Returns the model that was added first; there must be one.
  ServedModelPtr First() const;
  std::vector<ServedModelPtr> List() const;

 private:
  struct Entry {
    ModelSource source;
    int64_t version = 0;  // the last one that was counted
    ServedModelPtr served;
    std::string seen;    // how its folder looked when it was loaded
    std::string before;  // how it looked the last time
  };
  absl::StatusOr<ServedModelPtr> Open(const ModelSource& source, const std::string& version);
  absl::Status LoadEntry(size_t index);
  void LookAtFolders();

  Batcher& batcher_;
  const ModelStoreOptions options_;
  absl::Mutex loading_;  // one at a time
  mutable absl::Mutex mutex_;
  std::vector<Entry> entries_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread watcher_;
};

}  // namespace tutti::scoring
