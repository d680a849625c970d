#include "platform/storage/storage_json.h"

#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status.h"
#include "base/threads/retry_after.h"
#include "platform/storage/storage_fault.h"
#include "spec/types/enum_names.h"

namespace tutti::storage {
namespace {

using nlohmann::json;

constexpr int kMostConnections = 256;
constexpr int64_t kMostCount = int64_t{1} << 60;

constexpr std::array<std::pair<absl::StatusCode, absl::string_view>, 7> kErrorKinds = {{
    {absl::StatusCode::kPermissionDenied, "credentials"},
    {absl::StatusCode::kNotFound, "not_found"},
    {absl::StatusCode::kUnavailable, "network"},
    {absl::StatusCode::kResourceExhausted, "disk_full"},
    {absl::StatusCode::kAborted, "changed"},
    {absl::StatusCode::kDataLoss, "damaged"},
    {absl::StatusCode::kInvalidArgument, "usage"},
}};

std::string Dump(const json& document) {
  return document.dump(-1, ' ', false, json::error_handler_t::replace);
}

// Fields reads the fields of one object, each by its type; a field that was not read is an error.
// The first error stays.
class Fields {
 public:
  Fields(const json& object, std::string path) : object_(object), path_(std::move(path)) {
    if (!object.is_object()) Fail("", "must be an object");
  }

  void Read(const char* name, std::string& value) {
    const json* const found = Find(name);
    if (found == nullptr) return;
    if (!found->is_string()) return Fail(name, "must be a string");
    value = found->get<std::string>();
    if (value.find('\0') != std::string::npos) Fail(name, "has a NUL");
  }
  void Read(const char* name, bool& value) {
    const json* const found = Find(name);
    if (found == nullptr) return;
    if (!found->is_boolean()) return Fail(name, "must be true or false");
    value = found->get<bool>();
  }
  void Read(const char* name, int64_t& value, int64_t least, int64_t most) {
    const json* const found = Find(name);
    if (found == nullptr) return;
    const bool fits = found->is_number_integer() && *found >= least && *found <= most;
    if (!fits) return Fail(name, absl::StrCat("must be a number from ", least, " to ", most));
    value = found->get<int64_t>();
  }
  void ReadTime(const char* name, double& value) {
    const json* const found = Find(name);
    if (found == nullptr) return;
    const bool fits = found->is_number() && *found >= 0 && *found <= kLatestTime;
    if (!fits) return Fail(name, "must be seconds since 1970");
    value = found->get<double>();
  }
  void Read(const char* name, std::vector<std::string>& value) {
    const json* const found = Find(name);
    if (found == nullptr) return;
    if (!found->is_array()) return Fail(name, "must be a list");
    value.clear();
    for (const json& text : *found) {
      if (!text.is_string() || absl::StrContains(text.get_ref<const std::string&>(), '\0')) {
        return Fail(name, "must be a list of strings without a NUL");
      }
      value.push_back(text.get<std::string>());
    }
  }
  template <typename Value>
  void ReadName(const char* name, std::optional<Value> (*from_name)(absl::string_view),
                Value& value) {
    std::string text;
    if (!object_.is_object() || !object_.contains(name)) return Fail(name, "is missing");
    Read(name, text);
    const std::optional<Value> known = from_name(text);
    if (!known.has_value()) return Fail(name, "has a value that is not known");
    value = *known;
  }
  const json* Object(const char* name) {
    const json* const found = Find(name);
    if (found == nullptr) Fail(name, "is missing");
    return found;
  }

  void Fail(absl::string_view name, absl::string_view why) {
    if (!status_.ok()) return;
    const char* const dot = path_.empty() || name.empty() ? "" : ".";
    const std::string where = absl::StrCat(path_, dot, name);
    status_ =
        absl::InvalidArgumentError(absl::StrCat(where.empty() ? "the document" : where, " ", why));
  }
  absl::Status Finish() {
    if (!status_.ok()) return status_;
    for (const auto& [name, value] : object_.items()) {
      if (!read_.contains(name)) Fail(name, "is not known");
    }
    return status_;
  }

 private:
  const json* Find(const char* name) {
    read_.insert(name);
    if (!status_.ok() || !object_.is_object()) return nullptr;
    const auto found = object_.find(name);
    return found == object_.end() ? nullptr : &*found;
  }

  const json& object_;
  const std::string path_;
  std::set<std::string> read_;
  absl::Status status_;
};

absl::StatusOr<json> Parsed(absl::string_view text, absl::string_view what) {
  json document = json::parse(text, nullptr, false);
  if (document.is_object()) return document;
  return absl::InvalidArgumentError(absl::StrCat(what, " must be one JSON object"));
}

absl::Status ReadPlace(const json& object, spec::DataPlace& place) {
  Fields fields(object, "place");
  fields.ReadName("kind", spec::StoreFromName, place.kind);
  fields.Read("account", place.account);
  fields.Read("container", place.container);
  fields.Read("endpoint", place.endpoint);
  fields.Read("region", place.region);
  fields.Read("path", place.path);
  fields.Read("root", place.root);
  fields.Read("pattern", place.is_pattern);
  fields.Read("classes", place.has_classes);
  const bool is_local = place.kind == spec::StoreKind::kLocal;
  if (is_local && !absl::StartsWith(place.path, "/")) fields.Fail("path", "must be absolute");
  if (!is_local && place.container.empty()) fields.Fail("container", "is missing");
  return fields.Finish();
}

absl::Status ReadCredentials(const json& object, Credentials& credentials) {
  Fields fields(object, "credentials");
  fields.ReadName("kind", spec::CredentialFromName, credentials.kind);
  fields.Read("account_key", credentials.account_key);
  fields.Read("sas", credentials.sas);
  fields.Read("tenant", credentials.tenant);
  fields.Read("client", credentials.client);
  fields.Read("client_secret", credentials.client_secret);
  fields.Read("authority", credentials.authority);
  fields.Read("access_key_id", credentials.access_key_id);
  fields.Read("secret_access_key", credentials.secret_access_key);
  fields.Read("session_token", credentials.session_token);
  return fields.Finish();
}

absl::Status ReadFormer(const json& object, FormerFolder& former) {
  Fields fields(object, "formers");
  for (const auto& [name, path] :
       {std::pair("folder", &former.folder), std::pair("objects", &former.objects)}) {
    std::string text;
    fields.Read(name, text);
    if (!absl::StartsWith(text, "/")) fields.Fail(name, "must be an absolute path");
    *path = text;
  }
  fields.Read("base", former.base);
  fields.Read("verify", former.verify);
  return fields.Finish();
}

absl::Status ReadFormers(const json& array, std::vector<FormerFolder>& formers) {
  if (!array.is_array()) return absl::InvalidArgumentError("formers must be an array");
  for (const json& object : array) {
    TUTTI_RETURN_IF_ERROR(ReadFormer(object, formers.emplace_back()));
  }
  return absl::OkStatus();
}

absl::Status ReadPeers(const json& object, Peers& peers) {
  Fields fields(object, "peers");
  int64_t node = 0, port = 0;
  fields.Read("addresses", peers.addresses);
  fields.Read("node", node, 0, static_cast<int64_t>(peers.addresses.size()) - 1);
  fields.Read("port", port, 1, 65535);
  fields.Read("token", peers.token);
  if (peers.token.empty()) fields.Fail("token", "is missing");
  peers.node = static_cast<int>(node);
  peers.port = static_cast<int>(port);
  return fields.Finish();
}

json JsonOf(const Peers& peers) {
  return {{"node", peers.node},
          {"addresses", peers.addresses},
          {"port", peers.port},
          {"token", peers.token}};
}

json JsonOf(const std::vector<FormerFolder>& formers) {
  json array = json::array();
  for (const FormerFolder& former : formers) {
    array.push_back({{"folder", former.folder.string()},
                     {"objects", former.objects.string()},
                     {"base", former.base},
                     {"verify", former.verify}});
  }
  return array;
}

json JsonOf(const spec::DataPlace& place) {
  json document = {{"kind", spec::StoreName(place.kind)},
                   {"account", place.account},
                   {"container", place.container},
                   {"endpoint", place.endpoint},
                   {"region", place.region},
                   {"path", place.path},
                   {"pattern", place.is_pattern}};
  if (place.has_classes) document["classes"] = true;
  return document;
}

json JsonOf(const Credentials& credentials) {
  json object = {{"kind", spec::CredentialName(credentials.kind)}};
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) object[name] = value;
  };
  add("account_key", credentials.account_key);
  add("sas", credentials.sas);
  add("tenant", credentials.tenant);
  add("client", credentials.client);
  add("client_secret", credentials.client_secret);
  add("authority", credentials.authority);
  add("access_key_id", credentials.access_key_id);
  add("secret_access_key", credentials.secret_access_key);
  add("session_token", credentials.session_token);
  return object;
}

bool NeedsFolder(Operation operation) {
  return operation == Operation::kFetch || operation == Operation::kPut;
}

json JsonOf(const StoredObject& object) {
  json fields = {{"path", object.path}, {"bytes", object.bytes}, {"etag", object.etag}};
  if (!object.md5.empty()) fields["md5"] = object.md5;
  if (object.modified > 0) fields["modified"] = object.modified;
  if (!object.left_out.empty()) fields["left_out"] = object.left_out;
  return {{"object", fields}};
}

json JsonOf(const StorageProgress& progress) {
  const json fields = {{"objects", progress.objects},
                       {"of_objects", progress.of_objects},
                       {"bytes", progress.bytes},
                       {"of_bytes", progress.of_bytes}};
  return {{"progress", fields}};
}

json JsonOf(const StorageDone& done) {
  json fields = {{"objects", done.objects}, {"bytes", done.bytes}};
  if (!done.digest.empty()) fields["digest"] = done.digest;
  if (done.is_file) fields["file"] = true;
  return {{"done", fields}};
}

json JsonOf(const StorageFailure& failure) {
  json fields = {{"kind", ErrorKind(failure.status)}, {"message", failure.status.message()}};
  if (!failure.path.empty()) fields["path"] = failure.path;
  const FaultSource source = SourceOf(failure.status);
  if (source == FaultSource::kLogin || source == FaultSource::kDisk)
    fields["source"] = Name(source);
  if (const absl::Duration told = base::RetryAfterOf(failure.status); told > absl::ZeroDuration()) {
    fields["retry_after_ms"] = absl::ToInt64Milliseconds(told);
  }
  if (const int64_t lacking = LackingOf(failure.status); lacking > 0) fields["lacking"] = lacking;
  return {{"error", fields}};
}

absl::StatusOr<AnswerLine> ReadObject(const json& value) {
  Fields fields(value, "object");
  StoredObject object;
  fields.Read("path", object.path);
  fields.Read("bytes", object.bytes, 0, kMostCount);
  fields.Read("etag", object.etag);
  fields.Read("md5", object.md5);
  fields.ReadTime("modified", object.modified);
  fields.Read("left_out", object.left_out);
  TUTTI_RETURN_IF_ERROR(fields.Finish());
  return object;
}

absl::StatusOr<AnswerLine> ReadProgress(const json& value) {
  Fields fields(value, "progress");
  StorageProgress progress;
  fields.Read("objects", progress.objects, 0, kMostCount);
  fields.Read("of_objects", progress.of_objects, 0, kMostCount);
  fields.Read("bytes", progress.bytes, 0, kMostCount);
  fields.Read("of_bytes", progress.of_bytes, 0, kMostCount);
  TUTTI_RETURN_IF_ERROR(fields.Finish());
  return progress;
}

absl::StatusOr<AnswerLine> ReadDone(const json& value) {
  Fields fields(value, "done");
  StorageDone done;
  fields.Read("objects", done.objects, 0, kMostCount);
  fields.Read("bytes", done.bytes, 0, kMostCount);
  fields.Read("digest", done.digest);
  fields.Read("file", done.is_file);
  TUTTI_RETURN_IF_ERROR(fields.Finish());
  return done;
}

absl::StatusOr<AnswerLine> ReadFailure(const json& value) {
  Fields fields(value, "error");
  StorageFailure failure;
  std::string kind, message, source(Name(FaultSource::kStore));
  fields.Read("kind", kind);
  fields.Read("message", message);
  fields.Read("path", failure.path);
  fields.Read("source", source);
  int64_t lacking = 0;
  fields.Read("lacking", lacking, 0, kMostCount);
  int64_t retry_after_ms = 0;
  fields.Read("retry_after_ms", retry_after_ms, 0, kMostCount);
  TUTTI_RETURN_IF_ERROR(fields.Finish());
  failure.status = WithSource(absl::Status(CodeOfErrorKind(kind), message), SourceFromName(source));
  failure.status = WithLacking(std::move(failure.status), lacking);
  failure.status =
      base::WithRetryAfter(std::move(failure.status), absl::Milliseconds(retry_after_ms));
  return failure;
}

}  // namespace

std::string ToJson(const StorageRequest& request) {
  json document = {{"operation", Name(request.operation)},
                   {"place", JsonOf(request.place)},
                   {"credentials", JsonOf(request.credentials)},
                   {"connections", request.connections},
                   {"type", Name(request.type)}};
  if (request.settled_before != 0) document["settled_before"] = request.settled_before;
  if (!request.folder.empty()) document["folder"] = request.folder.string();
  if (!request.files.empty()) document["files"] = request.files;
  if (request.tells_lacking) document["tells_lacking"] = true;
  if (request.tells_retry_after) document["tells_retry_after"] = true;
  if (request.tells_left_out) document["tells_left_out"] = true;
  const bool writes =
      request.operation == Operation::kPut || request.operation == Operation::kProbe;
  if (writes && !request.place.root.empty()) document["place"]["root"] = request.place.root;
  if (!request.recursive) document["recursive"] = false;
  if (!request.list_file.empty()) document["list_file"] = request.list_file.string();
  if (request.peers && request.operation == Operation::kFetch)
    document["peers"] = JsonOf(*request.peers);
  if (!request.formers.empty()) document["formers"] = JsonOf(request.formers);
  return Dump(document);
}

absl::StatusOr<StorageRequest> StorageRequestFromJson(absl::string_view text) {
  TUTTI_ASSIGN_OR_RETURN(const json document, Parsed(text, "a request"));
  Fields fields(document, "");
  StorageRequest request;
  std::string folder, list_file;
  int64_t connections = request.connections;
  fields.ReadName("operation", OperationFromName, request.operation);
  fields.Read("folder", folder);
  fields.Read("files", request.files);
  fields.Read("tells_lacking", request.tells_lacking);
  fields.Read("tells_retry_after", request.tells_retry_after);
  fields.Read("tells_left_out", request.tells_left_out);
  fields.Read("recursive", request.recursive);
  fields.Read("list_file", list_file);
  fields.Read("connections", connections, 1, kMostConnections);
  fields.Read("settled_before", request.settled_before, 0, kMostCount);
  if (document.contains("type")) fields.ReadName("type", PlaceTypeFromName, request.type);
  const json* const place = fields.Object("place");
  const json* const credentials = fields.Object("credentials");
  const json* const formers = document.contains("formers") ? fields.Object("formers") : nullptr;
  const json* const peers = document.contains("peers") ? fields.Object("peers") : nullptr;
  // A launcher of the version before names one folder so. It gets all files from the store.
  if (document.contains("former")) fields.Object("former");
  TUTTI_RETURN_IF_ERROR(fields.Finish());
  if (formers != nullptr) TUTTI_RETURN_IF_ERROR(ReadFormers(*formers, request.formers));
  if (peers != nullptr) TUTTI_RETURN_IF_ERROR(ReadPeers(*peers, request.peers.emplace()));
  TUTTI_RETURN_IF_ERROR(ReadPlace(*place, request.place));
  TUTTI_RETURN_IF_ERROR(ReadCredentials(*credentials, request.credentials));
  if (NeedsFolder(request.operation) && !absl::StartsWith(folder, "/")) {
    return absl::InvalidArgumentError("folder must be an absolute path");
  }
  if (!list_file.empty() && !absl::StartsWith(list_file, "/")) {
    return absl::InvalidArgumentError("list_file must be an absolute path");
  }
  request.folder = folder;
  request.list_file = list_file;
  request.connections = static_cast<int>(connections);
  request.place.credential = request.credentials.kind;
  return request;
}

std::string ToJson(const Grant& grant) {
  return Dump({{"place", JsonOf(grant.place)},
               {"credentials", JsonOf(grant.credentials)},
               {"expires", grant.expires}});
}

absl::StatusOr<Grant> GrantFromJson(absl::string_view text) {
  TUTTI_ASSIGN_OR_RETURN(const json document, Parsed(text, "a grant"));
  Fields fields(document, "");
  Grant grant;
  const json* const place = fields.Object("place");
  const json* const credentials = fields.Object("credentials");
  fields.Read("expires", grant.expires, 0, kMostCount);
  TUTTI_RETURN_IF_ERROR(fields.Finish());
  TUTTI_RETURN_IF_ERROR(ReadPlace(*place, grant.place));
  TUTTI_RETURN_IF_ERROR(ReadCredentials(*credentials, grant.credentials));
  return grant;
}

std::string ToJson(const AnswerLine& line) {
  return Dump(std::visit([](const auto& value) { return JsonOf(value); }, line));
}

absl::StatusOr<AnswerLine> AnswerLineFromJson(absl::string_view text) {
  TUTTI_ASSIGN_OR_RETURN(const json document, Parsed(text, "a line of an answer"));
  if (document.size() != 1) {
    return absl::InvalidArgumentError("a line of an answer has one field");
  }
  const std::string& name = document.begin().key();
  const json& value = document.begin().value();
  if (name == "object") return ReadObject(value);
  if (name == "progress") return ReadProgress(value);
  if (name == "done") return ReadDone(value);
  if (name == "error") return ReadFailure(value);
  return absl::InvalidArgumentError("a line of an answer has a field that is not known");
}

absl::string_view ErrorKind(const absl::Status& status) {
  for (const auto& [code, kind] : kErrorKinds) {
    if (code == status.code()) return kind;
  }
  return "refused";
}

absl::StatusCode CodeOfErrorKind(absl::string_view kind) {
  for (const auto& [code, name] : kErrorKinds) {
    if (name == kind) return code;
  }
  return absl::StatusCode::kUnknown;
}

}  // namespace tutti::storage
