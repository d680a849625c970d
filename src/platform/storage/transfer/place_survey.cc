#include "platform/storage/transfer/place_survey.h"

#include <algorithm>
#include <cerrno>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "base/hash.h"
#include "base/machine/pattern_walk.h"
#include "base/status.h"
#include "base/text/path_pattern.h"
#include "base/threads/at_once.h"
#include "platform/storage/objects/object_version.h"
#include "platform/storage/transfer/object_names.h"

namespace tutti::storage {
namespace {

bool ByPath(const StoredObject& a, const StoredObject& b) { return a.path < b.path; }

// Returns whether a put to a folder that was killed, or a probe whose key may not remove, has left
// the object.
bool IsLeftOver(absl::string_view path) {
  const absl::string_view name = path.substr(path.rfind('/') + 1);
  return absl::StartsWith(name, kPutPrefix) || name == kProbeName;
}

// Takes the folder off the objects' paths, and what lies elsewhere or does not fit out of the list.
void MakeRelative(Survey& survey, const spec::DataPlace& place, bool with_folders) {
  const std::string prefix = survey.base.empty() ? "" : absl::StrCat(survey.base, "/");
  std::vector<StoredObject> fitting;
  for (StoredObject& object : survey.objects) {
    absl::string_view path = object.path;
    if (!with_folders && absl::EndsWith(path, "/")) continue;
    const bool fits =
        !place.is_pattern || base::MatchesPattern(place.path, path, spec::WildcardsOf(place));
    if (!fits) continue;
    if (!absl::ConsumePrefix(&path, prefix) || path.empty() || IsLeftOver(path)) continue;
    object.path = std::string(path);
    auto& list = object.left_out.empty() ? fitting : survey.left_out;
    list.push_back(std::move(object));
  }
  survey.objects = std::move(fitting);
  std::sort(survey.left_out.begin(), survey.left_out.end(), ByPath);
  std::sort(survey.objects.begin(), survey.objects.end(), ByPath);
}

absl::StatusOr<Survey> ListFolder(ObjectStore& store, const spec::DataPlace& place,
                                  const std::string& folder, bool recursive,
                                  const Attempts& attempts) {
  Survey survey{folder};
  TUTTI_ASSIGN_OR_RETURN(survey.objects,
                         attempts.Run([&] { return store.List(folder, recursive); }));
  MakeRelative(survey, place, /*with_folders=*/!recursive && !place.is_pattern);
  return survey;
}

absl::StatusOr<Survey> MatchPattern(ObjectStore& store, const spec::DataPlace& place,
                                    const Attempts& attempts) {
  const std::string folder = base::FolderOfPattern(place.path, spec::WildcardsOf(place));
  const size_t first = folder.empty() ? 0 : folder.size() + 1;
  const bool recursive = place.path.find('/', first) != std::string::npos ||
                         place.path.find("**", first) != std::string::npos;
  TUTTI_ASSIGN_OR_RETURN(Survey survey, ListFolder(store, place, folder, recursive, attempts));
  if (!survey.objects.empty()) return survey;
  return absl::NotFoundError("no object matches the pattern");
}

absl::StatusOr<Survey> DescribeFile(ObjectStore& store, const spec::DataPlace& place,
                                    const Attempts& attempts) {
  TUTTI_ASSIGN_OR_RETURN(const auto reader, attempts.Run([&] { return store.Open(place.path); }));
  const size_t slash = place.path.rfind('/');
  Survey survey{slash == std::string::npos ? "" : place.path.substr(0, slash), true};
  StoredObject object = reader->object();
  object.path = place.path.substr(slash == std::string::npos ? 0 : slash + 1);
  survey.objects.push_back(std::move(object));
  return survey;
}

// Returns what is at a path of this machine that is no file and no folder.
absl::Status NoFileHere(const std::string& path) {
  const base::TreeEntry entry = base::LookAt(path);
  if (entry.error == EOPNOTSUPP || (entry.is_link && entry.error == ENOENT)) {
    return absl::NotFoundError(absl::StrCat("it is ", base::WhyNoFile(entry)));
  }
  return absl::NotFoundError(entry.is_link ? absl::StrCat("it is a link: ", base::WhyNoFile(entry))
                                           : "there is no such path");
}

// Returns why there is nothing at the path: because of the path, or because of its container.
absl::Status NothingThere(ObjectStore& store, const spec::DataPlace& place) {
  if (place.kind == spec::StoreKind::kLocal) return NoFileHere(place.path);
  const auto container = store.KindOf("");
  if (container.ok() && *container == PathKind::kNothing) {
    return absl::NotFoundError("there is no such container or bucket");
  }
  return absl::NotFoundError("nothing is at this path");
}

absl::StatusOr<PathKind> KindOfPlace(ObjectStore& store, const spec::DataPlace& place,
                                     PlaceType type, const Attempts& attempts) {
  TUTTI_ASSIGN_OR_RETURN(const PathKind kind,
                         attempts.Run([&] { return store.KindOf(place.path); }));
  if (kind == PathKind::kNothing) return NothingThere(store, place);
  if (type == PlaceType::kFile && kind != PathKind::kFile) {
    return absl::InvalidArgumentError("it is a folder, and must be a file");
  }
  if (type == PlaceType::kFolder && kind == PathKind::kFile) {
    return absl::InvalidArgumentError("it is a file, and must be a folder");
  }
  return kind;
}

}  // namespace

absl::StatusOr<Survey> SurveyPlace(ObjectStore& store, const spec::DataPlace& place, PlaceType type,
                                   const Attempts& attempts) {
  return BrowsePlace(store, place, type, /*recursive=*/true, attempts);
}

absl::StatusOr<Survey> BrowsePlace(ObjectStore& store, const spec::DataPlace& place, PlaceType type,
                                   bool recursive, const Attempts& attempts) {
  if (place.is_pattern) return MatchPattern(store, place, attempts);
  TUTTI_ASSIGN_OR_RETURN(const PathKind kind, KindOfPlace(store, place, type, attempts));
  if (kind == PathKind::kFile) return DescribeFile(store, place, attempts);
  return ListFolder(store, place, place.path, recursive, attempts);
}

absl::StatusOr<Survey> NamedObjects(const spec::DataPlace& place,
                                    const std::vector<std::string>& names) {
  if (place.is_pattern) return absl::InvalidArgumentError("it is a pattern, no folder");
  Survey survey{place.path};
  for (const std::string& name : names) survey.objects.push_back({name});
  TUTTI_RETURN_IF_ERROR(CheckNames(survey.objects));
  std::sort(survey.objects.begin(), survey.objects.end(), ByPath);
  return survey;
}

absl::StatusOr<Survey> LookAtPlace(ObjectStore& store, const spec::DataPlace& place, PlaceType type,
                                   const Attempts& attempts) {
  if (place.is_pattern) {
    TUTTI_ASSIGN_OR_RETURN(Survey survey, MatchPattern(store, place, attempts));
    survey.objects.clear();
    return survey;
  }
  TUTTI_ASSIGN_OR_RETURN(const PathKind kind, KindOfPlace(store, place, type, attempts));
  if (kind == PathKind::kFile) return DescribeFile(store, place, attempts);
  return Survey{place.path};
}

absl::Status AskForVersions(ObjectStore& store, int connections, const Attempts& attempts,
                            int64_t settled_before, Survey& survey) {
  struct {
    absl::Mutex mutex;
    absl::Status first ABSL_GUARDED_BY(mutex);
    std::atomic<bool> failed = false;
  } result;
  base::ForEachAtOnce(survey.objects.size(), connections, [&](size_t i) {
    StoredObject& object = survey.objects[i];
    if (result.failed || !object.etag.empty() || IsSettled(object, settled_before)) return;
    const std::string path = survey.PathInContainer(object);
    auto reader = attempts.Run([&] { return store.Open(path); });
    if (reader.ok()) return TakeAnswer((*reader)->object(), object);
    absl::Status status = reader.status();
    if (absl::IsNotFound(status)) status = absl::AbortedError("it was removed meanwhile");
    absl::MutexLock lock(&result.mutex);
    if (!result.failed.exchange(true)) result.first = AboutObject(status, object.path);
  });
  absl::MutexLock lock(&result.mutex);
  return result.first;
}

std::string DigestOf(const std::vector<StoredObject>& objects, int64_t settled_before) {
  base::Sha256 hash;
  for (const StoredObject& object : objects) {
    // No name has a NUL, so that no two lists give the same bytes.
    const std::string bytes = absl::StrCat(object.bytes);
    const std::string version = VersionOf(object, settled_before);
    for (const std::string* field : {&object.path, &bytes, &version}) {
      hash.Update(*field);
      hash.Update(absl::string_view("\0", 1));
    }
  }
  return base::Hex(hash.Finish());
}

}  // namespace tutti::storage
