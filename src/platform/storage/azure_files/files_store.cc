#include "platform/storage/azure_files/files_store.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/deadline.h"
#include "base/hash.h"
#include "base/status.h"
#include "base/text/percent_encode.h"
#include "base/threads/retry_after.h"
#include "http/client/retry_after_header.h"
#include "http/client/transfer.h"
#include "platform/storage/azure_files/share_listing.h"
#include "platform/storage/objects/content_hash.h"
#include "platform/storage/objects/error_text.h"
#include "platform/storage/objects/file_blocks.h"
#include "platform/storage/signing/object_url.h"
#include "platform/storage/signing/shared_key.h"
#include "platform/storage/storage_fault.h"
#include "platform/storage/transfer/object_names.h"

namespace tutti::storage {
namespace {

// The first that renames files, and lists names that no XML can have, is older.
constexpr char kVersion[] = "2022-11-02";
constexpr size_t kPutBlock = 4 << 20;  // as much as one Put Range takes
constexpr char kPageSize[] = "5000";   // the most
constexpr absl::Duration kLongestCall = absl::Minutes(30);
constexpr absl::Duration kStall = absl::Minutes(2);      // without a byte of the answer
constexpr absl::Duration kPutStall = absl::Minutes(10);  // which begins once a block has gone up

struct Call {
  std::string method = "GET";
  std::string path;  // in the share
  // Names in lower case; not encoded.
  std::map<std::string, std::string> query, headers;
  absl::string_view body;
  http::ChunkCallback on_chunk;
  std::function<absl::Status(const http::ClientResponse& header)> on_header;
};

std::string HeaderOf(const http::ClientResponse& answer, const char* name) {
  const auto found = answer.headers.find(name);
  return found == answer.headers.end() ? "" : found->second;
}

bool IsNameOfError(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isalnum);
}

absl::Status ErrorOf(const http::ClientResponse& answer) {
  const std::string name = HeaderOf(answer, "x-ms-error-code");
  const absl::Status error = StatusFromText(
      absl::StrCat("Azure Error: [", IsNameOfError(name) ? name : "", "] ", answer.status));
  return base::WithRetryAfter(error, http::RetryAfterIn(answer, absl::Now()));
}

std::string RangeOf(int64_t from, size_t bytes) {
  return absl::StrCat("bytes=", from, "-", from + static_cast<int64_t>(bytes) - 1);
}

// Makes requests to one share, each by a connection that an earlier one has left. Thread-safe.
class Share {
 public:
  Share(spec::DataPlace place, Credentials credentials)
      : place_(std::move(place)), credentials_(std::move(credentials)) {
    place_.path.clear();
    place_.is_pattern = false;
  }

  // Sends a request. An answer of any status is OK; Unavailable if there is none.
  absl::StatusOr<http::ClientResponse> Send(Call call) {
    TUTTI_ASSIGN_OR_RETURN(const ObjectUrl url, UrlOfPath(call.path));
    call.headers["x-ms-date"] =
        absl::FormatTime("%a, %d %b %Y %H:%M:%S GMT", absl::Now(), absl::UTCTimeZone());
    call.headers["x-ms-version"] = kVersion;
    http::TransferRequest request{.method = call.method,
                                  .url = url.WithQuery(QueryOf(call)),
                                  .body = call.body,
                                  .deadline = base::Deadline::After(kLongestCall)};
    request.stall = call.body.empty() ? kStall : kPutStall;
    request.on_header = std::move(call.on_header);
    request.on_chunk = std::move(call.on_chunk);
    for (const auto& header : call.headers) request.headers.push_back(header);
    if (credentials_.kind == spec::CredentialKind::kAccountKey) {
      TUTTI_ASSIGN_OR_RETURN(std::string signature,
                             SharedKeyOf({call.method, url.path, call.query, call.headers,
                                          static_cast<int64_t>(call.body.size())},
                                         place_.account, credentials_.account_key));
      request.headers.emplace_back("Authorization", std::move(signature));
    }
    const std::atomic<bool> never = false;
    http::KeptConnections connections = Take();
    absl::StatusOr<http::TransferResponse> answer = http::Transfer(request, never, &connections);
    // After a request that was broken off the connection has been closed.
    GiveBack(std::move(connections));
    if (absl::IsDeadlineExceeded(answer.status())) {
      return absl::UnavailableError(answer.status().message());
    }
    if (!answer.ok()) return answer.status();
    return *std::move(answer);
  }

  // OK of a 2xx answer alone.
  absl::StatusOr<http::ClientResponse> SendWell(Call call) {
    TUTTI_ASSIGN_OR_RETURN(http::ClientResponse answer, Send(std::move(call)));
    if (!answer.ok()) return ErrorOf(answer);
    return answer;
  }

  // Returns the address with the signature, if there is one, by which a rename names its source.
  absl::StatusOr<std::string> AddressOf(const std::string& path) const {
    TUTTI_ASSIGN_OR_RETURN(const ObjectUrl url, UrlOfPath(path));
    return url.WithQuery(Signature());
  }

 private:
  absl::StatusOr<ObjectUrl> UrlOfPath(const std::string& path) const {
    spec::DataPlace of_path = place_;
    of_path.path = path;
    return UrlOf(of_path);
  }
  absl::string_view Signature() const {
    if (credentials_.kind != spec::CredentialKind::kSas) return "";
    return absl::StripPrefix(credentials_.sas, "?");
  }
  std::string QueryOf(const Call& call) const {
    std::string query(Signature());
    for (const auto& [name, value] : call.query) {
      absl::StrAppend(&query, query.empty() ? "" : "&", name, "=", base::PercentEncode(value));
    }
    return query;
  }
  http::KeptConnections Take() {
    absl::MutexLock lock(&mutex_);
    if (idle_.empty()) return {};
    http::KeptConnections taken = std::move(idle_.back());
    idle_.pop_back();
    return taken;
  }
  void GiveBack(http::KeptConnections connections) {
    absl::MutexLock lock(&mutex_);
    idle_.push_back(std::move(connections));
  }

  spec::DataPlace place_;  // the share itself
  const Credentials credentials_;
  absl::Mutex mutex_;
  std::vector<http::KeptConnections> idle_ ABSL_GUARDED_BY(mutex_);
};

// The MD5 is what the last one said who wrote by REST: who writes by SMB leaves it as it is.
class FilesReader final : public ObjectReader {
 public:
  // `etag`: of the version that is read, as the header has it.
  FilesReader(StoredObject object, std::string etag, Share& share)
      : ObjectReader(std::move(object), /*md5_is_certain=*/false),
        etag_(std::move(etag)),
        share_(share) {}

  // The service has no condition on a version, so each answer says which it is of.
  absl::Status Read(int64_t offset, std::span<char> out) override {
    if (out.empty()) return absl::OkStatus();
    size_t got = 0;
    Call call{.path = object().path, .headers = {{"x-ms-range", RangeOf(offset, out.size())}}};
    call.on_header = [&](const http::ClientResponse& header) {
      if (HeaderOf(header, "etag") == etag_) return absl::OkStatus();
      return absl::AbortedError("it has changed at the store while it was read");
    };
    call.on_chunk = [&](absl::string_view chunk) {
      if (chunk.size() > out.size() - got) {
        return absl::UnavailableError("the store has sent more bytes than it was asked for");
      }
      std::memcpy(out.data() + got, chunk.data(), chunk.size());
      got += chunk.size();
      return absl::OkStatus();
    };
    TUTTI_RETURN_IF_ERROR(share_.SendWell(std::move(call)).status());
    if (got == out.size()) return absl::OkStatus();
    return absl::DataLossError(
        absl::StrCat("the store has sent ", got, " of ", out.size(), " bytes"));
  }

 private:
  const std::string etag_;
  Share& share_;
};

std::string Below(const std::string& folder, const std::string& name) {
  return folder.empty() ? name : absl::StrCat(folder, "/", name);
}

class FilesStore final : public ObjectStore {
 public:
  FilesStore(const spec::DataPlace& place, const Credentials& credentials)
      : share_(place, credentials) {}

  absl::StatusOr<PathKind> KindOf(const std::string& path) override {
    if (path.empty()) {
      const absl::Status listed = Page("", "", "1").status();
      if (absl::IsNotFound(listed)) return PathKind::kNothing;
      TUTTI_RETURN_IF_ERROR(listed);
      return PathKind::kFolder;
    }
    TUTTI_ASSIGN_OR_RETURN(const bool is_file, IsThere(path, {}));
    if (is_file) return PathKind::kFile;
    TUTTI_ASSIGN_OR_RETURN(const bool is_folder, IsThere(path, {{"restype", "directory"}}));
    return is_folder ? PathKind::kFolder : PathKind::kNothing;
  }

  absl::StatusOr<std::vector<StoredObject>> List(const std::string& folder,
                                                 bool recursive) override {
    std::vector<StoredObject> objects;
    std::vector<std::string> folders = {folder};
    while (!folders.empty()) {
      const std::string here = std::move(folders.back());
      folders.pop_back();
      TUTTI_ASSIGN_OR_RETURN(SharePage content, ListAll(here));
      for (StoredObject& file : content.files) {
        file.path = Below(here, file.path);
        objects.push_back(std::move(file));
      }
      for (const std::string& name : content.folders) {
        const std::string path = Below(here, name);
        if (recursive) folders.push_back(path);
        if (!recursive) objects.push_back({absl::StrCat(path, "/")});
      }
    }
    return objects;
  }

  absl::StatusOr<std::unique_ptr<ObjectReader>> Open(const std::string& path) override {
    TUTTI_ASSIGN_OR_RETURN(const http::ClientResponse answer,
                           share_.SendWell({.method = "HEAD", .path = path}));
    StoredObject object{path};
    if (!absl::SimpleAtoi(HeaderOf(answer, "content-length"), &object.bytes)) {
      return absl::UnavailableError("the store does not say how large it is");
    }
    std::string etag = HeaderOf(answer, "etag");
    object.etag = std::string(absl::StripSuffix(absl::StripPrefix(etag, "\""), "\""));
    object.modified = StoreTimeFrom(HeaderOf(answer, "last-modified"));
    std::string md5;
    if (absl::Base64Unescape(HeaderOf(answer, "content-md5"), &md5) && md5.size() == 16) {
      object.md5 = absl::BytesToHexString(md5);
    }
    return std::make_unique<FilesReader>(std::move(object), std::move(etag), share_);
  }

  // It goes up by another name, so that readers have the former one until it is whole.
  absl::Status Put(const std::string& path, const std::filesystem::path& file,
                   const SentListener& sent) override {
    const size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "" : path.substr(0, slash);
    const std::string part = Below(folder, absl::StrCat(kPutPrefix, base::RandomHex(8)));
    absl::Status put = PutPart(folder, part, file, sent);
    if (put.ok()) put = Rename(part, path);
    // It is no object of the place (place_survey.h): that it stays is no failure of the put.
    if (!put.ok()) static_cast<void>(Remove(part));
    return put;
  }

  absl::Status Remove(const std::string& path) override {
    return RemoveOne({.method = "DELETE", .path = path});
  }

  absl::Status RemoveFolder(const std::string& path) override {
    const absl::StatusOr<SharePage> content = ListAll(path);
    if (absl::IsNotFound(content.status())) return absl::OkStatus();
    if (!content.ok()) return content.status();
    for (const StoredObject& file : content->files) {
      TUTTI_RETURN_IF_ERROR(Remove(Below(path, file.path)));
    }
    for (const std::string& name : content->folders) {
      TUTTI_RETURN_IF_ERROR(RemoveFolder(Below(path, name)));
    }
    if (path.empty()) return absl::OkStatus();  // the share stays
    return RemoveOne({.method = "DELETE", .path = path, .query = {{"restype", "directory"}}});
  }

 private:
  absl::Status RemoveOne(Call call) {
    const absl::Status status = share_.SendWell(std::move(call)).status();
    return absl::IsNotFound(status) ? absl::OkStatus() : status;
  }

  // A folder that is asked for as a file is of the wrong type, to some versions of the service.
  absl::StatusOr<bool> IsThere(const std::string& path,
                               const std::map<std::string, std::string>& query) {
    TUTTI_ASSIGN_OR_RETURN(const http::ClientResponse answer,
                           share_.Send({.method = "HEAD", .path = path, .query = query}));
    if (answer.ok()) return true;
    if (HeaderOf(answer, "x-ms-error-code") == "ResourceTypeMismatch") return false;
    const absl::Status error = ErrorOf(answer);
    if (absl::IsNotFound(error)) return false;
    return error;
  }

  absl::StatusOr<SharePage> Page(const std::string& folder, const std::string& marker,
                                 const char* most) {
    std::string xml;
    Call call{.path = folder,
              .query = {{"comp", "list"},
                        {"include", "Timestamps"},
                        {"maxresults", most},
                        {"restype", "directory"}}};
    if (!marker.empty()) call.query["marker"] = marker;
    call.headers["x-ms-file-extended-info"] = "true";
    call.on_chunk = [&](absl::string_view chunk) {
      absl::StrAppend(&xml, chunk);
      return absl::OkStatus();
    };
    TUTTI_RETURN_IF_ERROR(share_.SendWell(std::move(call)).status());
    return SharePageFrom(xml);
  }

  absl::StatusOr<SharePage> ListAll(const std::string& folder) {
    TUTTI_ASSIGN_OR_RETURN(SharePage all, Page(folder, "", kPageSize));
    while (!all.next.empty()) {
      TUTTI_ASSIGN_OR_RETURN(SharePage page, Page(folder, all.next, kPageSize));
      if (page.next == all.next) {
        return absl::UnavailableError("the store's list of the folder does not end");
      }
      std::move(page.files.begin(), page.files.end(), std::back_inserter(all.files));
      std::move(page.folders.begin(), page.folders.end(), std::back_inserter(all.folders));
      all.next = std::move(page.next);
    }
    return all;
  }

  absl::Status MakeFolders(const std::string& folder) {
    std::string made;
    for (const absl::string_view name : absl::StrSplit(folder, '/', absl::SkipEmpty())) {
      made = Below(made, std::string(name));
      TUTTI_ASSIGN_OR_RETURN(const http::ClientResponse answer,
                             share_.Send({.method = "PUT",
                                          .path = made,
                                          .query = {{"restype", "directory"}},
                                          .headers = {{"x-ms-file-attributes", "directory"},
                                                      {"x-ms-file-creation-time", "now"},
                                                      {"x-ms-file-last-write-time", "now"},
                                                      {"x-ms-file-permission", "inherit"}}}));
      if (answer.ok() || answer.status == 409) continue;  // it is there, or a file is
      return ErrorOf(answer);
    }
    return absl::OkStatus();
  }

  absl::Status Create(const std::string& folder, const std::string& path, int64_t bytes) {
    const Call create{.method = "PUT",
                      .path = path,
                      .headers = {{"x-ms-content-length", absl::StrCat(bytes)},
                                  {"x-ms-file-attributes", "none"},
                                  {"x-ms-file-creation-time", "now"},
                                  {"x-ms-file-last-write-time", "now"},
                                  {"x-ms-file-permission", "inherit"},
                                  {"x-ms-type", "file"}}};
    TUTTI_ASSIGN_OR_RETURN(const http::ClientResponse answer, share_.Send(create));
    if (answer.ok()) return absl::OkStatus();
    if (HeaderOf(answer, "x-ms-error-code") != "ParentNotFound") return ErrorOf(answer);
    TUTTI_RETURN_IF_ERROR(MakeFolders(folder));
    return share_.SendWell(create).status();
  }

  // The service computes no MD5 of a whole file: who writes it says what it is.
  absl::Status Describe(const std::string& path, int64_t bytes, const std::string& md5) {
    return share_
        .SendWell(
            {.method = "PUT",
             .path = path,
             .query = {{"comp", "properties"}},
             .headers = {{"x-ms-content-length", absl::StrCat(bytes)},
                         {"x-ms-content-md5", absl::Base64Escape(absl::HexStringToBytes(md5))},
                         {"x-ms-file-attributes", "preserve"},
                         {"x-ms-file-creation-time", "preserve"},
                         {"x-ms-file-last-write-time", "preserve"},
                         {"x-ms-file-permission", "preserve"}}})
        .status();
  }

  // A file that grows meanwhile goes up as far as it was large at the beginning.
  absl::Status PutPart(const std::string& folder, const std::string& part,
                       const std::filesystem::path& file, const SentListener& sent) {
    std::error_code error;
    const bool has_size = std::filesystem::is_regular_file(file, error);  // /dev/null has none
    const auto size = has_size ? std::filesystem::file_size(file, error) : 0;
    if (error) {
      return WithSource(absl::ErrnoToStatus(error.value(), absl::StrCat("read ", file.string())),
                        FaultSource::kDisk);
    }
    const auto bytes = static_cast<int64_t>(size);
    TUTTI_RETURN_IF_ERROR(Create(folder, part, bytes));
    ContentHash hash({.md5 = true});
    int64_t at = 0;
    TUTTI_RETURN_IF_ERROR(ReadBlocks(file, kPutBlock, [&](absl::string_view block) {
      block = block.substr(0, static_cast<size_t>(bytes - at));
      if (block.empty()) return absl::OkStatus();
      TUTTI_RETURN_IF_ERROR(share_
                                .SendWell({.method = "PUT",
                                           .path = part,
                                           .query = {{"comp", "range"}},
                                           .headers = {{"x-ms-range", RangeOf(at, block.size())},
                                                       {"x-ms-write", "update"}},
                                           .body = block})
                                .status());
      hash.Update(block);
      at += static_cast<int64_t>(block.size());
      return sent(static_cast<int64_t>(block.size()));
    }));
    return Describe(part, at, hash.Finish().md5);
  }

  absl::Status Rename(const std::string& from, const std::string& to) {
    TUTTI_ASSIGN_OR_RETURN(const std::string source, share_.AddressOf(from));
    return share_
        .SendWell({.method = "PUT",
                   .path = to,
                   .query = {{"comp", "rename"}},
                   .headers = {{"x-ms-file-rename-replace-if-exists", "true"},
                               {"x-ms-file-rename-source", source}}})
        .status();
  }

  Share share_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ObjectStore>> OpenFilesStore(const spec::DataPlace& place,
                                                            const Credentials& credentials) {
  if (credentials.kind != spec::CredentialKind::kAccountKey &&
      credentials.kind != spec::CredentialKind::kSas) {
    return absl::InvalidArgumentError(
        "a share of Azure Files is never public: make a datastore of it, type azure_file, with "
        "account_key or sas_token");
  }
  return std::make_unique<FilesStore>(place, credentials);
}

}  // namespace tutti::storage
