#include "platform/launch/staging/fetch_input.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/deadline.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/process/waiting.h"
#include "base/status.h"
#include "platform/cache/node_cache.h"
#include "platform/http/client/fetch.h"
#include "platform/http/url.h"
#include "spec/data/remote_input.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kPatience = absl::Seconds(10);  // with a server's first answer
constexpr size_t kLongestName = 128;

// The file's name, as programs that look at its ending expect it.
std::string FileNameOf(absl::string_view url) {
  const absl::string_view path = url.substr(0, url.find_first_of("?#"));
  const auto name = http::PercentDecode(path.substr(path.rfind('/') + 1));
  const bool safe = name.ok() && !name->empty() && name->size() <= kLongestName && *name != "." &&
                    *name != ".." && name->find('/') == std::string::npos;
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

// On a full disk what is longest unused goes, one version after the other: the transfer goes on
// where it was.
absl::Status FetchWithRoom(const std::string& url, const fs::path& file,
                           const cache::NodeCache& node, const std::atomic<bool>& cancelled) {
  while (true) {
    const absl::Status fetched = http::FetchFile(url, file, {}, cancelled);
    if (!absl::IsResourceExhausted(fetched)) return fetched;
    TUTTI_ASSIGN_OR_RETURN(const auto gone, node.MakeRoom({.freed_bytes = 1}, cancelled));
    if (gone.empty()) return fetched;
  }
}

}  // namespace

absl::StatusOr<FetchedInput> FetchInput(const std::string& name, const spec::Input& input,
                                        const DataCache& cache,
                                        const std::atomic<bool>& cancelled) {
  const auto failed = [&](const absl::Status& status) {
    if (absl::IsCancelled(status)) return status;
    return absl::Status(status.code(), absl::StrCat("input \"", name,
                                                    "\": ", spec::RemoteInputFault(input, status)));
  };
  const auto remote = http::Examine(input.path, base::Deadline::After(kPatience), cancelled);
  if (!remote.ok()) return failed(remote.status());
  const cache::NodeCache node(cache.folder);
  const std::string key = KeyOfContent(input.path, *remote);
  const fs::path file = node.PathOf(key) / FileNameOf(input.path);
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(cache.folder));
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd lock, base::LockFile(node.LockOf(key), cancelled));
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(file.parent_path()));
  TUTTI_ASSIGN_OR_RETURN(base::UniqueFd pin, node.Pin(key));
  node.NoteOrigin(key, {.words = input.path.substr(0, input.path.find_first_of("?#"))});
  std::error_code error;
  // Without a validator the server cannot tell whether the content has changed, so a file that is
  // here already is fetched again.
  if (!fs::exists(file, error) || remote->validator.empty()) {
    const absl::Status fetched = FetchWithRoom(input.path, file, node, cancelled);
    if (!fetched.ok()) return failed(fetched);
  }
  return FetchedInput{file, std::move(pin)};
}

}  // namespace tutti::launch
