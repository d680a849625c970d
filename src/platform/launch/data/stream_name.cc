#include "platform/launch/data/stream_name.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/deadline.h"
#include "base/hash.h"
#include "base/status.h"
#include "platform/storage/storage_json.h"

namespace tutti::launch {
namespace {

constexpr absl::Duration kToName = absl::Hours(1);
constexpr size_t kDigitsOfName = 32;

std::string Shortened(const base::Sha256Digest& digest) {
  return base::Hex(digest).substr(0, kDigitsOfName);
}

}  // namespace

absl::StatusOr<std::string> StreamNameOf(storage::StorageRequest request,
                                         const std::filesystem::path& list,
                                         const StorageFunction& run,
                                         const std::atomic<bool>& cancelled) {
  request.operation = storage::Operation::kBrowse;
  request.recursive = true;
  const std::string place = storage::ToJson(request);  // and the credentials
  request.list_file = list;
  TUTTI_ASSIGN_OR_RETURN(const storage::StorageResult listed,
                         run(request, base::Deadline::After(kToName), cancelled, {}, -1));
  return Shortened(base::Sha256Of(absl::StrCat(place, "\n", listed.digest)));
}

std::string StreamNameOfAll(const std::vector<std::string>& names) {
  return names.empty() ? "" : Shortened(base::Sha256Of(absl::StrJoin(names, "\n")));
}

}  // namespace tutti::launch
