#include "platform/storage/arrow/arrow_store.h"

#include <arrow/filesystem/localfs.h>
#include <arrow/io/interfaces.h>
#include <arrow/result.h>
#include <arrow/util/key_value_metadata.h>
#include <arrow/util/thread_pool.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/machine/pattern_walk.h"
#include "base/status.h"
#include "platform/storage/arrow/arrow_errors.h"
#include "platform/storage/arrow/arrow_options.h"
#include "platform/storage/direct/direct_objects.h"
#include "platform/storage/direct/login_authority.h"
#include "platform/storage/objects/error_text.h"
#include "platform/storage/objects/file_blocks.h"
#include "platform/storage/objects/guarded.h"
#include "platform/storage/objects/object_headers.h"
#include "platform/storage/signing/object_url.h"
#include "platform/storage/storage_fault.h"
#include "platform/storage/transfer/local_put.h"
#include "platform/storage/transfer/object_names.h"

namespace tutti::storage {
namespace {

namespace afs = arrow::fs;

constexpr char kAuthorityHost[] = "AZURE_AUTHORITY_HOST";
constexpr size_t kPutBlock = 8 << 20;
constexpr uint64_t kSmallPut = 256 << 10;
constexpr int64_t kMostAtOnce = 1 << 20;  // of an object whose content is kept as it is opened
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
  ArrowReader(StoredObject object, bool md5_is_certain, Checksum checksum,
              std::shared_ptr<arrow::io::RandomAccessFile> file, spec::StoreKind kind)
      : ObjectReader(std::move(object), md5_is_certain, std::move(checksum)),
        file_(std::move(file)),
        kind_(kind) {}

  absl::Status Read(int64_t offset, std::span<char> out) override {
    return Guarded([&] { return ReadAt(offset, out); }, StatusFromText);
  }

 private:
  absl::Status ReadAt(int64_t offset, std::span<char> out) {
    const auto n = file_->ReadAt(offset, static_cast<int64_t>(out.size()), out.data());
    if (!n.ok()) {
      return kind_ == spec::StoreKind::kGcs ? StatusOfGoogleRead(n.status())
                                            : StatusFrom(n.status());
    }
    if (*n == static_cast<int64_t>(out.size())) return absl::OkStatus();
    return absl::DataLossError(
        absl::StrCat("the store has sent ", *n, " of ", out.size(), " bytes"));
  }

  const std::shared_ptr<arrow::io::RandomAccessFile> file_;
  const spec::StoreKind kind_;
};

// The providers' libraries tell some errors, as of a service principal that gets no token, by
// exceptions that Arrow lets through.
class ArrowStore final : public ObjectStore {
 public:
  // `direct`: of S3, Azure and Google's storage, or null.
  ArrowStore(std::shared_ptr<afs::FileSystem> files, const spec::DataPlace& place,
             std::unique_ptr<DirectObjects> direct)
      : files_(std::move(files)),
        direct_(std::move(direct)),
        container_(place.kind == spec::StoreKind::kLocal ? "" : place.container),
        root_(place.root),
        kind_(place.kind) {}
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
  absl::StatusOr<std::unique_ptr<ObjectReader>> OpenWhole(const std::string& path,
                                                          int64_t most) override {
    if (ReadsDirectly() && most <= kMostAtOnce) {
      TUTTI_ASSIGN_OR_RETURN(auto reader, direct_->ReadWhole(path, most));
      if (reader != nullptr) return reader;
    }
    return Open(path);
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
  absl::Status RemoveFolder(const std::string& path) override {
    return Guarded(
        [&] {
          const absl::Status status = StatusFrom(files_->DeleteDir(Full(path)));
          return absl::IsNotFound(status) ? absl::OkStatus() : status;
        },
        StatusFromText);
  }

 private:
  absl::StatusOr<PathKind> FindKind(const std::string& path);
  absl::StatusOr<std::vector<StoredObject>> ListFolder(const std::string& folder, bool recursive);
  absl::StatusOr<std::unique_ptr<ObjectReader>> OpenObject(const std::string& path);
  absl::StatusOr<std::unique_ptr<ObjectReader>> OpenWithHead(ObjectHead head);
  absl::StatusOr<std::unique_ptr<ObjectReader>> OpenByArrow(const StoredObject& object);
  absl::StatusOr<Checksum> ChecksumOf(const StoredObject& object);
  // Google's own interface tells what its XML interface does not, so that Arrow reads there.
  bool ReadsDirectly() const { return direct_ != nullptr && kind_ != spec::StoreKind::kGcs; }
  absl::Status PutFile(const std::string& path, const std::filesystem::path& file,
                       const SentListener& sent);
  absl::Status PutStream(const std::string& path, const std::filesystem::path& file,
                         const SentListener& sent);
  // Returns whether the file is small and the store has taken it by one request.
  absl::StatusOr<bool> PutSmall(const std::string& path, const std::filesystem::path& file,
                                const SentListener& sent);
  absl::Status PutBlob(const std::string& path, const std::filesystem::path& file,
                       const SentListener& sent);
  std::string Full(const std::string& path) const {
    if (container_.empty()) return path;
    return path.empty() ? container_ : absl::StrCat(container_, "/", path);
  }

  std::shared_ptr<afs::FileSystem> files_;
  const std::unique_ptr<DirectObjects> direct_;
  const std::string container_;
  const std::string root_;  // of kLocal, which is not made
  const spec::StoreKind kind_;
};

absl::StatusOr<PathKind> ArrowStore::FindKind(const std::string& path) {
  const auto info = files_->GetFileInfo(Full(path));
  if (!info.ok()) {
    const absl::Status status = StatusFrom(info.status());
    const bool is_s3 = kind_ == spec::StoreKind::kS3;
    if (!absl::IsPermissionDenied(status) || !(is_s3 || path.empty())) return status;
    // The answer to HEAD has no body, so no reason; that to a list has. A signature for a container
    // may list it, and not ask for its properties.
    const auto listed = ListFolder(path, false);
    if (!is_s3 && listed.ok()) return PathKind::kFolder;
    if (!is_s3 && absl::IsNotFound(listed.status())) return PathKind::kNothing;
    return absl::IsPermissionDenied(listed.status()) ? listed.status() : status;
  }
  if (info->IsFile()) return PathKind::kFile;
  return info->IsDirectory() ? PathKind::kFolder : PathKind::kNothing;
}

absl::Status OfFolder(const absl::Status& status) {
  return absl::IsNotFound(status)
             ? absl::NotFoundError("nothing is at this path")
             : absl::Status(status.code(),
                            absl::StrCat("the file system refuses: ", status.message()));
}

// Arrow follows a link to a folder above it without an end, and passes over what is no file.
absl::StatusOr<std::vector<StoredObject>> ListLocal(const std::string& folder, bool recursive) {
  std::vector<StoredObject> objects;
  const absl::Status walked =
      base::WalkTree(folder, recursive, [&](const base::TreeEntry& entry) -> absl::Status {
        const std::string path = entry.path.native();
        if (entry.is_folder()) {
          if (!recursive) objects.push_back({absl::StrCat(path, "/")});
          return absl::OkStatus();
        }
        const bool is_gone = entry.error == ENOENT && !entry.is_link;
        if (is_gone) return absl::OkStatus();
        StoredObject object{path, entry.status.st_size};
        if (entry.error != 0) {
          object.bytes = 0;
          object.left_out = base::WhyNoFile(entry);
        }
        object.modified = static_cast<double>(entry.status.st_mtim.tv_sec) +
                          static_cast<double>(entry.status.st_mtim.tv_nsec) / 1e9;
        objects.push_back(std::move(object));
        return absl::OkStatus();
      });
  TUTTI_RETURN_IF_ERROR(OfFolder(walked));
  return objects;
}

absl::StatusOr<std::vector<StoredObject>> ArrowStore::ListFolder(const std::string& folder,
                                                                 bool recursive) {
  if (kind_ == spec::StoreKind::kLocal) return ListLocal(folder, recursive);
  afs::FileSelector selector;
  selector.base_dir = Full(folder);
  selector.recursive = recursive;
  const auto infos = files_->GetFileInfo(selector);
  if (!infos.ok()) return StatusFrom(infos.status());
  const std::string prefix = container_.empty() ? "" : absl::StrCat(container_, "/");
  std::vector<StoredObject> objects;
  for (const afs::FileInfo& info : *infos) {
    const std::string path(absl::StripPrefix(info.path(), prefix));
    if (info.IsDirectory() && !recursive) objects.push_back({absl::StrCat(path, "/")});
    if (!info.IsFile()) continue;
    StoredObject object{path, info.size()};
    object.modified = SecondsOf(info.mtime());
    objects.push_back(std::move(object));
  }
  return objects;
}

// Whose size is known, of that Arrow asks nothing more.
absl::StatusOr<std::unique_ptr<ObjectReader>> ArrowStore::OpenByArrow(const StoredObject& object) {
  afs::FileInfo info(Full(object.path), afs::FileType::File);
  info.set_size(object.bytes);
  const auto file = files_->OpenInputFile(info);
  if (!file.ok()) return StatusFrom(file.status());
  return std::make_unique<ArrowReader>(object, false, Checksum{}, *file, kind_);
}

absl::StatusOr<std::unique_ptr<ObjectReader>> ArrowStore::OpenWithHead(ObjectHead head) {
  if (head.is_sent_as_kept) {
    return direct_->Read(std::move(head), [this](const StoredObject& object) {
      return Guarded([&] { return OpenByArrow(object); }, StatusFromText);
    });
  }
  afs::FileInfo info(Full(head.object.path), afs::FileType::File);
  info.set_size(head.object.bytes);
  const auto file = files_->OpenInputFile(info);
  if (!file.ok()) return StatusFrom(file.status());
  return std::make_unique<ArrowReader>(std::move(head.object), head.md5_is_certain,
                                       std::move(head.checksum), *file, kind_);
}

absl::StatusOr<std::unique_ptr<ObjectReader>> ArrowStore::OpenObject(const std::string& path) {
  if (ReadsDirectly()) {
    TUTTI_ASSIGN_OR_RETURN(std::optional<ObjectHead> head, direct_->Ask(path));
    if (head.has_value()) return OpenWithHead(*std::move(head));
  }
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
  TUTTI_ASSIGN_OR_RETURN(Checksum checksum, ChecksumOf(object));
  return std::make_unique<ArrowReader>(std::move(object), kind_ != spec::StoreKind::kS3,
                                       std::move(checksum), *file, kind_);
}

// Through Google's own interface Arrow reports the MD5, which composed objects do not have.
absl::StatusOr<Checksum> ArrowStore::ChecksumOf(const StoredObject& object) {
  if (direct_ == nullptr || kind_ != spec::StoreKind::kGcs || !object.md5.empty()) {
    return Checksum{};
  }
  TUTTI_ASSIGN_OR_RETURN(std::optional<ObjectHead> head, direct_->Ask(object.path));
  const bool is_it = head.has_value() && !object.etag.empty() && head->object.etag == object.etag &&
                     head->object.bytes == object.bytes;
  return is_it ? std::move(head->checksum) : Checksum{};
}

// An upload that fails is aborted at the store, which would otherwise keep, and charge for, its
// parts for ever.
absl::Status ArrowStore::PutStream(const std::string& path, const std::filesystem::path& file,
                                   const SentListener& sent) {
  const auto out = files_->OpenOutputStream(Full(path));
  if (!out.ok()) return StatusFrom(out.status());
  absl::Status put = ReadBlocks(file, kPutBlock, [&](absl::string_view block) {
    const auto size = static_cast<int64_t>(block.size());
    TUTTI_RETURN_IF_ERROR(StatusFrom((*out)->Write(block.data(), size)));
    return sent(size);
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

// Arrow takes ten times the processor for it.
absl::StatusOr<bool> ArrowStore::PutSmall(const std::string& path,
                                          const std::filesystem::path& file,
                                          const SentListener& sent) {
  if (direct_ == nullptr) return false;
  const auto content = base::ReadFile(file, kSmallPut);
  if (!content.ok()) return false;  // it is larger, or what puts it otherwise tells why
  TUTTI_RETURN_IF_ERROR(sent(0));
  TUTTI_ASSIGN_OR_RETURN(const bool is_put, direct_->PutWhole(path, *content));
  if (is_put) TUTTI_RETURN_IF_ERROR(sent(static_cast<int64_t>(content->size())));
  return is_put;
}

absl::Status ArrowStore::PutFile(const std::string& path, const std::filesystem::path& file,
                                 const SentListener& sent) {
  switch (kind_) {
    case spec::StoreKind::kLocal:
      return PutLocalFile(
          path, root_, [&](const TakeBlock& take) { return ReadBlocks(file, kPutBlock, take); },
          sent);
    case spec::StoreKind::kAzureBlob:
    case spec::StoreKind::kAzureDataLake:
      return PutBlob(path, file, sent);
    case spec::StoreKind::kS3: {
      TUTTI_ASSIGN_OR_RETURN(const bool is_put, PutSmall(path, file, sent));
      return is_put ? absl::OkStatus() : PutStream(path, file, sent);
    }
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

// Returns the authority that the environment named when the program was started.
const std::string& StartedWithAuthority() {
  static const std::string* const authority = [] {
    const char* const value = std::getenv(kAuthorityHost);
    return new std::string(value == nullptr ? "" : value);
  }();
  return *authority;
}

// Azure's library has no other way to be told. Nothing that is the same is written: threads of
// libraries may read the environment by then.
void TellAuthority(const std::string& authority) {
  const char* const now = std::getenv(kAuthorityHost);
  if (authority == (now == nullptr ? "" : now)) return;
  if (authority.empty()) {
    ::unsetenv(kAuthorityHost);
  } else {
    ::setenv(kAuthorityHost, authority.c_str(), 1);
  }
}

absl::StatusOr<std::shared_ptr<afs::FileSystem>> OpenFiles(const spec::DataPlace& place,
                                                           const Credentials& credentials) {
  switch (place.kind) {
    case spec::StoreKind::kLocal:
      return std::shared_ptr<afs::FileSystem>(std::make_shared<afs::LocalFileSystem>());
    case spec::StoreKind::kAzureBlob:
    case spec::StoreKind::kAzureDataLake: {
      if (credentials.kind == spec::CredentialKind::kServicePrincipal) {
        TellAuthority(credentials.authority);
      }
      TUTTI_ASSIGN_OR_RETURN(const auto options, AzureOptionsOf(place, credentials));
      return Opened(afs::AzureFileSystem::Make(options));
    }
    case spec::StoreKind::kS3:
      return OpenS3(place, credentials);
    case spec::StoreKind::kGcs: {
      TUTTI_ASSIGN_OR_RETURN(const auto options, GcsOptionsOf(place, credentials));
      return Opened(afs::GcsFileSystem::Make(options));
    }
    case spec::StoreKind::kNfs:
      return absl::InternalError("NFS is not read by Arrow");
    case spec::StoreKind::kAzureFile:
      break;
  }
  return absl::InvalidArgumentError("Arrow has no file system for shares of Azure Files");
}

// Chooses the proxy that Arrow's clients use: those of Azure and Google have libcurl's own rules.
std::optional<std::string> ProxyOf(const spec::DataPlace& place) {
  if (place.kind != spec::StoreKind::kS3) return std::nullopt;
  const auto url = UrlOf({.kind = place.kind,
                          .container = place.container,
                          .endpoint = place.endpoint,
                          .region = place.region});
  return url.ok() ? ProxyOfS3(url->scheme, url->authority) : "";
}

bool CanBeAskedDirectly(spec::StoreKind kind) {
  using enum spec::StoreKind;
  return kind == kS3 || kind == kGcs || kind == kAzureBlob || kind == kAzureDataLake;
}

absl::StatusOr<std::unique_ptr<ObjectStore>> OpenStore(const spec::DataPlace& place,
                                                       const Credentials& credentials,
                                                       int connections, StoreWords words) {
  SetAuthorities();
  TUTTI_RETURN_IF_ERROR(StatusFrom(arrow::io::SetIOThreadPoolCapacity(std::max(connections, 1))));
  TUTTI_ASSIGN_OR_RETURN(auto files,
                         Guarded([&] { return OpenFiles(place, credentials); }, StatusFromText));
  spec::DataPlace asked = place;
  if (place.kind == spec::StoreKind::kS3) {
    asked.region = static_cast<afs::S3FileSystem&>(*files).options().region;
  }
  std::unique_ptr<DirectObjects> direct;
  if (CanBeAskedDirectly(place.kind)) {
    direct = std::make_unique<DirectObjects>(
        std::make_unique<StoreRequests>(asked, credentials, words, ProxyOf(asked)));
  }
  return std::make_unique<ArrowStore>(std::move(files), place, std::move(direct));
}

StoreWords WordsOf(spec::StoreKind kind) {
  if (kind == spec::StoreKind::kGcs) return StoreWords::kGoogle;
  return kind == spec::StoreKind::kS3 ? StoreWords::kS3 : StoreWords::kAzure;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ObjectStore>> OpenArrowStore(const spec::DataPlace& place,
                                                            const Credentials& credentials,
                                                            int connections) {
  if (place.kind == spec::StoreKind::kGcs && credentials.kind == spec::CredentialKind::kAccessKey) {
    // Google's servers refuse the checksums that the AWS SDK adds by itself.
    ::setenv("AWS_REQUEST_CHECKSUM_CALCULATION", "when_required", 0);
    return OpenStore(GcsAsS3(place), credentials, connections, StoreWords::kGoogle);
  }
  Credentials taken = credentials;
  if (taken.kind == spec::CredentialKind::kServicePrincipal) {
    TUTTI_ASSIGN_OR_RETURN(taken.authority,
                           LoginAuthority(credentials.authority, StartedWithAuthority()));
  }
  return OpenStore(place, taken, connections, WordsOf(place.kind));
}

}  // namespace tutti::storage
