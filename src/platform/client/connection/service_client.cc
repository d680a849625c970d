#include "platform/client/connection/service_client.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/text/percent_encode.h"
#include "http/url.h"

namespace tutti::client {
namespace {

constexpr absl::Duration kStall = absl::Seconds(30);
constexpr absl::Duration kLook =
    absl::Hours(2);  // at a node: as long as the site's program may take

std::string JobTarget(const std::string& id, absl::string_view rest = "") {
  return absl::StrCat("/v1/jobs/", base::PercentEncode(id), rest);
}

// Of the name, or of a version of it.
std::string ModelTarget(const std::string& name, const std::string& version,
                        absl::string_view rest = "") {
  const std::string model = absl::StrCat("/v1/models/", base::PercentEncode(name));
  if (version.empty()) return absl::StrCat(model, rest);
  return absl::StrCat(model, "/versions/", base::PercentEncode(version), rest);
}

std::string CordonTarget(const std::string& compute, const std::string& node) {
  return absl::StrCat("/v1/nodes/", base::PercentEncode(compute), "/", base::PercentEncode(node),
                      "/cordon");
}

}  // namespace

absl::StatusOr<std::string> ServiceClient::Call(const http::ClientRequest& request) {
  TUTTI_ASSIGN_OR_RETURN(http::ClientResponse response, connection_->Send(request));
  TUTTI_RETURN_IF_ERROR(http::ToStatus(response));
  return std::move(response.body);
}

absl::StatusOr<std::string> ServiceClient::Health() {
  return Call({.target = "/v1/health", .timeout = absl::Seconds(5)});
}

absl::StatusOr<bool> ServiceClient::HasSnapshot(const std::string& hash) {
  TUTTI_ASSIGN_OR_RETURN(
      const http::ClientResponse response,
      connection_->Send({.method = "HEAD", .target = absl::StrCat("/v1/snapshots/", hash)}));
  if (response.status == 404) return false;
  TUTTI_RETURN_IF_ERROR(http::ToStatus(response));
  return true;
}

absl::Status ServiceClient::PutSnapshot(const std::string& hash,
                                        const std::filesystem::path& archive) {
  return Call({.method = "PUT",
               .target = absl::StrCat("/v1/snapshots/", hash),
               .content_type = "application/zstd",
               .body_file = archive,
               .timeout = absl::Hours(1)})
      .status();
}

absl::Status ServiceClient::Snapshot(const std::string& hash, http::ChunkCallback on_chunk) {
  return Call({.target = absl::StrCat("/v1/snapshots/", hash),
               .stall_timeout = kStall,
               .on_chunk = std::move(on_chunk)})
      .status();
}

absl::StatusOr<std::string> ServiceClient::CreateJob(const std::string& body, bool* asked) {
  http::ClientRequest request{.method = "POST", .target = "/v1/jobs", .body = body};
  if (asked != nullptr) request.on_connected = [asked] { *asked = true; };
  return Call(request);
}

absl::StatusOr<std::string> ServiceClient::CheckJob(const std::string& body) {
  return Call({.method = "POST", .target = "/v1/job-checks", .body = body});
}

absl::StatusOr<std::string> ServiceClient::Jobs(const std::string& state, int limit,
                                                int64_t before) {
  std::string target = absl::StrCat("/v1/jobs?limit=", limit);
  if (!state.empty()) absl::StrAppend(&target, "&state=", base::PercentEncode(state));
  if (before > 0) absl::StrAppend(&target, "&before=", before);
  return Call({.target = target});
}

absl::StatusOr<std::string> ServiceClient::Summaries(const std::string& state, int limit,
                                                     int64_t before) {
  std::string target = absl::StrCat("/v1/job-summaries?limit=", limit);
  if (!state.empty()) absl::StrAppend(&target, "&state=", base::PercentEncode(state));
  if (before > 0) absl::StrAppend(&target, "&before=", before);
  return Call({.target = target});
}

absl::StatusOr<std::string> ServiceClient::Job(const std::string& id, absl::Duration timeout) {
  return Call({.target = JobTarget(id), .timeout = timeout});
}

absl::StatusOr<std::string> ServiceClient::Submission(const std::string& id, bool former) {
  return Call({.target = JobTarget(id, former ? "/submission?former=true" : "/submission")});
}

absl::StatusOr<std::string> ServiceClient::Trials(const std::string& id, const std::string& after,
                                                  int limit) {
  return Call({.target = JobTarget(id, absl::StrCat("/trials?limit=", limit,
                                                    "&after=", base::PercentEncode(after)))});
}

absl::StatusOr<std::string> ServiceClient::Events(const std::string& id, int64_t before,
                                                  int limit) {
  return Call({.target = JobTarget(id, absl::StrCat("/events?limit=", limit, "&before=", before))});
}

absl::StatusOr<std::string> ServiceClient::Usage(const std::string& id, int rank, int points) {
  std::string rest = "/usage?";
  if (points > 0) absl::StrAppend(&rest, "points=", points);
  if (rank >= 0) absl::StrAppend(&rest, "&rank=", rank);
  return Call({.target = JobTarget(id, rest)});
}

absl::StatusOr<std::string> ServiceClient::Metrics(const std::string& id, int rank, int points,
                                                   int newest) {
  std::string rest = absl::StrCat("/metrics?newest=", newest);
  if (points > 0) absl::StrAppend(&rest, "&points=", points);
  if (rank >= 0) absl::StrAppend(&rest, "&rank=", rank);
  return Call({.target = JobTarget(id, rest)});
}

absl::StatusOr<std::string> ServiceClient::Stacks(const std::string& id, int rank, bool native,
                                                  absl::Duration wait) {
  std::string rest = absl::StrCat("/stacks?wait=", absl::ToInt64Seconds(wait));
  if (rank >= 0) absl::StrAppend(&rest, "&rank=", rank);
  if (native) absl::StrAppend(&rest, "&native=true");
  return Call(
      {.method = "POST", .target = JobTarget(id, rest), .timeout = wait + absl::Seconds(30)});
}

absl::StatusOr<std::string> ServiceClient::Results(const std::string& id, const std::string& name,
                                                   absl::Duration wait) {
  std::string rest = absl::StrCat("/results?wait=", absl::ToInt64Seconds(wait));
  if (!name.empty()) absl::StrAppend(&rest, "&name=", base::PercentEncode(name));
  return Call(
      {.method = "POST", .target = JobTarget(id, rest), .timeout = wait + absl::Seconds(30)});
}

absl::StatusOr<std::string> ServiceClient::Cancel(const std::string& id) {
  return Call({.method = "POST", .target = JobTarget(id, "/cancel")});
}

absl::Status ServiceClient::Delete(const std::string& id) {
  return Call({.method = "DELETE", .target = JobTarget(id)}).status();
}

absl::StatusOr<std::string> ServiceClient::Files(const std::string& id) {
  return Call({.target = JobTarget(id, "/files")});
}

absl::Status ServiceClient::File(const std::string& id, const std::string& path,
                                 http::ChunkCallback on_chunk) {
  return Call({.target = JobTarget(id, absl::StrCat("/files/", base::PercentEncode(path, true))),
               .stall_timeout = kStall,
               .on_chunk = std::move(on_chunk)})
      .status();
}

absl::Status ServiceClient::SetSecret(const std::string& name, const std::string& value) {
  return Call({.method = "PUT",
               .target = absl::StrCat("/v1/secrets/", base::PercentEncode(name)),
               .content_type = "application/octet-stream",
               .body = value})
      .status();
}

absl::StatusOr<std::string> ServiceClient::Secrets() { return Call({.target = "/v1/secrets"}); }

absl::StatusOr<std::string> ServiceClient::DeleteSecret(const std::string& name) {
  return Call(
      {.method = "DELETE", .target = absl::StrCat("/v1/secrets/", base::PercentEncode(name))});
}

absl::StatusOr<std::string> ServiceClient::RotateSecrets() {
  return Call({.method = "POST", .target = "/v1/secret-rotations"});
}

absl::StatusOr<std::string> ServiceClient::GrantStorage(const std::string& address, bool write) {
  return Call({.method = "POST",
               .target = "/v1/storage-grants",
               .body = nlohmann::json({{"address", address}, {"write", write}})
                           .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)});
}

absl::StatusOr<std::string> ServiceClient::SignStorage(const std::string& address, bool write,
                                                       absl::Duration lasts) {
  const nlohmann::json question = {
      {"address", address}, {"write", write}, {"seconds", absl::ToInt64Seconds(lasts)}};
  return Call({.method = "POST",
               .target = "/v1/storage-signatures",
               .body = question.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)});
}

absl::StatusOr<bool> ServiceClient::HasModelFile(const std::string& sha256) {
  TUTTI_ASSIGN_OR_RETURN(
      const http::ClientResponse response,
      connection_->Send(
          {.method = "HEAD", .target = absl::StrCat("/v1/model-files/sha256:", sha256)}));
  if (response.status == 404) return false;
  TUTTI_RETURN_IF_ERROR(http::ToStatus(response));
  return true;
}

absl::Status ServiceClient::PutModelFile(const std::string& sha256,
                                         const std::filesystem::path& file) {
  return Call({.method = "PUT",
               .target = absl::StrCat("/v1/model-files/sha256:", sha256),
               .content_type = "application/octet-stream",
               .body_file = file,
               .timeout = kLook,
               .stall_timeout = 2 * kStall})
      .status();
}

absl::StatusOr<std::string> ServiceClient::RegisterModel(const std::string& body, bool* asked) {
  http::ClientRequest request{
      .method = "POST", .target = "/v1/models", .body = body, .timeout = kLook};
  if (asked != nullptr) request.on_connected = [asked] { *asked = true; };
  return Call(request);
}

absl::StatusOr<std::string> ServiceClient::Models(const std::string& archived,
                                                  const std::string& after, int limit) {
  return Call({.target = absl::StrCat("/v1/models?archived=", archived, "&limit=", limit,
                                      "&after=", base::PercentEncode(after))});
}

absl::StatusOr<std::string> ServiceClient::ModelVersions(const std::string& name, int64_t before,
                                                         int limit) {
  return Call({.target = ModelTarget(name, "",
                                     absl::StrCat("/versions?limit=", limit, "&before=", before))});
}

absl::StatusOr<std::string> ServiceClient::ModelVersion(const std::string& name,
                                                        const std::string& version) {
  return Call({.target = ModelTarget(name, version)});
}

absl::StatusOr<std::string> ServiceClient::ChangeModel(const std::string& name,
                                                       const std::string& version,
                                                       const std::string& body) {
  return Call({.method = "PATCH", .target = ModelTarget(name, version), .body = body});
}

absl::Status ServiceClient::DeleteModel(const std::string& name, const std::string& version) {
  return Call({.method = "DELETE", .target = ModelTarget(name, version)}).status();
}

absl::Status ServiceClient::SetModelAlias(const std::string& name, const std::string& alias,
                                          const std::string& version) {
  return Call({.method = "PUT",
               .target = ModelTarget(name, "", "/aliases/" + base::PercentEncode(alias)),
               .body = nlohmann::json{{"version", version}}.dump()})
      .status();
}

absl::Status ServiceClient::RemoveModelAlias(const std::string& name, const std::string& alias) {
  return Call({.method = "DELETE",
               .target = ModelTarget(name, "", "/aliases/" + base::PercentEncode(alias))})
      .status();
}

absl::Status ServiceClient::ModelFile(const std::string& name, const std::string& version,
                                      const std::string& path, http::ChunkCallback on_chunk) {
  return Call({.target = ModelTarget(name, version,
                                     absl::StrCat("/files/", base::PercentEncode(path, true))),
               .stall_timeout = kStall,
               .on_chunk = std::move(on_chunk)})
      .status();
}

absl::StatusOr<std::string> ServiceClient::Problems() { return Call({.target = "/v1/problems"}); }

absl::StatusOr<std::string> ServiceClient::MakePortalLink(bool elsewhere) {
  return Call({.method = "POST",
               .target = absl::StrCat("/v1/portal-links", elsewhere ? "?elsewhere=true" : "")});
}

absl::StatusOr<bool> ServiceClient::IsPortalWordUnused(const std::string& word) {
  TUTTI_ASSIGN_OR_RETURN(const std::string answer,
                         Call({.target = "/v1/portal-links", .headers = {{"X-Tutti-Word", word}}}));
  const auto json = nlohmann::json::parse(answer, nullptr, /*allow_exceptions=*/false);
  return json.is_object() && json.value("unused", false);
}

absl::Status ServiceClient::SignPagesOut() {
  return Call({.method = "DELETE", .target = "/v1/portal-sessions?everywhere=true"}).status();
}

absl::StatusOr<std::string> ServiceClient::Prune(bool dry_run, bool clock_is_right) {
  return Call({.method = "POST",
               .target = absl::StrCat("/v1/prune?dry_run=", dry_run ? "true" : "false",
                                      clock_is_right ? "&clock_is_right=true" : ""),
               .timeout = absl::Minutes(30)});
}

absl::StatusOr<std::string> ServiceClient::PruneEnvironments(bool dry_run,
                                                             absl::Duration unused_for) {
  return Call(
      {.method = "POST",
       .target = absl::StrCat("/v1/prune?dry_run=", dry_run ? "true" : "false",
                              "&environments_unused_for=", absl::ToInt64Seconds(unused_for)),
       .timeout = absl::Minutes(30)});
}

absl::StatusOr<std::string> ServiceClient::Nodes() { return Call({.target = "/v1/nodes"}); }

absl::Status ServiceClient::Cordon(const std::string& compute, const std::string& node,
                                   const std::string& reason) {
  return Call({.method = "PUT",
               .target = CordonTarget(compute, node),
               .body = nlohmann::json({{"reason", reason}}).dump()})
      .status();
}

absl::Status ServiceClient::Uncordon(const std::string& compute, const std::string& node) {
  return Call({.method = "DELETE", .target = CordonTarget(compute, node)}).status();
}

absl::StatusOr<std::string> ServiceClient::CheckNode(const std::string& compute,
                                                     const std::string& node) {
  return Call({.method = "POST",
               .target = absl::StrCat("/v1/nodes/", base::PercentEncode(compute), "/",
                                      base::PercentEncode(node), "/check"),
               .timeout = kLook});
}

absl::Status ServiceClient::Follow(const std::string& id, const std::string& cursor, bool follow,
                                   bool reports, http::ChunkCallback on_line) {
  std::string target = JobTarget(id, absl::StrCat("/stream?follow=", follow ? "true" : "false"));
  if (!reports) absl::StrAppend(&target, "&reports=false");
  if (!cursor.empty()) absl::StrAppend(&target, "&cursor=", base::PercentEncode(cursor));
  return Call({.target = target,
               .stall_timeout = kStall,
               .on_chunk = http::ByLine(std::move(on_line))})
      .status();
}

}  // namespace tutti::client
