#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "platform/client/commands/commands.h"
#include "platform/client/text/table.h"
#include "spec/site/site.h"

namespace tutti::client {
namespace fs = std::filesystem;

absl::StatusOr<ExitCode> DataMapAdd(Context& context, const DataOptions& options) {
  std::error_code error;
  const fs::path folder = fs::absolute(options.folder).lexically_normal();
  if (!fs::exists(folder, error)) {
    return absl::InvalidArgumentError(absl::StrCat(
        folder.string(), " does not exist: copy the data there first, then map its address"));
  }
  std::string text = folder.string();
  if (text.size() > 1 && text.back() == '/') text.pop_back();
  TUTTI_ASSIGN_OR_RETURN(spec::DataMap map, spec::ReadDataMap(context.home));
  TUTTI_RETURN_IF_ERROR(map.Add(options.prefix, text));
  TUTTI_RETURN_IF_ERROR(spec::WriteDataMap(context.home, map));
  context.out << options.prefix << " is served from " << text << "\n";
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> DataUnmap(Context& context, const DataOptions& options) {
  TUTTI_ASSIGN_OR_RETURN(spec::DataMap map, spec::ReadDataMap(context.home));
  TUTTI_RETURN_IF_ERROR(map.Remove(options.prefix));
  TUTTI_RETURN_IF_ERROR(spec::WriteDataMap(context.home, map));
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> DataList(Context& context, const DataOptions& options) {
  TUTTI_ASSIGN_OR_RETURN(const spec::Site site, spec::ReadSite(context.home));
  if (options.format != Format::kTable) {
    nlohmann::json list = nlohmann::json::array();
    for (const auto& [canonical, entry] : site.data.entries()) {
      list.push_back({{"prefix", entry.prefix}, {"folder", entry.folder}});
    }
    const nlohmann::json document = {{"data", list}, {"assets", spec::JsonOf(site.data_assets)}};
    TUTTI_RETURN_IF_ERROR(WriteStructured(context.out, document.dump(), options.format));
    return ExitCode::kOk;
  }
  Table table({{"ADDRESS"}, {"SERVED FROM"}});
  for (const auto& [canonical, entry] : site.data.entries()) {
    table.Add({{entry.prefix}, {entry.folder}});
  }
  for (const auto& [name, versions] : site.data_assets.assets()) {
    for (const spec::Asset& asset : versions) {
      table.Add({{absl::StrCat("azureml:", name, ":", asset.version)}, {asset.path}});
    }
  }
  context.out << table.Render(context.out_screen.width, context.out_screen.colour);
  return ExitCode::kOk;
}

}  // namespace tutti::client
