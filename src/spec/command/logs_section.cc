#include "spec/command/logs_section.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "spec/command/output_place.h"

namespace tutti::spec {
namespace {

constexpr char kLogsKey[] = "resources.properties.tutti.logs";

}  // namespace

void ReadLogs(const YamlNode::Entry& entry, const Datastores& datastores, JobSpec& spec,
              Diagnostics& diagnostics) {
  const auto refuse = [&](absl::string_view why) {
    diagnostics.Error(entry.line, absl::StrCat(kLogsKey, ": ", why));
  };
  if (entry.value->kind != YamlNode::Kind::kScalar) {
    return refuse("must be an address, as azureml://datastores/NAME/paths/PATH");
  }
  const std::string& written = entry.value->scalar;
  auto found = PlaceToWrite(written, datastores, "uri_folder", kOwnName);
  if (absl::IsNotFound(found.status())) {
    return refuse(absl::StrCat(found.status().message(),
                               "; make it known by its file: tutti datastore create --file FILE"));
  }
  if (!found.ok()) return refuse(found.status().message());
  if (!found->has_value()) {
    return refuse(absl::StrCat("\"", written.substr(0, 80), "\" is no place in a store: write ",
                               "azureml://datastores/NAME/paths/PATH"));
  }
  spec.logs_place = **std::move(found);
  spec.logs_location = {diagnostics.file_name(), entry.line};
}

}  // namespace tutti::spec
