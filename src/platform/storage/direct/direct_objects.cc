#include "platform/storage/direct/direct_objects.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/status.h"
#include "base/threads/retry_after.h"
#include "http/client/retry_after_header.h"
#include "platform/storage/objects/content_hash.h"
#include "platform/storage/objects/error_text.h"
#include "platform/storage/objects/object_headers.h"

namespace tutti::storage {
namespace {

// No store keeps more in one object; sums of such sizes are far from an overflow.
constexpr int64_t kMostBytes = int64_t{1} << 48;

std::string HeaderOf(const http::ClientResponse& answer, const char* name) {
  const auto found = answer.headers.find(name);
  return found == answer.headers.end() ? "" : found->second;
}

// HTTP's form of a time as Arrow has it.
std::string InternetTime(const std::string& text) {
  absl::Time time;
  std::string error;
  if (!absl::ParseTime("%a, %d %b %Y %H:%M:%S GMT", text, &time, &error)) return "";
  return absl::FormatTime(absl::RFC3339_full, time, absl::UTCTimeZone());
}

// Returns the MD5 in base64 as Arrow has it.
std::string HexOf(const std::string& base64) {
  std::string bytes;
  return absl::Base64Unescape(base64, &bytes) ? absl::BytesToHexString(bytes) : "";
}

// Returns the content length; nothing if it is no number, or one that no object can have.
std::optional<int64_t> LengthIn(const http::ClientResponse& answer) {
  int64_t bytes = -1;
  const bool is_length = absl::SimpleAtoi(HeaderOf(answer, "content-length"), &bytes);
  if (!is_length || bytes < 0 || bytes > kMostBytes) return std::nullopt;
  return bytes;
}

// A gateway that encodes the content anew calls the tag weak.
std::string StrongTag(absl::string_view tag) {
  absl::ConsumePrefix(&tag, "W/");
  return std::string(tag);
}

struct ContentRange {
  int64_t first = 0, last = 0;
  int64_t total = -1;  // -1: the store does not say
};

// "bytes 0-7/10", "bytes 0-7/*".
std::optional<ContentRange> RangeIn(const http::ClientResponse& answer) {
  const std::string text = HeaderOf(answer, "content-range");
  absl::string_view rest = text;
  if (!absl::ConsumePrefix(&rest, "bytes ")) return std::nullopt;
  const std::pair<absl::string_view, absl::string_view> halves =
      absl::StrSplit(rest, absl::MaxSplits('/', 1));
  const std::pair<absl::string_view, absl::string_view> ends =
      absl::StrSplit(halves.first, absl::MaxSplits('-', 1));
  ContentRange range;
  if (!absl::SimpleAtoi(ends.first, &range.first) || !absl::SimpleAtoi(ends.second, &range.last)) {
    return std::nullopt;
  }
  if (halves.second != "*" && !absl::SimpleAtoi(halves.second, &range.total)) return std::nullopt;
  return range;
}

// Returns whether the store is busy. The server errors 501 and 505 say that it does not support the
// request.
bool IsBusy(int status) {
  return status == 408 || status == 429 || (status >= 500 && status != 501 && status != 505);
}

absl::Status Busy(const http::ClientResponse& answer) {
  return base::WithRetryAfter(StatusFromText(absl::StrCat("HTTP status ", answer.status)),
                              http::RetryAfterIn(answer, absl::Now()));
}

// Returns the error in the words that are used for all stores.
absl::Status OfNetwork(const absl::Status& status) {
  return base::WithRetryAfter(StatusFromText(absl::StrCat("Could not connect: ", status.message())),
                              base::RetryAfterOf(status));
}

absl::Status Changed() {
  return absl::AbortedError("it has changed at the store while it was read");
}

// WholeReader reads content that arrived with the answer which described the object.
class WholeReader final : public ObjectReader {
 public:
  WholeReader(ObjectHead head, std::string content)
      : ObjectReader(std::move(head.object), head.md5_is_certain, std::move(head.checksum)),
        content_(std::move(content)) {}

  absl::Status Read(int64_t offset, std::span<char> out) override {
    const auto size = static_cast<int64_t>(content_.size());
    if (offset > size || static_cast<int64_t>(out.size()) > size - offset) {
      return absl::DataLossError("the store has sent fewer bytes than were asked for");
    }
    std::copy_n(content_.begin() + offset, out.size(), out.begin());
    return absl::OkStatus();
  }
  std::optional<absl::string_view> content() const override { return content_; }
  bool is_of_one_version() const override { return true; }

 private:
  const std::string content_;
};

// Each answer says which version it is of, and must be of the one that was opened: a condition of
// the request (If-Match) would be none of a weak ETag, and not all servers heed it.
class DirectReader final : public ObjectReader {
 public:
  DirectReader(ObjectHead head, StoreRequests& requests, OpenByLibrary by_library)
      : ObjectReader(std::move(head.object), head.md5_is_certain, std::move(head.checksum)),
        version_(StrongTag(head.version)),
        requests_(requests),
        by_library_(std::move(by_library)),
        is_of_one_version_(!version_.empty()) {}

  absl::Status Read(int64_t offset, std::span<char> out) override {
    size_t got = 0;
    return Stream(offset, static_cast<int64_t>(out.size()), [&](absl::string_view piece) {
      std::memcpy(out.data() + got, piece.data(), piece.size());
      got += piece.size();
      return absl::OkStatus();
    });
  }

  bool streams() const override { return true; }
  bool is_of_one_version() const override { return is_of_one_version_; }

  absl::Status Stream(int64_t offset, int64_t bytes, const PieceTaker& take) override {
    if (bytes == 0) return absl::OkStatus();
    int64_t got = 0;
    const bool is_whole = offset == 0 && bytes == object().bytes;
    ObjectRequest request{.path = object().path};
    if (!is_whole) request.range = {offset, bytes};
    request.on_header = [&](const http::ClientResponse& header) {
      return CheckHeader(header, offset, bytes, is_whole);
    };
    request.on_chunk = [&](absl::string_view piece) -> absl::Status {
      if (static_cast<int64_t>(piece.size()) > bytes - got) {
        return absl::UnavailableError("the store has sent more bytes than it was asked for");
      }
      got += static_cast<int64_t>(piece.size());
      return take(piece);
    };
    TUTTI_ASSIGN_OR_RETURN(const http::ClientResponse answer, Send(request));
    const int status = answer.status;
    if (status == 404) return absl::NotFoundError("nothing is at this path");
    if (status == 412 || status == 416) return Changed();
    if (IsBusy(status)) return Busy(answer);
    if (status >= 300) return StreamByLibrary(offset, bytes, take);
    if (got == bytes) return absl::OkStatus();
    return absl::UnavailableError(
        absl::StrCat("the store has sent ", got, " of ", bytes, " bytes"));
  }

 private:
  // Errors of what a callback of the request does keep their words.
  absl::StatusOr<http::ClientResponse> Send(ObjectRequest& request) {
    absl::Status refused;
    const auto noting = [&refused](auto callback) {
      return [&refused, callback = std::move(callback)](const auto& what) {
        return refused = callback(what);
      };
    };
    request.on_header = noting(std::move(request.on_header));
    request.on_chunk = noting(std::move(request.on_chunk));
    auto answer = requests_.Send(request);
    if (!refused.ok()) return refused;
    if (absl::IsUnavailable(answer.status())) return OfNetwork(answer.status());
    TUTTI_RETURN_IF_ERROR(answer.status());
    return *std::move(answer);
  }

  absl::Status CheckHeader(const http::ClientResponse& header, int64_t offset, int64_t bytes,
                           bool is_whole) {
    const std::string version = StrongTag(HeaderOf(header, "etag"));
    if (version.empty()) is_of_one_version_ = false;
    if (!version.empty() && !version_.empty() && version != version_) {
      TUTTI_RETURN_IF_ERROR(TakeOtherTag());
    }
    if (is_whole) {
      const std::optional<int64_t> length = LengthIn(header);
      return length && *length != object().bytes ? Changed() : absl::OkStatus();
    }
    if (header.status != 206) {
      return absl::FailedPreconditionError(
          "the store sends all of an object where a part is asked for, so that large ones cannot "
          "be read");
    }
    if (!header.headers.contains("content-range")) return CheckUnsaidPart(header, bytes);
    const std::optional<ContentRange> range = RangeIn(header);
    if (!range || range->first != offset || range->last >= offset + bytes) {
      return absl::UnavailableError("the store has sent another part than was asked for");
    }
    const bool is_of_it = range->total < 0 || range->total == object().bytes;
    return is_of_it ? absl::OkStatus() : Changed();
  }

  // Some servers do not say which part they send. By its length it may be the one; where there is a
  // hash of the whole, which tells, that does. Several parts in one say so within.
  absl::Status CheckUnsaidPart(const http::ClientResponse& header, int64_t bytes) const {
    const bool has_hash = md5_is_certain() || checksum().kind != ChecksumKind::kNone;
    const bool is_of_parts =
        absl::StartsWithIgnoreCase(HeaderOf(header, "content-type"), "multipart/");
    if (!has_hash || is_of_parts) {
      return absl::FailedPreconditionError(
          "the store does not say which part of an object it sends (Content-Range), so that large "
          "ones cannot be read");
    }
    if (LengthIn(header) == bytes) return absl::OkStatus();
    return absl::UnavailableError("the store has sent another part than was asked for");
  }

  // Between HEAD and GET a gateway may change the tag, as for how it has encoded the content. Where
  // HEAD still tells the same, the answers do not say which version they are of.
  absl::Status TakeOtherTag() {
    if (!is_of_one_version_) return absl::OkStatus();
    const auto now = requests_.Send({.method = "HEAD", .path = object().path});
    if (!now.ok()) return OfNetwork(now.status());
    if (IsBusy(now->status)) return Busy(*now);
    if (now->status != 200) return Changed();
    if (StrongTag(HeaderOf(*now, "etag")) != version_) return Changed();
    is_of_one_version_ = false;
    return absl::OkStatus();
  }

  absl::Status StreamByLibrary(int64_t offset, int64_t bytes, const PieceTaker& take) {
    is_of_one_version_ = false;
    TUTTI_ASSIGN_OR_RETURN(const auto reader, by_library_(object()));
    std::vector<char> buffer(static_cast<size_t>(bytes));
    TUTTI_RETURN_IF_ERROR(reader->Read(offset, buffer));
    return take({buffer.data(), buffer.size()});
  }

  const std::string version_;  // its tag
  StoreRequests& requests_;
  const OpenByLibrary by_library_;
  std::atomic<bool> is_of_one_version_;
};

}  // namespace

// Before the first good answer a failure may be of this way to ask, as where a proxy lets the
// library alone through.
absl::Status DirectObjects::NoteFailure(const absl::Status& status) {
  if (has_answered_ && absl::IsUnavailable(status)) return OfNetwork(status);
  ++refusals_;
  return absl::OkStatus();
}

// That an object is not there says nothing against the way to ask. Nor is a store that is busy
// asked at once by other means; but before the first good answer it may be who stands between that
// says so, and only to this way.
absl::Status DirectObjects::NoteAnswer(const http::ClientResponse& answer) {
  const int status = answer.status;
  if (IsBusy(status)) {
    if (!has_answered_) ++refusals_;
    return Busy(answer);
  }
  if (status < 200 || (status >= 300 && status != 404)) ++refusals_;
  return absl::OkStatus();
}

std::optional<ObjectHead> DirectObjects::HeadIn(const std::string& path,
                                                const http::ClientResponse& answer) {
  const auto header = [&](const char* name) { return HeaderOf(answer, name); };
  const std::optional<int64_t> length = LengthIn(answer);
  // A folder of an account with a hierarchical namespace is a blob, too.
  if (!length || header("x-ms-meta-hdi_isfolder") == "true") {
    ++refusals_;
    return std::nullopt;
  }
  has_answered_ = true;
  ObjectHead head{.object = {path, *length}, .version = header("etag")};
  // The generation is what Arrow reports through Google's other interface; the ETag of a HEAD
  // differs.
  const bool by_generation = requests_->place().kind == spec::StoreKind::kGcs;
  const bool is_azure = requests_->words() == StoreWords::kAzure;
  TakeHeaders(
      [&](absl::string_view name) {
        if (name == "ETag" && !by_generation) return header("etag");
        if (name == "generation" && by_generation) return header("x-goog-generation");
        if (name == "Content-Hash" && is_azure) return HexOf(header("content-md5"));
        return name == "Last-Modified" ? InternetTime(header("last-modified")) : std::string();
      },
      head.object);
  if (is_azure) {
    head.md5_is_certain = true;
  } else if (requests_->words() == StoreWords::kS3) {
    head.checksum = ChecksumIn(header);
  } else {
    const std::string encoding = header("x-goog-stored-content-encoding");
    head.is_sent_as_kept = encoding.empty() || encoding == "identity";
    GoogleHashes hashes = GoogleHashesIn(header);
    head.checksum = std::move(hashes.checksum);
    head.md5_is_certain = !hashes.md5.empty();
    if (head.md5_is_certain) head.object.md5 = std::move(hashes.md5);
  }
  return head;
}

absl::StatusOr<std::optional<ObjectHead>> DirectObjects::Ask(const std::string& path) {
  if (IsGivenUp()) return std::nullopt;
  const auto answer = requests_->Send({.method = "HEAD", .path = path});
  if (absl::IsInvalidArgument(answer.status())) return std::nullopt;
  if (!answer.ok()) {
    TUTTI_RETURN_IF_ERROR(NoteFailure(answer.status()));
    return std::nullopt;
  }
  TUTTI_RETURN_IF_ERROR(NoteAnswer(*answer));
  if (!answer->ok()) return std::nullopt;
  return HeadIn(path, *answer);
}

std::unique_ptr<ObjectReader> DirectObjects::Read(ObjectHead head, OpenByLibrary by_library) {
  return std::make_unique<DirectReader>(std::move(head), *requests_, std::move(by_library));
}

absl::StatusOr<bool> DirectObjects::PutWhole(const std::string& path, absl::string_view content) {
  if (IsGivenUp()) return false;
  ContentHash hash({.md5 = true});
  hash.Update(content);
  const auto answer =
      requests_->Send({.method = "PUT",
                       .path = path,
                       .body = content,
                       .body_md5 = absl::Base64Escape(absl::HexStringToBytes(hash.Finish().md5))});
  if (absl::IsInvalidArgument(answer.status())) return false;
  if (!answer.ok()) {
    TUTTI_RETURN_IF_ERROR(NoteFailure(answer.status()));
    return false;
  }
  TUTTI_RETURN_IF_ERROR(NoteAnswer(*answer));
  return answer->ok();
}

absl::StatusOr<std::unique_ptr<ObjectReader>> DirectObjects::ReadWhole(const std::string& path,
                                                                       int64_t most) {
  if (IsGivenUp()) return nullptr;
  std::optional<ObjectHead> head;
  std::string content;
  bool is_refused = false;  // here
  const auto refuse = [&] {
    is_refused = true;
    return absl::AbortedError("not to be read so");
  };
  const auto answer = requests_->Send(
      {.path = path,
       .on_header = [&](const http::ClientResponse& header) -> absl::Status {
         if (header.status != 200) return refuse();
         head = HeadIn(path, header);
         if (!head || !head->is_sent_as_kept || head->object.bytes > most) return refuse();
         content.reserve(static_cast<size_t>(head->object.bytes));
         return absl::OkStatus();
       },
       .on_chunk = [&](absl::string_view piece) -> absl::Status {
         if (static_cast<int64_t>(content.size() + piece.size()) > head->object.bytes) {
           return refuse();
         }
         absl::StrAppend(&content, piece);
         return absl::OkStatus();
       }});
  if (is_refused || absl::IsInvalidArgument(answer.status())) return nullptr;
  if (!answer.ok()) {
    TUTTI_RETURN_IF_ERROR(NoteFailure(answer.status()));
    return nullptr;
  }
  TUTTI_RETURN_IF_ERROR(NoteAnswer(*answer));
  if (!answer->ok() || !head) return nullptr;
  if (static_cast<int64_t>(content.size()) != head->object.bytes) return nullptr;
  return std::make_unique<WholeReader>(*std::move(head), std::move(content));
}

}  // namespace tutti::storage
