#include "platform/launch/data/fetch_input.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/deadline.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/process/waiting.h"
#include "base/status.h"
#include "base/text/binary_size.h"
#include "base/threads/retry_after.h"
#include "http/client/fetch.h"
#include "http/url.h"
#include "platform/cache/node_cache.h"
#include "spec/data/remote_input.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kPatienceWithServer = absl::Seconds(10);  // with its first answer
constexpr size_t kLongestFileName = 128;

// The file's name, as programs that look at its ending expect it.
std::string FileNameOf(absl::string_view url) {
  const absl::string_view path = url.substr(0, url.find_first_of("?#"));
  const auto name = http::PercentDecode(path.substr(path.rfind('/') + 1));
  const bool safe = name.ok() && !name->empty() && name->size() <= kLongestFileName &&
                    *name != "." && *name != ".." && name->find('/') == std::string::npos;
  return safe ? *name : "data";
}

// Without the query of a signed address, which differs between signatures of one and the same file,
// where the server tells contents apart by other means. Other queries may name other files.
std::string KeyOfContent(const std::string& url, const http::RemoteFile& remote) {
  const bool is_signed = absl::StrContains(url, "sig=") ||
                         absl::StrContains(url, "X-Amz-Signature=") ||
                         absl::StrContains(url, "X-Goog-Signature=");
  const std::string address =
      is_signed && !remote.validator.empty() ? url.substr(0, url.find('?')) : url;
  const std::string text = absl::StrCat(address, "\n", remote.validator, "\n", remote.bytes);
  return base::Hex(base::Sha256Of(text)).substr(0, 24);
}

// Returns the bytes that the transfer still needs; of a file whose server does not say its size, as
// many as have come.
uint64_t BytesToCome(const fs::path& file, const http::RemoteFile& remote) {
  std::error_code error;
  const uintmax_t size = fs::file_size(file.native() + http::kPartEnding, error);
  const uint64_t come = error ? 0 : size;
  if (remote.bytes < 0) return come;
  const auto all = static_cast<uint64_t>(remote.bytes);
  return all - std::min(all, come);
}

absl::Status TooLittleRoom(uint64_t needed, uint64_t free, const fs::path& folder) {
  return absl::ResourceExhaustedError(absl::StrCat("it needs ", base::BinarySize(needed), " in ",
                                                   folder.native(), ", where ",
                                                   base::BinarySize(free), " are free"));
}

// Where the disk has too little room what is longest unused goes, as much as is lacking. The
// transfer goes on where it was. Where that is not enough what has come goes too: it would hold the
// disk full for all others until there is room for the rest.
absl::Status FetchWithRoom(const std::string& url, const http::RemoteFile& remote,
                           const fs::path& file, const cache::NodeCache& node,
                           const std::atomic<bool>& cancelled, const http::FetchOptions& options) {
  const uint64_t needed = BytesToCome(file, remote);
  const uint64_t free = base::FreeBytes(node.folder()).value_or(needed);
  absl::Status fetched;
  if (remote.bytes >= 0 && free < needed) fetched = TooLittleRoom(needed, free, node.folder());
  uint64_t lacking = needed - std::min(free, needed);
  while (true) {
    if (fetched.ok()) fetched = http::FetchFile(url, file, options, cancelled);
    if (!absl::IsResourceExhausted(fetched)) return fetched;
    if (lacking == 0) lacking = std::max(BytesToCome(file, remote), cache::kRoomForNotes);
    TUTTI_ASSIGN_OR_RETURN(const auto gone, node.MakeRoom({.freed_bytes = lacking}, cancelled));
    if (gone.empty()) {
      http::RemovePart(file);
      return fetched;
    }
    lacking = 0;
    fetched = absl::OkStatus();
  }
}

}  // namespace

absl::StatusOr<FetchedInput> FetchInput(const std::string& name, const spec::Input& input,
                                        const DataCache& cache, const std::atomic<bool>& cancelled,
                                        const std::function<void(int64_t bytes)>& progress) {
  const auto failed = [&](const absl::Status& status) {
    if (absl::IsCancelled(status)) return status;
    const absl::Status fault(
        status.code(),
        absl::StrCat("input \"", name, "\": ", spec::RemoteInputFault(input, status)));
    return base::WithRetryAfter(fault, base::RetryAfterOf(status));
  };
  const auto remote =
      http::Examine(input.path, base::Deadline::After(kPatienceWithServer), cancelled);
  if (!remote.ok()) return failed(remote.status());
  const cache::NodeCache node(cache.folder);
  const std::string key = KeyOfContent(input.path, *remote);
  const fs::path file = node.PathOf(key) / FileNameOf(input.path);
  TUTTI_ASSIGN_OR_RETURN(cache::HeldData held, node.Take(key, cancelled));
  node.NoteOrigin(key, {.words = input.path.substr(0, input.path.find_first_of("?#"))});
  std::error_code error;
  // Without a validator the server cannot tell whether the content has changed, so a file that is
  // here already is fetched again.
  if (!fs::exists(file, error) || remote->validator.empty()) {
    const absl::Status fetched =
        FetchWithRoom(input.path, *remote, file, node, cancelled, {.progress = progress});
    if (!fetched.ok()) return failed(fetched);
  }
  return FetchedInput{file, std::move(held.pin)};
}

}  // namespace tutti::launch
