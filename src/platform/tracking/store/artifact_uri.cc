#include "platform/tracking/store/artifact_uri.h"

#include "absl/strings/str_cat.h"

namespace tutti::tracking {

std::string ArtifactUri(const Experiment& experiment, absl::string_view folder) {
  std::string location = experiment.artifact_location;
  while (!location.empty() && location.back() == '/') location.pop_back();
  return absl::StrCat(location, "/", folder, "/artifacts");
}

}  // namespace tutti::tracking
