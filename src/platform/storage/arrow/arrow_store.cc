#include "platform/storage/arrow/arrow_store.h"

#include <arrow/filesystem/localfs.h>
#include <arrow/io/interfaces.h>
#include <arrow/result.h>
#include <arrow/util/key_value_metadata.h>
#include <arrow/util/thread_pool.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"
#include "platform/storage/arrow/arrow_errors.h"
#include "platform/storage/arrow/arrow_options.h"
#include "platform/storage/objects/error_text.h"
#include "platform/storage/objects/object_headers.h"
#include "platform/storage/storage_fault.h"
#include "platform/storage/transfer/guarded.h"
#include "platform/storage/transfer/local_put.h"
#include "platform/storage/transfer/object_names.h"

namespace tutti::storage {
namespace {

namespace afs = arrow::fs;

constexpr size_t kPutBlock = 8 << 20;
// Debian's, then Red Hat's: the wheel's library knows the folder of another system.
constexpr std::array kAuthorities = {"/etc/ssl/certs/ca-certificates.crt",
                                     "/etc/pki/tls/certs/ca-bundle.crt"};

std::string MetadataOf(const arrow::KeyValueMetadata& metadata, const char* name) {
  const auto value = metadata.Get(name);
  return value.ok() ? *value : "";
}

double SecondsOf(afs::TimePoint time) {
  const double seconds = std::chrono::duration<double>(time.time_since_epoch()).count();
  return std::max(seconds, 0.0);
}

// A local file has no ETag: the size and the time of the last change, in ns, stand for it.
void DescribeLocal(const afs::FileInfo& info, StoredObject& object) {
  object.modified = SecondsOf(info.mtime());
  object.etag = absl::StrCat(info.mtime().time_since_epoch().count(), "-", info.size());
}

class ArrowReader final : public ObjectReader {
 public:
  ArrowReader(StoredObject object, bool md5_is_certain,
              std::shared_ptr<arrow::io::RandomAccessFile> file)
      : ObjectReader(std::move(object), md5_is_certain), file_(std::move(file)) {}

  absl::Status Read(int64_t offset, std::span<char> out) override {
    return Guarded([&] { return ReadAt(offset, out); }, StatusFromText);
  }

 private:
  absl::Status ReadAt(int64_t offset, std::span<char> out) {
    const auto n = file_->ReadAt(offset, static_cast<int64_t>(out.size()), out.data());
    if (!n.ok()) return StatusFrom(n.status());
    if (*n == static_cast<int64_t>(out.size())) return absl::OkStatus();
    return absl::DataLossError(
        absl::StrCat("the store has sent ", *n, " of ", out.size(), " bytes"));
  }

  const std::shared_ptr<arrow::io::RandomAccessFile> file_;
};

// The providers' libraries tell some errors, as of a service principal that gets no token, by
// exceptions that Arrow lets through.
class ArrowStore final : public ObjectStore {
 public:
  ArrowStore(std::shared_ptr<afs::FileSystem> files, std::string container, spec::StoreKind kind)
      : files_(std::move(files)), container_(std::move(container)), kind_(kind) {}
  ~ArrowStore() override {
    files_.reset();
    if (kind_ == spec::StoreKind::kS3) static_cast<void>(afs::EnsureS3Finalized());
  }

  absl::StatusOr<PathKind> KindOf(const std::string& path) override {
    return Guarded([&] { return FindKind(path); }, StatusFromText);
  }
  absl::StatusOr<std::vector<StoredObject>> List(const std::string& folder,
                                                 bool recursive) override {
    return Guarded([&] { return ListFolder(folder, recursive); }, StatusFromText);
  }
  absl::StatusOr<std::unique_ptr<ObjectReader>> Open(const std::string& path) override {
    return Guarded([&] { return OpenObject(path); }, StatusFromText);
  }
  absl::Status Put(const std::string& path, const std::filesystem::path& file,
                   const SentListener& sent) override {
    return Guarded([&] { return PutFile(path, file, sent); }, StatusFromText);
  }
  absl::Status Remove(const std::string& path) override {
    return Guarded(
        [&] {
          const absl::Status status = StatusFrom(files_->DeleteFile(Full(path)));
          return absl::IsNotFound(status) ? absl::OkStatus() : status;
        },
        StatusFromText);
  }

 private:
  absl::StatusOr<PathKind> FindKind(const std::string& path);
  absl::StatusOr<std::vector<StoredObject>> ListFolder(const std::string& folder, bool recursive);
  absl::StatusOr<std::unique_ptr<ObjectReader>> OpenObject(const std::string& path);
  absl::Status PutFile(const std::string& path, const std::filesystem::path& file,
                       const SentListener& sent);
  absl::Status PutStream(const std::string& path, const std::filesystem::path& file,
                         const SentListener& sent);
  absl::Status PutBlob(const std::string& path, const std::filesystem::path& file,
                       const SentListener& sent);
  std::string Full(const std::string& path) const {
    if (container_.empty()) return path;
    return path.empty() ? container_ : absl::StrCat(container_, "/", path);
  }

  std::shared_ptr<afs::FileSystem> files_;
  const std::string container_;
  const spec::StoreKind kind_;
};

absl::StatusOr<PathKind> ArrowStore::FindKind(const std::string& path) {
  const auto info = files_->GetFileInfo(Full(path));
  if (!info.ok()) {
    const absl::Status status = StatusFrom(info.status());
    if (!absl::IsPermissionDenied(status) || kind_ != spec::StoreKind::kS3) return status;
    // The answer to HEAD has no body, so no reason; that to a list has.
    const auto listed = ListFolder(path, false);
    return absl::IsPermissionDenied(listed.status()) ? listed.status() : status;
  }
  if (info->IsFile()) return PathKind::kFile;
  return info->IsDirectory() ? PathKind::kFolder : PathKind::kNothing;
}

absl::StatusOr<std::vector<StoredObject>> ArrowStore::ListFolder(const std::string& folder,
                                                                 bool recursive) {
  afs::FileSelector selector;
  selector.base_dir = Full(folder);
  selector.recursive = recursive;
  const auto infos = files_->GetFileInfo(selector);
  if (!infos.ok()) return StatusFrom(infos.status());
  const std::string prefix = container_.empty() ? "" : absl::StrCat(container_, "/");
  std::vector<StoredObject> objects;
  for (const afs::FileInfo& info : *infos) {
    if (!info.IsFile()) continue;
    StoredObject object{std::string(absl::StripPrefix(info.path(), prefix)), info.size()};
    object.modified = SecondsOf(info.mtime());
    objects.push_back(std::move(object));
  }
  return objects;
}

absl::StatusOr<std::unique_ptr<ObjectReader>> ArrowStore::OpenObject(const std::string& path) {
  const auto file = files_->OpenInputFile(Full(path));
  if (!file.ok()) return StatusFrom(file.status());
  const auto metadata = (*file)->ReadMetadata();
  if (!metadata.ok()) return StatusFrom(metadata.status());
  const auto size = (*file)->GetSize();
  if (!size.ok()) return StatusFrom(size.status());
  StoredObject object{path, *size};
  if (*metadata == nullptr) {
    const auto local = files_->GetFileInfo(Full(path));
    if (!local.ok()) return StatusFrom(local.status());
    DescribeLocal(*local, object);
  } else {
    TakeHeaders([&](const char* name) { return MetadataOf(**metadata, name); }, object);
  }
  return std::make_unique<ArrowReader>(std::move(object), kind_ != spec::StoreKind::kS3, *file);
}

// Hands the file on block by block.
absl::Status SendBlocks(const std::filesystem::path& file,
                        const std::function<absl::Status(const char* data, size_t size)>& take) {
  const auto opened = base::Open(file, O_RDONLY);
  if (!opened.ok()) return WithSource(opened.status(), FaultSource::kDisk);
  std::vector<char> block(kPutBlock);
  while (true) {
    const ssize_t n = ::read(opened->get(), block.data(), block.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      return WithSource(base::ErrnoStatus(absl::StrCat("read ", file.string())),
                        FaultSource::kDisk);
    }
    if (n == 0) return absl::OkStatus();
    TUTTI_RETURN_IF_ERROR(take(block.data(), static_cast<size_t>(n)));
  }
}

// What the store has begun to take is given back, as the parts of an upload that never ends would
// be kept, and charged, for good.
absl::Status ArrowStore::PutStream(const std::string& path, const std::filesystem::path& file,
                                   const SentListener& sent) {
  const auto out = files_->OpenOutputStream(Full(path));
  if (!out.ok()) return StatusFrom(out.status());
  absl::Status put = SendBlocks(file, [&](const char* data, size_t size) {
    TUTTI_RETURN_IF_ERROR(StatusFrom((*out)->Write(data, static_cast<int64_t>(size))));
    return sent(static_cast<int64_t>(size));
  });
  if (put.ok()) put = StatusFrom((*out)->Close());
  if (!put.ok()) static_cast<void>((*out)->Abort());
  return put;
}

// Arrow empties a blob before it sends the first block of it, which readers would see, and which
// would lose the one that was there if the put fails. So it goes up by another name, and takes its
// own by a rename, where the account has folders, else by a copy within the account.
absl::Status ArrowStore::PutBlob(const std::string& path, const std::filesystem::path& file,
                                 const SentListener& sent) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : path.substr(0, slash + 1);
  const std::string part = absl::StrCat(folder, kPutPrefix, base::RandomHex(8));
  absl::Status put = PutStream(part, file, sent);
  bool is_moved = false;
  if (put.ok()) {
    arrow::Status named = files_->Move(Full(part), Full(path));
    is_moved = named.ok();
    if (named.IsNotImplemented()) named = files_->CopyFile(Full(part), Full(path));
    put = StatusFrom(named);
  }
  // It is no object of the place (place_survey.h): that it stays is no failure of the put.
  if (!is_moved) static_cast<void>(files_->DeleteFile(Full(part)));
  return put;
}

absl::Status ArrowStore::PutFile(const std::string& path, const std::filesystem::path& file,
                                 const SentListener& sent) {
  switch (kind_) {
    case spec::StoreKind::kLocal:
      return PutLocalFile(
          path, [&](const auto& take) { return SendBlocks(file, take); }, sent);
    case spec::StoreKind::kAzureBlob:
    case spec::StoreKind::kAzureDataLake:
      return PutBlob(path, file, sent);
    default:
      return PutStream(path, file, sent);
  }
}

void SetAuthorities() {
  const char* known = std::getenv("SSL_CERT_FILE");
  for (const char* file : kAuthorities) {
    if (known == nullptr && ::access(file, R_OK) == 0) known = file;
  }
  if (known == nullptr) return;
  ::setenv("SSL_CERT_FILE", known, 0);  // Azure's library reads it
  afs::FileSystemGlobalOptions options;
  options.tls_ca_file_path = known;
  static_cast<void>(afs::Initialize(options));
}

template <typename FileSystem>
absl::StatusOr<std::shared_ptr<afs::FileSystem>> Opened(
    arrow::Result<std::shared_ptr<FileSystem>> files) {
  if (!files.ok()) return StatusFrom(files.status());
  return std::shared_ptr<afs::FileSystem>(*std::move(files));
}

absl::StatusOr<std::shared_ptr<afs::FileSystem>> OpenS3(const spec::DataPlace& place,
                                                        const Credentials& credentials) {
  ::setenv("AWS_EC2_METADATA_DISABLED", "true", 1);  // asks no machine for a region
  afs::S3GlobalOptions global = afs::S3GlobalOptions::Defaults();
  global.log_level = afs::S3LogLevel::Off;
  TUTTI_RETURN_IF_ERROR(StatusFrom(afs::InitializeS3(global)));
  TUTTI_ASSIGN_OR_RETURN(afs::S3Options options, S3OptionsOf(place, credentials));
  if (options.region.empty()) {
    const auto region = afs::ResolveS3BucketRegion(place.container);
    if (!region.ok()) return StatusFrom(region.status());
    options.region = *region;
  }
  return Opened(afs::S3FileSystem::Make(options));
}

absl::StatusOr<std::shared_ptr<afs::FileSystem>> OpenFiles(const spec::DataPlace& place,
                                                           const Credentials& credentials) {
  switch (place.kind) {
    case spec::StoreKind::kLocal:
      return std::shared_ptr<afs::FileSystem>(std::make_shared<afs::LocalFileSystem>());
    case spec::StoreKind::kAzureBlob:
    case spec::StoreKind::kAzureDataLake: {
      TUTTI_ASSIGN_OR_RETURN(const auto options, AzureOptionsOf(place, credentials));
      return Opened(afs::AzureFileSystem::Make(options));
    }
    case spec::StoreKind::kS3:
      return OpenS3(place, credentials);
    case spec::StoreKind::kGcs: {
      TUTTI_ASSIGN_OR_RETURN(const auto options, GcsOptionsOf(place, credentials));
      return Opened(afs::GcsFileSystem::Make(options));
    }
    case spec::StoreKind::kAzureFile:
      break;
  }
  return absl::FailedPreconditionError(
      "shares of Azure Files cannot be read yet: mount the share on the nodes and name its path, "
      "or copy it to a container");
}

}  // namespace

absl::StatusOr<std::unique_ptr<ObjectStore>> OpenArrowStore(const spec::DataPlace& place,
                                                            const Credentials& credentials,
                                                            int connections) {
  SetAuthorities();
  TUTTI_RETURN_IF_ERROR(StatusFrom(arrow::io::SetIOThreadPoolCapacity(std::max(connections, 1))));
  TUTTI_ASSIGN_OR_RETURN(auto files,
                         Guarded([&] { return OpenFiles(place, credentials); }, StatusFromText));
  const std::string container = place.kind == spec::StoreKind::kLocal ? "" : place.container;
  return std::make_unique<ArrowStore>(std::move(files), container, place.kind);
}

}  // namespace tutti::storage
