#include "http/client/fetch.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/deadline.h"
#include "base/file.h"
#include "base/status.h"
#include "base/threads/retry_after.h"
#include "base/threads/retry_pause.h"
#include "http/client/retry_after_header.h"
#include "http/client/transfer.h"

namespace tutti::http {
namespace {

namespace fs = std::filesystem;

constexpr int kMostRedirects = 5;
constexpr absl::Duration kLongestPause = absl::Minutes(1);
constexpr absl::Duration kLongestTold = absl::Seconds(30);  // who calls waits for more than that
constexpr size_t kPiece = 256 << 10;

// Returns the address without its fragment, which is not for the server.
absl::StatusOr<std::string> CheckedUrl(absl::string_view url) {
  url = url.substr(0, url.find('#'));
  const bool known =
      absl::StartsWithIgnoreCase(url, "https://") || absl::StartsWithIgnoreCase(url, "http://");
  if (!known) {
    return absl::InvalidArgumentError(
        absl::StrCat(url.substr(0, url.find('?')), " is no address by http"));
  }
  for (const char c : url) {
    if (static_cast<unsigned char>(c) <= ' ' || c == 0x7f) {
      return absl::InvalidArgumentError("an address has no blanks: write %20");
    }
  }
  return std::string(url);
}

std::string HeaderOf(const ClientResponse& response, const char* name) {
  const auto found = response.headers.find(name);
  return found == response.headers.end() ? "" : found->second;
}

bool IsRedirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

// Follows redirects, and returns the answer of the last address.
absl::StatusOr<ClientResponse> SendFollowing(TransferRequest request,
                                             const std::atomic<bool>& cancelled) {
  for (int i = 0; i <= kMostRedirects; ++i) {
    TUTTI_ASSIGN_OR_RETURN(request.url, CheckedUrl(request.url));
    TUTTI_ASSIGN_OR_RETURN(TransferResponse response, Transfer(request, cancelled));
    if (!IsRedirect(response.status)) return response;
    if (response.redirect.empty()) return absl::InternalError("it redirects to nowhere");
    const bool loses_tls = absl::StartsWithIgnoreCase(request.url, "https:") &&
                           !absl::StartsWithIgnoreCase(response.redirect, "https:");
    if (loses_tls) return absl::PermissionDeniedError("it redirects from https to http");
    request.url = response.redirect;
  }
  return absl::InternalError(absl::StrCat("it redirects more than ", kMostRedirects, " times"));
}

absl::Status StatusOfAnswer(const ClientResponse& answer) {
  const int status = answer.status;
  const std::string said = absl::StrCat("the server answers ", status);
  if (status >= 200 && status < 300) return absl::OkStatus();
  if (status == 404 || status == 410)
    return absl::NotFoundError(absl::StrCat(said, " (not found)"));
  if (status == 401 || status == 403 || status == 407) {
    return absl::PermissionDeniedError(absl::StrCat(said, " (not permitted)"));
  }
  if (status == 408 || status == 429 || status >= 500) {
    return base::WithRetryAfter(absl::UnavailableError(said), RetryAfterIn(answer, absl::Now()));
  }
  return absl::FailedPreconditionError(said);
}

std::string ValidatorOf(const ClientResponse& response) {
  const std::string tag = HeaderOf(response, "etag");
  if (!tag.empty() && !absl::StartsWith(tag, "W/")) return tag;  // weak ones promise no bytes
  return HeaderOf(response, "last-modified");
}

// Returns what follows "/" in "bytes 0-0/1234", or the length of the body.
int64_t WholeSize(const ClientResponse& response) {
  const std::string range = HeaderOf(response, "content-range");
  const std::string text = response.status == 206 ? range.substr(range.rfind('/') + 1)
                                                  : HeaderOf(response, "content-length");
  int64_t bytes = -1;
  return absl::SimpleAtoi(text, &bytes) && bytes >= 0 ? bytes : -1;
}

fs::path PartOf(const fs::path& file) { return file.string() + kPartEnding; }

fs::path ValidatorFileOf(const fs::path& file) { return file.string() + ".validator"; }

// Fetcher fetches one file.
class Fetcher {
 public:
  Fetcher(const std::string& url, const fs::path& file, const FetchOptions& options,
          const std::atomic<bool>& cancelled)
      : url_(url),
        part_(PartOf(file)),
        validator_file_(ValidatorFileOf(file)),
        file_(file),
        options_(options),
        cancelled_(cancelled),
        deadline_(base::Deadline::After(options.timeout)) {}

  absl::Status Run() {
    TUTTI_ASSIGN_OR_RETURN(fd_, base::Open(part_, O_WRONLY | O_CREAT));
    validator_ = base::ReadFile(validator_file_, 4096).value_or("");
    int failures = 0;
    base::RetryPause pauses(options_.pause, kLongestPause);
    while (true) {
      const int64_t before = Size();
      const absl::Status status = TryOnce();
      if (status.ok()) return Finish();
      const bool passing = absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
      if (!passing) return status;
      failures = Size() > before ? 1 : failures + 1;
      if (failures == 1) pauses.Reset();
      const absl::Duration told = base::RetryAfterOf(status);
      const absl::Duration pause = pauses.Next(told);
      if (told > kLongestTold || failures >= options_.attempts || deadline_.Remaining() < pause) {
        return status;
      }
      base::PauseUnlessCancelled(pause, cancelled_);
      if (cancelled_) return absl::CancelledError("stopped while it was fetched");
    }
  }

 private:
  int64_t Size() const {
    struct stat info {};
    return ::fstat(fd_.get(), &info) == 0 ? info.st_size : 0;
  }

  absl::Status TryOnce() {
    const int64_t have = validator_.empty() ? 0 : Size();
    TransferRequest request{.url = url_, .deadline = deadline_, .stall = options_.stall};
    request.piece_bytes = kPiece;
    if (have > 0) {
      request.headers = {{"Range", absl::StrCat("bytes=", have, "-")}, {"If-Range", validator_}};
    }
    request.on_header = [this, have](const ClientResponse& answer) { return Begin(answer, have); };
    request.on_chunk = [this](absl::string_view piece) {
      TUTTI_RETURN_IF_ERROR(base::WriteAll(fd_.get(), piece, part_.string()));
      there_ += static_cast<int64_t>(piece.size());
      if (options_.progress) options_.progress(there_);
      return absl::OkStatus();
    };
    TUTTI_ASSIGN_OR_RETURN(const ClientResponse answer, SendFollowing(request, cancelled_));
    const bool beyond = answer.status == 416 && have > 0;  // all of it may be here already
    if (beyond) return Restart();
    TUTTI_RETURN_IF_ERROR(StatusOfAnswer(answer));
    if (expected_ < 0 || Size() == expected_) return absl::OkStatus();
    return absl::DataLossError(
        absl::StrCat("it has ", Size(), " bytes, and not the ", expected_, " that were promised"));
  }

  // Takes the header of a 2xx answer, whose body has not arrived.
  absl::Status Begin(const ClientResponse& answer, int64_t have) {
    const std::string range = HeaderOf(answer, "content-range");
    const bool goes_on = answer.status == 206 && have > 0 &&
                         absl::StartsWith(range, absl::StrCat("bytes ", have, "-"));
    if (answer.status == 206 && !goes_on) return absl::DataLossError("it sent another part");
    expected_ = WholeSize(answer);
    if (!goes_on) {
      validator_ = ValidatorOf(answer);
      TUTTI_RETURN_IF_ERROR(base::ReplaceFile(validator_file_, validator_));
      if (::ftruncate(fd_.get(), 0) != 0) return base::ErrnoStatus(part_.string());
    }
    there_ = goes_on ? have : 0;
    if (::lseek(fd_.get(), there_, SEEK_SET) < 0) return base::ErrnoStatus(part_.string());
    return absl::OkStatus();
  }

  absl::Status Restart() {
    validator_.clear();
    return absl::UnavailableError("what was fetched earlier does not fit");
  }

  absl::Status Finish() {
    if (::fsync(fd_.get()) != 0 || ::rename(part_.c_str(), file_.c_str()) != 0) {
      return base::ErrnoStatus(file_.string());
    }
    ::unlink(validator_file_.c_str());
    return absl::OkStatus();
  }

  const std::string url_;
  const fs::path part_, validator_file_, file_;
  const FetchOptions options_;
  const std::atomic<bool>& cancelled_;
  const base::Deadline deadline_;
  base::UniqueFd fd_;
  std::string validator_;  // of what the .part holds
  int64_t expected_ = -1;
  int64_t there_ = 0;  // bytes
};

}  // namespace

absl::StatusOr<RemoteFile> Examine(const std::string& url, base::Deadline deadline,
                                   const std::atomic<bool>& cancelled) {
  TransferRequest request{.method = "HEAD", .url = url, .deadline = deadline};
  TUTTI_ASSIGN_OR_RETURN(ClientResponse answer, SendFollowing(request, cancelled));
  const bool no_head =
      answer.status == 400 || answer.status == 403 || answer.status == 405 || answer.status == 501;
  if (no_head) {  // signed addresses are often for GET alone
    request.method = "GET";
    request.headers = {{"Range", "bytes=0-0"}};
    std::optional<ClientResponse> header;
    request.on_header = [&](const ClientResponse& got) {
      header = got;
      return absl::AbortedError("that is enough");  // it may send the whole
    };
    const auto sent = SendFollowing(request, cancelled);
    if (!header && !sent.ok()) return sent.status();
    answer = header ? *header : *sent;
  }
  TUTTI_RETURN_IF_ERROR(StatusOfAnswer(answer));
  return RemoteFile{WholeSize(answer), ValidatorOf(answer)};
}

absl::Status FetchFile(const std::string& url, const fs::path& file, const FetchOptions& options,
                       const std::atomic<bool>& cancelled) {
  return Fetcher(url, file, options, cancelled).Run();
}

void RemovePart(const fs::path& file) {
  ::unlink(PartOf(file).c_str());
  ::unlink(ValidatorFileOf(file).c_str());
}

}  // namespace tutti::http
