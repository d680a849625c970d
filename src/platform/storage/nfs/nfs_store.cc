#include "platform/storage/nfs/nfs_store.h"

#include <fcntl.h>
#include <nfsc/libnfs.h>
#include <sys/stat.h>
#include <sys/time.h>

#include <algorithm>
#include <climits>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "platform/storage/nfs/nfs_connections.h"

namespace tutti::storage {
namespace {

constexpr uint64_t kMostOfARead = 1 << 20;
constexpr double kNanoseconds = 1e9;
constexpr int kMostLinks = 16;

// A file that is written to, or given another one's time, changes the time of its inode, which
// nobody sets back.
struct FileVersion {
  uint64_t bytes = 0;
  uint64_t seconds = 0, nanoseconds = 0;  // of the inode's last change, since 1970
};

FileVersion VersionOf(const nfs_stat_64& status) {
  return {status.nfs_size, status.nfs_ctime, status.nfs_ctime_nsec};
}

StoredObject ObjectAt(const std::string& path, const FileVersion& version) {
  StoredObject object{path, static_cast<int64_t>(version.bytes)};
  object.modified = static_cast<double>(version.seconds) +
                    static_cast<double>(version.nanoseconds) / kNanoseconds;
  return object;
}

std::string EtagOf(const FileVersion& version) {
  return absl::StrCat(version.seconds, ".", version.nanoseconds, "-", version.bytes);
}

std::string InExport(const std::string& path) { return absl::StrCat("/", path); }

// Found is what a path leads to once links are followed.
struct Found {
  std::string path;
  nfs_stat_64 status = {};
};

// Returns where a link at that path leads, in the export; NotFound if that is outside of it. Libnfs
// does not end what it reads of a link with a zero byte: the link's size says how long it is.
absl::StatusOr<std::string> TargetOf(nfs_context* nfs, const std::string& path, uint64_t size) {
  char read[PATH_MAX] = {};
  const int result = ::nfs_readlink(nfs, InExport(path).c_str(), read, sizeof(read) - 1);
  if (result < 0) return NfsStatus(result, "follow it");
  const std::string target = std::string(read).substr(0, size);
  const std::filesystem::path led =
      (std::filesystem::path(path).parent_path() / target).lexically_normal();
  if (led.is_absolute() || led.empty() || *led.begin() == ".." || led == ".") {
    return absl::NotFoundError("it is a link to no file of the export");
  }
  return led.native();
}

// Links are followed here: libnfs takes those below a folder for paths of the whole export.
absl::StatusOr<Found> Find(nfs_context* nfs, const std::string& path) {
  Found found{path};
  for (int links = 0; links < kMostLinks; ++links) {
    const int result = ::nfs_lstat64(nfs, InExport(found.path).c_str(), &found.status);
    if (result < 0) return NfsStatus(result, "look at it");
    if (!S_ISLNK(found.status.nfs_mode)) return found;
    TUTTI_ASSIGN_OR_RETURN(found.path, TargetOf(nfs, found.path, found.status.nfs_size));
  }
  return absl::NotFoundError("it is a link to a link, and so on");
}

// OpenFile is an open file of a connection.
class OpenFile {
 public:
  static absl::StatusOr<std::unique_ptr<OpenFile>> Open(nfs_context* nfs, const std::string& path) {
    nfsfh* file = nullptr;
    const int result = ::nfs_open(nfs, InExport(path).c_str(), O_RDONLY, &file);
    if (result < 0) return NfsStatus(result, "open it");
    return std::make_unique<OpenFile>(nfs, file);
  }
  OpenFile(nfs_context* nfs, nfsfh* file) : nfs_(nfs), file_(file) {}
  ~OpenFile() { ::nfs_close(nfs_, file_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  absl::StatusOr<FileVersion> Version() {
    nfs_stat_64 status = {};
    const int result = ::nfs_fstat64(nfs_, file_, &status);
    if (result < 0) return NfsStatus(result, "look at it");
    return VersionOf(status);
  }

  // Fills `out`, or as much of it as the file has; returns how much.
  absl::StatusOr<size_t> Read(int64_t offset, std::span<char> out) {
    size_t filled = 0;
    while (filled < out.size()) {
      const uint64_t wanted = std::min<uint64_t>(out.size() - filled, kMostOfARead);
      const int n = ::nfs_pread(nfs_, file_, static_cast<uint64_t>(offset) + filled, wanted,
                                out.data() + filled);
      if (n < 0) return NfsStatus(n, "read it");
      if (n == 0) break;
      filled += static_cast<size_t>(n);
    }
    return filled;
  }

 private:
  nfs_context* const nfs_;
  nfsfh* const file_;
};

// Each read opens the file anew, by whichever connection is free, and looks whether it is the same.
class NfsReader final : public ObjectReader {
 public:
  // `path`: of the file, to which that of the object may be a link.
  NfsReader(StoredObject object, std::string path, NfsConnections* connections)
      : ObjectReader(std::move(object), /*md5_is_certain=*/false),
        path_(std::move(path)),
        connections_(connections) {}

  absl::Status Read(int64_t offset, std::span<char> out) override {
    return connections_->Run([&](nfs_context* nfs) { return ReadBy(nfs, offset, out); });
  }

 private:
  absl::Status ReadBy(nfs_context* nfs, int64_t offset, std::span<char> out) {
    TUTTI_ASSIGN_OR_RETURN(const auto file, OpenFile::Open(nfs, path_));
    TUTTI_ASSIGN_OR_RETURN(const size_t filled, file->Read(offset, out));
    TUTTI_ASSIGN_OR_RETURN(const FileVersion version, file->Version());
    if (EtagOf(version) != object().etag) {
      return absl::AbortedError("it has changed while it was read");
    }
    if (filled == out.size()) return absl::OkStatus();
    return absl::DataLossError(
        absl::StrCat("the server has sent ", filled, " of ", out.size(), " bytes"));
  }

  const std::string path_;
  NfsConnections* const connections_;
};

class NfsStore final : public ObjectStore {
 public:
  NfsStore(spec::NfsAuthority server, const std::string& container)
      : connections_(MountOf(std::move(server), absl::StrCat("/", container))) {}

  // The export itself exists once it is mounted; libnfs cannot report more about it.
  absl::StatusOr<PathKind> KindOf(const std::string& path) override {
    if (path.empty()) {
      TUTTI_RETURN_IF_ERROR(connections_.Run([](nfs_context*) { return absl::OkStatus(); }));
      return PathKind::kFolder;
    }
    const auto found = connections_.Run([&](nfs_context* nfs) { return Find(nfs, path); });
    if (absl::IsNotFound(found.status())) return PathKind::kNothing;
    TUTTI_RETURN_IF_ERROR(found.status());
    if (S_ISREG(found->status.nfs_mode)) return PathKind::kFile;
    return S_ISDIR(found->status.nfs_mode) ? PathKind::kFolder : PathKind::kNothing;
  }

  absl::StatusOr<std::vector<StoredObject>> List(const std::string& folder,
                                                 bool recursive) override {
    std::vector<StoredObject> objects;
    std::vector<std::string> folders = {folder};
    while (!folders.empty()) {
      const std::string next = std::move(folders.back());
      folders.pop_back();
      const auto known = static_cast<ptrdiff_t>(objects.size());
      const size_t left = folders.size();
      TUTTI_RETURN_IF_ERROR(connections_.Run([&](nfs_context* nfs) {
        objects.erase(objects.begin() + known, objects.end());  // of a connection that has failed
        folders.resize(left);
        return ListOne(nfs, next, recursive ? &folders : nullptr, objects);
      }));
    }
    return objects;
  }

  absl::StatusOr<std::unique_ptr<ObjectReader>> Open(const std::string& path) override {
    TUTTI_ASSIGN_OR_RETURN(Found found,
                           connections_.Run([&](nfs_context* nfs) { return Find(nfs, path); }));
    if (!S_ISREG(found.status.nfs_mode)) return absl::InvalidArgumentError("it is no file");
    const FileVersion version = VersionOf(found.status);
    StoredObject object = ObjectAt(path, version);
    object.etag = EtagOf(version);
    return std::make_unique<NfsReader>(std::move(object), std::move(found.path), &connections_);
  }

  absl::Status Put(const std::string&, const std::filesystem::path&, const SentListener&) override {
    return ReadAlone();
  }
  absl::Status Remove(const std::string&) override { return ReadAlone(); }
  absl::Status RemoveFolder(const std::string&) override { return ReadAlone(); }

 private:
  static absl::Status ReadAlone() {
    return absl::UnimplementedError(
        "a file server is read alone this way: mount it, and write to the folder");
  }

  // Adds a folder's files to `objects`, and its folders to `below`, or, where that is null, to
  // `objects` too. A link is what it leads to, if that is a file.
  static absl::Status ListOne(nfs_context* nfs, const std::string& folder,
                              std::vector<std::string>* below, std::vector<StoredObject>& objects) {
    nfsdir* directory = nullptr;
    const int result = ::nfs_opendir(nfs, InExport(folder).c_str(), &directory);
    if (result < 0) return NfsStatus(result, "list it");
    const std::unique_ptr<nfsdir, void (*)(nfsdir*)> closed(
        directory, [](nfsdir* opened) { ::nfs_closedir(nullptr, opened); });
    std::vector<std::string> links;
    while (const nfsdirent* const entry = ::nfs_readdir(nfs, directory)) {
      const absl::string_view name = entry->name;
      if (name == "." || name == ".." || name.empty()) continue;
      std::string path = folder.empty() ? std::string(name) : absl::StrCat(folder, "/", name);
      if (S_ISDIR(entry->mode)) {
        if (below != nullptr) {
          below->push_back(std::move(path));
        } else {
          objects.push_back({absl::StrCat(path, "/")});
        }
      } else if (S_ISLNK(entry->mode)) {
        links.push_back(std::move(path));
      } else if (S_ISREG(entry->mode)) {
        objects.push_back(ObjectAt(
            path, {entry->size, static_cast<uint64_t>(entry->ctime.tv_sec), entry->ctime_nsec}));
      } else {
        objects.push_back({.path = std::move(path), .left_out = "no file"});
      }
    }
    return AddLinks(nfs, links, objects);
  }

  static absl::Status AddLinks(nfs_context* nfs, const std::vector<std::string>& links,
                               std::vector<StoredObject>& objects) {
    for (const std::string& link : links) {
      const auto found = Find(nfs, link);
      if (absl::IsUnavailable(found.status())) return found.status();
      if (found.ok() && S_ISREG(found->status.nfs_mode)) {
        objects.push_back(ObjectAt(link, VersionOf(found->status)));
      } else {
        objects.push_back({.path = link, .left_out = "a link to no file"});
      }
    }
    return absl::OkStatus();
  }

  NfsConnections connections_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ObjectStore>> OpenNfsStore(const spec::DataPlace& place) {
  auto server = spec::ParseNfsAuthority(absl::StripPrefix(place.endpoint, "nfs://"));
  if (!server) return absl::InvalidArgumentError("its endpoint is no NFS server");
  return std::make_unique<NfsStore>(*std::move(server), place.container);
}

}  // namespace tutti::storage
