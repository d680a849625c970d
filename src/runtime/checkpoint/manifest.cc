#include "runtime/checkpoint/manifest.h"

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"

namespace tutti::checkpoint {
namespace {

using nlohmann::json;

constexpr uint64_t kMaxManifestBytes = uint64_t{1} << 20;
constexpr int kVersion = 1;

json ParseJson(const std::string& text) {
  return json::parse(text, /*callback=*/nullptr, /*allow_exceptions=*/false);
}

absl::Status Damaged(const std::filesystem::path& file, absl::string_view what) {
  return absl::DataLossError(absl::StrCat(file.string(), " is damaged: ", what));
}

// Names of files in the folder itself, and of nothing else.
bool IsPlainName(const std::string& name) {
  return !name.empty() && name[0] != '.' && name.find('/') == std::string::npos;
}

}  // namespace

absl::StatusOr<Manifest> Manifest::Read(const std::filesystem::path& folder,
                                        absl::string_view format) {
  const std::filesystem::path path = folder / "manifest.json";
  TUTTI_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(path, kMaxManifestBytes));
  Manifest manifest;
  manifest.folder_ = folder;
  manifest.head_ = ParseJson(text);
  const json& head = manifest.head_;
  if (!head.is_object()) return Damaged(path, "it is not JSON");
  if (head.value("format", json()) != json(std::string(format))) {
    return absl::FailedPreconditionError(
        absl::StrCat(path.string(), " is not the manifest of a ", format));
  }
  if (head.value("version", json()) != json(kVersion)) {
    return absl::FailedPreconditionError(absl::StrCat(path.string(), " is of version ",
                                                      head.value("version", json()).dump(),
                                                      "; this tutti reads version ", kVersion));
  }
  const json files = head.value("files", json());
  if (!files.is_object()) return Damaged(path, "it names no files");
  for (const auto& [name, file] : files.items()) {
    const json bytes = file.is_object() ? file.value("bytes", json()) : json();
    const json sha256 = file.is_object() ? file.value("sha256", json()) : json();
    if (!IsPlainName(name) || !bytes.is_number_unsigned() || !sha256.is_string()) {
      return Damaged(path, absl::StrCat("its entry of \"", name, "\" is not valid"));
    }
    manifest.files_[name] = {bytes.get<uint64_t>(), sha256.get<std::string>()};
  }
  return manifest;
}

absl::StatusOr<std::string> Manifest::ReadFile(const std::string& name) const {
  const auto file = files_.find(name);
  if (file == files_.end()) {
    return Damaged(folder_ / "manifest.json", absl::StrCat("it does not name ", name));
  }
  const std::filesystem::path path = folder_ / name;
  std::error_code error;
  const uint64_t bytes = std::filesystem::file_size(path, error);
  if (error) return Damaged(path, error.message());
  if (bytes != file->second.bytes) {
    return Damaged(
        path, absl::StrCat("it has ", bytes, " bytes, its manifest says ", file->second.bytes));
  }
  TUTTI_ASSIGN_OR_RETURN(std::string content, base::ReadFile(path, bytes));
  if (base::Hex(base::Sha256Of(content)) != file->second.sha256) {
    return Damaged(path, "its SHA-256 is not the one in its manifest");
  }
  return content;
}

absl::StatusOr<json> Manifest::ReadJson(const std::string& name) const {
  TUTTI_ASSIGN_OR_RETURN(const std::string text, ReadFile(name));
  json parsed = ParseJson(text);
  if (parsed.is_discarded()) return Damaged(folder_ / name, "it is not JSON");
  return parsed;
}

}  // namespace tutti::checkpoint
