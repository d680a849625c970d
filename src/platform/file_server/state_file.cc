#include "platform/file_server/state_file.h"

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"

namespace tutti::file_server {
namespace {

constexpr uint64_t kLargest = 1 << 20;

}  // namespace

absl::StatusOr<nlohmann::json> ReadStateFile(const std::filesystem::path& file) {
  TUTTI_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(file, kLargest));
  nlohmann::json document = nlohmann::json::parse(text, nullptr, false);
  if (document.is_object()) return document;
  return absl::DataLossError(absl::StrCat(file.native(), " is no JSON object"));
}

absl::Status WriteStateFile(const std::filesystem::path& file, const nlohmann::json& document) {
  const std::string text = document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
  return base::ReplaceFile(file, absl::StrCat(text, "\n"), 0600);
}

}  // namespace tutti::file_server
