#include "spec/data/home_list.h"

#include <atomic>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/process/waiting.h"
#include "base/status.h"
#include "spec/json/json_fields.h"

namespace tutti::spec {
namespace {

using nlohmann::json;

constexpr uint64_t kLargestList = 64 << 20;

}  // namespace

absl::Status ReadListText(absl::string_view text, const std::string& file, const char* key,
                          const EachEntry& each) {
  TUTTI_ASSIGN_OR_RETURN(const json document, ParseJsonObject(text, file));
  JsonFields fields(document, "", Missing::kIsAnError);
  const json* const list = fields.Array(key);
  TUTTI_RETURN_IF_ERROR(base::Annotate(fields.Finish(), file));
  for (size_t i = 0; i < list->size(); ++i) {
    TUTTI_RETURN_IF_ERROR(base::Annotate(each((*list)[i], absl::StrCat(key, "[", i, "]")), file));
  }
  return absl::OkStatus();
}

absl::Status ReadList(const std::filesystem::path& file, const char* key, const EachEntry& each) {
  const auto text = base::ReadFile(file, kLargestList);
  if (absl::IsNotFound(text.status())) return absl::OkStatus();
  TUTTI_RETURN_IF_ERROR(text.status());
  return ReadListText(*text, file.string(), key, each);
}

absl::Status WriteList(const std::filesystem::path& file, const char* key, const json& entries) {
  const json document = {{key, entries}};
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(file.parent_path()));
  return base::WriteFileAtomic(file, absl::StrCat(document.dump(1), "\n"));
}

absl::StatusOr<base::UniqueFd> LockList(const std::filesystem::path& file) {
  static const std::atomic<bool> never = false;
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(file.parent_path()));
  return base::LockFile(std::filesystem::path(file).replace_extension(".lock"), never);
}

}  // namespace tutti::spec
