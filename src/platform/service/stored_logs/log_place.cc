#include "platform/service/stored_logs/log_place.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "platform/storage/storage_request.h"

namespace tutti::service {

spec::Output LogsOutput(const spec::DataPlace& logs_place, absl::string_view id) {
  spec::Output output;
  spec::DataPlace place = spec::PlaceOfJob(logs_place, id);
  absl::StrAppend(&place.path, place.path.empty() ? "" : "/", id);
  output.place = std::move(place);
  return output;
}

std::string ShownLogsPlace(const spec::DataPlace& logs_place, absl::string_view id) {
  const spec::DataPlace place = *LogsOutput(logs_place, id).place;
  if (place.datastore.empty()) return storage::Described(place);
  absl::string_view path = place.path;
  if (!place.root.empty()) path = absl::StripPrefix(absl::StripPrefix(path, place.root), "/");
  return absl::StrCat("azureml://datastores/", place.datastore, "/paths/", path);
}

}  // namespace tutti::service
