#include "platform/storage/transfer/put_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"
#include "base/threads/at_once.h"
#include "platform/storage/objects/content_hash.h"
#include "platform/storage/storage_fault.h"
#include "platform/storage/transfer/local_put.h"
#include "platform/storage/transfer/object_names.h"

namespace tutti::storage {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBlock = 1 << 20;
constexpr int64_t kCannotBeRead = -1;  // in the place of a size

absl::Status OfDisk(absl::Status status) {
  return WithSource(std::move(status), FaultSource::kDisk);
}

std::string Below(const std::string& base, const std::string& path) {
  return base.empty() ? path : absl::StrCat(base, "/", path);
}

// Returns the first error, and how many more have failed of themselves.
absl::Status WithCount(const absl::Status& first, size_t more) {
  if (more == 0) return first;
  absl::Status counted(first.code(), absl::StrCat(first.message(), "; and ", more, " more ",
                                                  more == 1 ? "object" : "objects"));
  first.ForEachPayload(
      [&](absl::string_view kind, const absl::Cord& note) { counted.SetPayload(kind, note); });
  return counted;
}

// Calls `body` for each index. An error that all would meet ends it and is the result; of others it
// is the first one, when all have had their turn.
absl::Status ForEach(size_t count, int most, const std::function<absl::Status(size_t)>& body) {
  absl::Mutex mutex;
  absl::Status first, of_all;
  size_t failures = 0;
  std::atomic<bool> ends = false;
  base::ForEachAtOnce(count, most, [&](size_t i) {
    if (ends) return;
    const absl::Status status = body(i);
    if (status.ok()) return;
    absl::MutexLock lock(&mutex);
    ++failures;
    TakeFailure(status, first);
    if (!ConcernsAllObjects(status)) return;
    of_all.Update(status);
    ends = true;
  });
  return of_all.ok() ? WithCount(first, failures > 0 ? failures - 1 : 0) : of_all;
}

absl::StatusOr<std::vector<StoredObject>> FilesBelow(const fs::path& folder) {
  std::vector<StoredObject> files;
  std::error_code error;
  for (auto entry = fs::recursive_directory_iterator(folder, error);
       !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    const std::string path = entry->path().lexically_relative(folder).string();
    if (absl::StartsWith(path, kOwnPrefix) ||
        entry->symlink_status().type() == fs::file_type::directory)
      continue;
    std::error_code of_file;
    if (!entry->is_regular_file(of_file)) {
      return AboutObject(OfDisk(absl::InvalidArgumentError(absl::StrCat(
                             entry->path().string(), " is no file, and cannot be an object"))),
                         path);
    }
    files.push_back({path, static_cast<int64_t>(entry->file_size(of_file))});
  }
  if (error) return OfDisk(base::ErrnoStatus(folder.string(), error.value()));
  std::sort(files.begin(), files.end(),
            [](const StoredObject& a, const StoredObject& b) { return a.path < b.path; });
  return files;
}

// Returns the files that the caller names, as FilesBelow returns all.
absl::StatusOr<std::vector<StoredObject>> NamedFiles(const fs::path& folder,
                                                     const std::vector<std::string>& names) {
  std::vector<StoredObject> files;
  for (const std::string& name : names) files.push_back({name});
  TUTTI_RETURN_IF_ERROR(CheckNames(files));
  for (StoredObject& file : files) {
    std::error_code error;
    const fs::path path = folder / file.path;
    if (fs::is_regular_file(path, error)) {
      file.bytes = static_cast<int64_t>(fs::file_size(path, error));
    } else if (!error) {
      error = std::make_error_code(std::errc::invalid_argument);
    }
    file.bytes = error ? kCannotBeRead : file.bytes;
  }
  return files;
}

// Returns why it cannot be read, of a file of that size; the disk is asked again.
absl::Status CheckReadable(const fs::path& file, int64_t bytes) {
  if (bytes != kCannotBeRead) return absl::OkStatus();
  std::error_code error;
  if (!fs::is_regular_file(file, error) && !error) {
    error = std::make_error_code(std::errc::invalid_argument);
  }
  if (!error) return OfDisk(absl::AbortedError("the file has come while others were put"));
  return OfDisk(base::ErrnoStatus(file.string(), error.value()));
}

absl::StatusOr<std::vector<StoredObject>> FilesOf(const PutOptions& options) {
  const Activity::OnDisk on_disk(options.attempts.activity);
  return options.files.empty() ? FilesBelow(options.folder)
                               : NamedFiles(options.folder, options.files);
}

absl::Status FileChanged() {
  return OfDisk(absl::AbortedError("the file has changed while it was put"));
}

// Ends with FileChanged once it has read more than `bytes`: a file that grows faster than it is
// read has no end.
absl::StatusOr<std::string> Md5OfFile(const fs::path& path, int64_t bytes,
                                      const Attempts& attempts) {
  const auto opened = base::Open(path, O_RDONLY);
  if (!opened.ok()) return OfDisk(opened.status());
  const base::UniqueFd& file = *opened;
  ContentHash hash({.md5 = true});
  std::vector<char> block(kBlock);
  while (true) {
    const ssize_t n = ::read(file.get(), block.data(), block.size());
    if (n < 0) return OfDisk(base::ErrnoStatus(path.string()));
    if (n == 0) return hash.Finish().md5;
    if ((bytes -= n) < 0) return FileChanged();
    hash.Update({block.data(), static_cast<size_t>(n)});
    if (attempts.activity != nullptr) attempts.activity->Note();
    TUTTI_RETURN_IF_ERROR(attempts.CheckGoesOn());
  }
}

// The credentials are known, and a key that may write and not read is a good one for outputs.
bool MayOnlyNotRead(const absl::Status& status) {
  return absl::IsPermissionDenied(status) && SourceOf(status) != FaultSource::kLogin;
}

// Returns the object, if the store has these bytes already. With credentials that may only write
// this cannot be known.
absl::StatusOr<std::optional<StoredObject>> FindSame(ObjectStore& store, const std::string& path,
                                                     const fs::path& file, int64_t bytes,
                                                     const Attempts& attempts) {
  const auto there = attempts.Run([&] { return store.Open(path); });
  // If the store returns an unknown error, as for a folder of that name, the put will tell.
  const bool is_unknown = absl::IsNotFound(there.status()) || absl::IsUnknown(there.status()) ||
                          MayOnlyNotRead(there.status());
  if (is_unknown) return std::nullopt;
  TUTTI_RETURN_IF_ERROR(there.status());
  const StoredObject& object = (*there)->object();
  if (object.bytes != bytes || object.md5.empty()) return std::nullopt;
  TUTTI_ASSIGN_OR_RETURN(const std::string md5, Md5OfFile(file, bytes, attempts));
  return md5 == object.md5 ? std::optional(object) : std::nullopt;
}

absl::StatusOr<StoredObject> CheckPut(ObjectStore& store, const std::string& path,
                                      const fs::path& file, int64_t bytes,
                                      const Attempts& attempts) {
  const auto there = attempts.Run([&] { return store.Open(path); });
  if (MayOnlyNotRead(there.status())) return StoredObject{path, bytes};
  TUTTI_RETURN_IF_ERROR(there.status());
  if ((*there)->object().bytes == bytes) return (*there)->object();
  std::error_code error;
  if (fs::file_size(file, error) != static_cast<uintmax_t>(bytes) || error) return FileChanged();
  return absl::DataLossError(absl::StrCat("the store has ", (*there)->object().bytes, " of ", bytes,
                                          " bytes after it was put"));
}

absl::StatusOr<StoredObject> PutOne(ObjectStore& store, const std::string& path,
                                    const fs::path& file, int64_t bytes, const PutOptions& options,
                                    ProgressCounter& counter) {
  const Attempts& attempts = options.attempts;
  TUTTI_RETURN_IF_ERROR(attempts.CheckGoesOn());
  TUTTI_RETURN_IF_ERROR(CheckReadable(file, bytes));
  std::optional<StoredObject> object;
  if (bytes >= options.asks_from) {
    TUTTI_ASSIGN_OR_RETURN(object, FindSame(store, path, file, bytes, attempts));
  }
  if (object.has_value()) {
    counter.AddBytes(bytes);
  } else {
    TUTTI_RETURN_IF_ERROR(attempts.Run([&] {
      int64_t all = 0;  // of this try
      absl::Status status = store.Put(path, file, [&](int64_t sent) {
        all += sent;
        counter.AddBytes(sent);
        if (attempts.activity != nullptr) attempts.activity->Note();
        return all > bytes ? FileChanged() : attempts.CheckGoesOn();
      });
      if (status.ok() && all != bytes) status = FileChanged();
      if (!status.ok()) counter.AddBytes(-all);
      return status;
    }));
    TUTTI_ASSIGN_OR_RETURN(object, CheckPut(store, path, file, bytes, attempts));
  }
  counter.AddObject();
  return *std::move(object);
}

// Returns InvalidArgument in the place of a NotFound that is of the object's name alone, since the
// store takes another object beside it: nothing that is made at the store mends that.
absl::Status OfName(ObjectStore& store, const std::string& base, absl::Status put,
                    const Attempts& attempts) {
  if (!absl::IsNotFound(put) || SourceOf(put) == FaultSource::kDisk) return put;
  const std::string probe = Below(base, std::string(kProbeName));
  const auto sent = [](int64_t) { return absl::OkStatus(); };
  if (!attempts.Run([&] { return store.Put(probe, "/dev/null", sent); }).ok()) return put;
  attempts.Run([&] { return store.Remove(probe); }).IgnoreError();
  return absl::InvalidArgumentError(
      absl::StrCat("the store takes no object of this name: ", put.message()));
}

}  // namespace

absl::StatusOr<StorageDone> PutFiles(ObjectStore& store, const std::string& base,
                                     const PutOptions& options) {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<StoredObject> files, FilesOf(options));
  int64_t bytes = 0;
  for (const StoredObject& file : files) bytes += std::max<int64_t>(file.bytes, 0);
  ProgressCounter counter(static_cast<int64_t>(files.size()), bytes);
  absl::Status status;
  std::vector<StoredObject> there(files.size());
  const auto put = [&](size_t i) {
    const std::string& path = files[i].path;
    auto object =
        PutOne(store, Below(base, path), options.folder / path, files[i].bytes, options, counter);
    if (!object.ok()) {
      return AboutObject(OfName(store, base, object.status(), options.attempts), path);
    }
    there[i] = *std::move(object);
    there[i].path = path;
    return absl::OkStatus();
  };
  counter.ReportDuring([&] { status = ForEach(files.size(), options.connections, put); },
                       options.progress);
  for (const StoredObject& object : there) {
    if (!object.path.empty() && options.has_put) options.has_put(object);
  }
  TUTTI_RETURN_IF_ERROR(status);
  return StorageDone{static_cast<int64_t>(files.size()), bytes};
}

namespace {

// Returns the nearest folder that is there, at or below `root`: of a file system a probe is to make
// none.
absl::StatusOr<std::string> FolderThere(ObjectStore& store, std::string folder,
                                        const std::string& root, const Attempts& attempts) {
  while (folder.size() > root.size()) {
    TUTTI_ASSIGN_OR_RETURN(const PathKind kind, attempts.Run([&] { return store.KindOf(folder); }));
    if (kind == PathKind::kFolder) break;
    const size_t slash = folder.rfind('/');
    folder.resize(slash == std::string::npos ? 0 : slash);
  }
  return folder;
}

// Returns whether a folder between a place and one of its files, whose path ends with `below`, is a
// link: the file lies elsewhere, and is not removed with the place.
bool LiesBelowALink(const std::filesystem::path& path, const std::filesystem::path& below) {
  std::filesystem::path folder = path.parent_path();
  for (auto left = std::distance(below.begin(), below.end()); left > 1; --left) {
    std::error_code error;
    if (std::filesystem::is_symlink(std::filesystem::symlink_status(folder, error))) return true;
    folder = folder.parent_path();
  }
  return false;
}

}  // namespace

absl::Status ProbeWriting(ObjectStore& store, const spec::DataPlace& place,
                          const Attempts& attempts) {
  std::string folder = place.path;
  if (place.kind == spec::StoreKind::kLocal) {
    TUTTI_RETURN_IF_ERROR(CheckRoot(place.root));
    TUTTI_ASSIGN_OR_RETURN(folder, FolderThere(store, folder, place.root, attempts));
  }
  const std::string path = Below(folder, std::string(kProbeName));
  const auto sent = [](int64_t) { return absl::OkStatus(); };
  TUTTI_RETURN_IF_ERROR(attempts.Run([&] { return store.Put(path, "/dev/null", sent); }));
  const absl::Status removed = attempts.Run([&] { return store.Remove(path); });
  // It may write, which is what was asked. The next probe has the same name.
  return absl::IsPermissionDenied(removed) ? absl::OkStatus() : removed;
}

absl::StatusOr<StorageDone> RemoveObjects(ObjectStore& store, const spec::DataPlace& place,
                                          const Survey& survey, int connections,
                                          const Attempts& attempts) {
  std::vector<StoredObject> objects = survey.objects;
  if (place.kind == spec::StoreKind::kLocal) {
    std::erase_if(objects, [&](const StoredObject& object) {
      return LiesBelowALink(survey.PathInContainer(object), object.path);
    });
  }
  TUTTI_RETURN_IF_ERROR(ForEach(objects.size(), connections, [&](size_t i) {
    const std::string path = survey.PathInContainer(objects[i]);
    return AboutObject(attempts.Run([&] { return store.Remove(path); }), objects[i].path);
  }));
  StorageDone done{static_cast<int64_t>(objects.size())};
  for (const StoredObject& object : objects) done.bytes += object.bytes;
  return done;
}

absl::StatusOr<StorageDone> RemovePlace(ObjectStore& store, const spec::DataPlace& place,
                                        const Survey& survey, int connections,
                                        const Attempts& attempts) {
  // A link to a folder goes, and not what it leads to.
  std::error_code error;
  const bool is_link =
      place.kind == spec::StoreKind::kLocal && !place.is_pattern &&
      std::filesystem::is_symlink(std::filesystem::symlink_status(place.path, error));
  if (is_link && !survey.is_file) {
    TUTTI_RETURN_IF_ERROR(attempts.Run([&] { return store.Remove(place.path); }));
    return StorageDone{};
  }
  TUTTI_ASSIGN_OR_RETURN(StorageDone done,
                         RemoveObjects(store, place, survey, connections, attempts));
  const bool is_folder = !survey.is_file && !place.is_pattern && !place.path.empty();
  if (!is_folder) return done;
  TUTTI_RETURN_IF_ERROR(attempts.Run([&] { return store.RemoveFolder(place.path); }));
  return done;
}

}  // namespace tutti::storage
