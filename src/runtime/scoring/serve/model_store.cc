#include "runtime/scoring/serve/model_store.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/log.h"
#include "base/status.h"

namespace tutti::scoring {
namespace {

namespace fs = std::filesystem;

bool IsName(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
  });
}

// How the files of a folder look: names, sizes, times.
std::string LookOf(const fs::path& path) {
  std::error_code error;
  const fs::path folder = fs::is_directory(path, error) ? path : path.parent_path();
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    struct ::stat about = {};
    if (::stat(entry.path().c_str(), &about) != 0) continue;
    files.push_back(absl::StrCat(entry.path().filename().string(), ":", about.st_size, ":",
                                 about.st_ino, ":", about.st_mtim.tv_sec, ".",
                                 about.st_mtim.tv_nsec));
  }
  std::sort(files.begin(), files.end());
  return absl::StrJoin(files, "\n");
}

}  // namespace

absl::StatusOr<ModelSource> ParseModelSource(absl::string_view text) {
  ModelSource source;
  const size_t equals = text.find('=');
  // A path may have "=", too, behind its first "/".
  if (equals != absl::string_view::npos && text.find('/') > equals) {
    const std::vector<absl::string_view> parts = absl::StrSplit(text.substr(0, equals), ':');
    source.name = std::string(parts[0]);
    if (parts.size() == 2) source.version = std::string(parts[1]);
    if (!IsName(parts[0]) || parts.size() > 2 || (parts.size() == 2 && !IsName(parts[1]))) {
      return absl::InvalidArgumentError(absl::StrCat(
          text.substr(0, equals),
          " is no NAME or NAME:VERSION: each has letters, digits, \"-\", \"_\" and \".\""));
    }
    text.remove_prefix(equals + 1);
  }
  source.path = fs::path(std::string(text));
  if (!source.name.empty()) return source;
  source.name = fs::absolute(source.path).lexically_normal().filename().string();
  if (source.name.empty()) {  // behind a last "/"
    source.name = fs::absolute(source.path).lexically_normal().parent_path().filename().string();
  }
  if (!IsName(source.name)) {
    return absl::InvalidArgumentError(
        absl::StrCat(text, " gives no name for the model: give one, NAME=", text));
  }
  return source;
}

ModelStore::ModelStore(Batcher& batcher, ModelStoreOptions options)
    : batcher_(batcher), options_(std::move(options)) {}

ModelStore::~ModelStore() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (watcher_.joinable()) watcher_.join();
}

absl::StatusOr<ServedModelPtr> ModelStore::Open(const ModelSource& source,
                                                const std::string& version) {
  TUTTI_ASSIGN_OR_RETURN(std::shared_ptr<TrainedModel> model,
                         TrainedModel::Open(source.path, options_.precision));
  if (options_.begin_worker) options_.begin_worker();
  auto served = std::make_shared<ServedModel>();
  served->name = source.name;
  served->version = version;
  served->plan = MeasureBatches(*model, options_.max_latency);
  served->counters = std::make_shared<ModelCounters>();
  served->lane = batcher_.AddModel(model, served->plan.limit, served->plan.image_seconds(),
                                   [counters = served->counters](const ComputedBatch& batch) {
                                     counters->AddBatch(batch.images, batch.time);
                                   });
  served->model = std::move(model);
  if (options_.on_loaded) options_.on_loaded(*served);
  return ServedModelPtr(std::move(served));
}

absl::Status ModelStore::Add(ModelSource source) {
  absl::MutexLock loading(&loading_);
  const std::string version = source.version.empty() ? "1" : source.version;
  for (const ServedModelPtr& other : List()) {
    if (other->name != source.name || other->version != version) continue;
    return absl::AlreadyExistsError(
        absl::StrCat("two models are ", source.name, " version ", version,
                     ": name one otherwise, NAME:VERSION=", source.path.string()));
  }
  std::string look = LookOf(source.path);
  TUTTI_ASSIGN_OR_RETURN(ServedModelPtr served, Open(source, version));
  absl::MutexLock lock(&mutex_);
  entries_.push_back({std::move(source), 1, std::move(served), look, look});
  return absl::OkStatus();
}

absl::Status ModelStore::Load(absl::string_view name) {
  TUTTI_RETURN_IF_ERROR(Find(name, "").status());
  absl::MutexLock loading(&loading_);
  const size_t count = List().size();
  for (size_t i = 0; i < count; ++i) {
    bool is_it = false;
    {
      absl::MutexLock lock(&mutex_);
      is_it = entries_[i].source.name == name;
    }
    if (is_it) TUTTI_RETURN_IF_ERROR(LoadEntry(i));
  }
  return absl::OkStatus();
}

absl::Status ModelStore::LoadEntry(size_t index) {
  ModelSource source;
  int64_t version = 0;
  {
    absl::MutexLock lock(&mutex_);
    source = entries_[index].source;
    version = entries_[index].version;
  }
  const std::string look = LookOf(source.path);
  const std::vector<ServedModelPtr> others = List();
  const auto is_taken = [&] {
    return std::any_of(others.begin(), others.end(), [&](const ServedModelPtr& other) {
      return other->name == source.name && other->version == absl::StrCat(version);
    });
  };
  do {
    ++version;
  } while (is_taken());
  auto loaded = Open(source, source.version.empty() ? absl::StrCat(version) : source.version);
  ServedModelPtr before;
  {
    absl::MutexLock lock(&mutex_);
    Entry& entry = entries_[index];
    entry.seen = entry.before = look;  // what cannot be loaded is not tried again as it is
    if (!loaded.ok()) return loaded.status();
    entry.version = version;
    before = std::exchange(entry.served, *std::move(loaded));
  }
  batcher_.Retire(before->lane);
  return absl::OkStatus();
}

void ModelStore::Watch(absl::Duration every) {
  watcher_ = std::thread([this, every] {
    const auto is_stopping = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_; };
    while (true) {
      {
        absl::MutexLock lock(&mutex_);
        if (mutex_.AwaitWithTimeout(absl::Condition(&is_stopping), every)) return;
      }
      LookAtFolders();
    }
  });
}

void ModelStore::LookAtFolders() {
  absl::MutexLock loading(&loading_);
  const size_t count = List().size();
  for (size_t i = 0; i < count; ++i) {
    fs::path path;
    {
      absl::MutexLock lock(&mutex_);
      path = entries_[i].source.path;
    }
    const std::string look = LookOf(path);
    {
      absl::MutexLock lock(&mutex_);
      Entry& entry = entries_[i];
      const bool is_still = look == entry.before && !look.empty();
      entry.before = look;
      if (!is_still || look == entry.seen) continue;
    }
    if (const absl::Status status = LoadEntry(i); !status.ok()) {
      base::Warn(absl::StrCat(path.string(), " has changed and is not served: ", status.message()));
    }
  }
}

absl::StatusOr<ServedModelPtr> ModelStore::Find(absl::string_view name,
                                                absl::string_view version) const {
  const std::vector<ServedModelPtr> all = List();
  bool has_name = false;
  for (auto it = all.rbegin(); it != all.rend(); ++it) {
    if ((*it)->name != name) continue;
    has_name = true;
    if (version.empty() || (*it)->version == version) return *it;
  }
  std::vector<std::string> known;
  for (const ServedModelPtr& one : all) {
    if (!has_name) known.push_back(one->name);
    if (has_name && one->name == name) known.push_back(one->version);
  }
  known.erase(std::unique(known.begin(), known.end()), known.end());
  return absl::NotFoundError(has_name ? absl::StrCat("model ", name, " has no version ", version,
                                                     ": there is ", absl::StrJoin(known, ", "))
                                      : absl::StrCat("there is no model ", name, ": there is ",
                                                     absl::StrJoin(known, ", ")));
}

ServedModelPtr ModelStore::First() const {
  absl::MutexLock lock(&mutex_);
  return entries_.front().served;
}

std::vector<ServedModelPtr> ModelStore::List() const {
  absl::MutexLock lock(&mutex_);
  std::vector<ServedModelPtr> all;
  for (const Entry& entry : entries_) all.push_back(entry.served);
  return all;
}

}  // namespace tutti::scoring
