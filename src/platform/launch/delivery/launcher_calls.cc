#include "platform/launch/delivery/launcher_calls.h"

#include <fcntl.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"
#include "base/text/percent_encode.h"
#include "http/url.h"

namespace tutti::launch {
namespace {

template <class T>
absl::StatusOr<T> Field(const http::ClientResponse& response, const char* name) {
  const auto json = nlohmann::json::parse(response.body, nullptr, false);
  if (!json.is_object() || !json.contains(name) || !json[name].is_number_integer()) {
    return absl::InternalError(absl::StrCat("the service's answer has no \"", name, "\""));
  }
  return json[name].get<T>();
}

bool Says(const http::ClientResponse& response, const char* word) {
  const auto json = nlohmann::json::parse(response.body, nullptr, false);
  return json.is_object() && json.contains(word) && json[word] == true;
}

}  // namespace

absl::StatusOr<EventsAnswer> PostEvents(ServiceLink& link, int node, int64_t first,
                                        std::string lines, base::Deadline deadline) {
  http::ClientRequest request;
  request.method = "POST";
  request.target = link.Target(node, absl::StrCat("/events?first=", first));
  request.body = std::move(lines);
  request.content_type = "application/jsonl";
  TUTTI_ASSIGN_OR_RETURN(const http::ClientResponse response,
                         link.Call(request, deadline, Urgency::kEvents));
  EventsAnswer answer{.go = Says(response, "go"), .served = Says(response, "served")};
  TUTTI_ASSIGN_OR_RETURN(answer.acknowledged, Field<int64_t>(response, "acknowledged"));
  return answer;
}

absl::StatusOr<uint64_t> PostOutput(ServiceLink& link, int node, int rank,
                                    const std::string& stream, uint64_t offset, std::string bytes,
                                    base::Deadline deadline) {
  http::ClientRequest request;
  request.method = "POST";
  request.target = link.Target(
      node, absl::StrCat("/output?rank=", rank, "&stream=", stream, "&offset=", offset));
  request.content_type = "application/octet-stream";
  request.body = std::move(bytes);
  TUTTI_ASSIGN_OR_RETURN(const http::ClientResponse response, link.Call(request, deadline));
  return Field<uint64_t>(response, "acknowledged");
}

absl::StatusOr<absl::Duration> PostUsage(ServiceLink& link, int node, std::string lines) {
  http::ClientRequest request;
  request.method = "POST";
  request.target = link.Target(node, absl::StrCat("/usage?now=", absl::ToUnixMillis(absl::Now())));
  request.content_type = "application/jsonl";
  request.body = std::move(lines);
  request.timeout = absl::Seconds(3);
  TUTTI_ASSIGN_OR_RETURN(const http::ClientResponse response,
                         link.TryCall(request, Urgency::kUsage));
  const auto pause = Field<int64_t>(response, "pause");
  return absl::Milliseconds(pause.value_or(0));
}

absl::StatusOr<spec::Questions> AskForQuestions(ServiceLink& link, int node) {
  http::ClientRequest request;
  request.target = link.Target(node, "/questions");
  request.timeout = absl::Seconds(3);
  TUTTI_ASSIGN_OR_RETURN(const http::ClientResponse response, link.TryCall(request));
  return spec::QuestionsFromJson(response.body);
}

absl::Status PostAnswer(ServiceLink& link, int node, const std::string& question, int rank,
                        std::string json) {
  http::ClientRequest request;
  request.method = "POST";
  request.target =
      link.Target(node, absl::StrCat("/answers/", base::PercentEncode(question), "?rank=", rank));
  request.body = std::move(json);
  request.timeout = absl::Seconds(10);
  return link.TryCall(request).status();
}

absl::StatusOr<SecretValues> GetSecrets(ServiceLink& link, int node, base::Deadline deadline) {
  http::ClientRequest request;
  request.target = link.Target(node, "/secrets");
  TUTTI_ASSIGN_OR_RETURN(const http::ClientResponse response, link.Call(request, deadline));
  const absl::Status other = absl::InternalError("the service's answer has no secrets");
  const auto json = nlohmann::json::parse(response.body, nullptr, false);
  if (!json.is_object() || !json.contains("secrets") || !json["secrets"].is_object()) return other;
  SecretValues values;
  for (const auto& [name, text] : json["secrets"].items()) {
    if (!text.is_string()) return other;
    if (!absl::Base64Unescape(text.get_ref<const std::string&>(), &values[name])) return other;
  }
  return values;
}

absl::StatusOr<TrackedRun> PostRun(ServiceLink& link, int node, base::Deadline deadline) {
  http::ClientRequest request;
  request.method = "POST";
  request.target = link.Target(node, "/run");
  TUTTI_ASSIGN_OR_RETURN(const http::ClientResponse response, link.Call(request, deadline));
  const auto json = nlohmann::json::parse(response.body, nullptr, false);
  TrackedRun run;
  for (const auto& [name, text] :
       {std::pair("run", &run.id), {"experiment", &run.experiment}, {"token", &run.token}}) {
    if (!json.is_object() || !json.contains(name) || !json[name].is_string()) {
      return absl::InternalError("the service's answer has no run");
    }
    *text = json[name].get<std::string>();
  }
  return run;
}

absl::StatusOr<bool> AskForGo(ServiceLink& link, int node, absl::Duration wait,
                              base::Deadline deadline) {
  http::ClientRequest request;
  request.target = link.Target(node, absl::StrCat("/go?wait=", absl::ToInt64Seconds(wait)));
  request.timeout = wait + absl::Seconds(20);
  const bool waits = wait >= absl::Seconds(1);
  const auto response = link.Call(request, deadline, waits ? Urgency::kWait : Urgency::kOutput);
  if (absl::IsDeadlineExceeded(response.status())) return false;
  TUTTI_RETURN_IF_ERROR(response.status());
  return Says(*response, "go");
}

absl::Status Download(ServiceLink& link, const std::string& snapshot,
                      const std::filesystem::path& file) {
  while (true) {
    TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd fd,
                           base::Open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600));
    base::Sha256 hash;
    http::ClientRequest request;
    request.target = link.Target(absl::StrCat("/snapshots/", base::PercentEncode(snapshot)));
    request.stall_timeout = absl::Seconds(60);
    request.on_chunk = [&](absl::string_view piece) {
      hash.Update(piece);
      return base::WriteAll(fd.get(), piece, file.string());
    };
    // One attempt a time, since a broken one has left its bytes in the file.
    const auto response = link.TryCall(request);
    if (absl::IsUnavailable(response.status())) {
      link.PauseAfterFailure();
      continue;
    }
    TUTTI_RETURN_IF_ERROR(response.status());
    if (absl::StrCat("sha256:", base::Hex(hash.Finish())) == snapshot) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat("the service sent other bytes than ", snapshot));
  }
}

}  // namespace tutti::launch
