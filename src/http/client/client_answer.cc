// Defines what callers do with an answer: turn it into an error, into lines or into a file.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "http/client/client.h"

namespace tutti::http {

absl::Status Client::Download(const std::string& target, const std::filesystem::path& file) {
  const std::filesystem::path temporary = file.string() + ".part";
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd fd,
                         base::Open(temporary, O_WRONLY | O_CREAT | O_TRUNC));
  absl::Cleanup remove = [&] { ::unlink(temporary.c_str()); };
  ClientRequest request;
  request.target = target;
  request.stall_timeout = absl::Seconds(60);
  request.on_chunk = [&](absl::string_view piece) {
    return base::WriteAll(fd.get(), piece, file.string());
  };
  TUTTI_ASSIGN_OR_RETURN(const ClientResponse response, Send(request));
  TUTTI_RETURN_IF_ERROR(ToStatus(response));
  if (::rename(temporary.c_str(), file.c_str()) != 0) {
    return base::ErrnoStatus(absl::StrCat("rename to ", file.string()));
  }
  std::move(remove).Cancel();
  return absl::OkStatus();
}

ChunkCallback ByLine(ChunkCallback on_line) {
  return [on_line = std::move(on_line), rest = std::string()](absl::string_view chunk) mutable {
    while (!chunk.empty()) {
      const size_t end = chunk.find('\n');
      if (end == absl::string_view::npos) {
        rest.append(chunk.data(), chunk.size());
        break;
      }
      rest.append(chunk.data(), end);
      const std::string line = std::move(rest);
      rest.clear();
      TUTTI_RETURN_IF_ERROR(on_line(line));
      chunk.remove_prefix(end + 1);
    }
    return absl::OkStatus();
  };
}

absl::Status ToStatus(const ClientResponse& response) {
  if (response.ok()) return absl::OkStatus();
  std::string message;
  std::string code;
  const auto json = nlohmann::json::parse(response.body, nullptr, false);
  if (json.is_object() && json.contains("error") && json["error"].is_object()) {
    message = json["error"].value("message", "");
    code = json["error"].value("code", "");
  }
  if (message.empty()) message = absl::StrCat("the service answered ", response.status);
  switch (response.status) {
    case 400:
      return absl::InvalidArgumentError(message);
    case 401:
      return absl::UnauthenticatedError(message);
    case 403:
      return absl::PermissionDeniedError(message);
    case 404:
      return absl::NotFoundError(message);
    case 409:
      return code == "already_exists" ? absl::AlreadyExistsError(message)
                                      : absl::FailedPreconditionError(message);
    case 410:
      return absl::AbortedError(message);
    case 413:
      return absl::OutOfRangeError(message);
    case 501:
      return absl::UnimplementedError(message);
    case 503:
      return absl::UnavailableError(message);
    case 408:
    case 504:
      return absl::DeadlineExceededError(message);
    case 507:
      return absl::ResourceExhaustedError(message);
    default:
      return absl::InternalError(message);
  }
}

}  // namespace tutti::http
