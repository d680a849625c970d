#include "runtime/data/source/split_names.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tutti::data {
namespace fs = std::filesystem;
namespace {

bool TakeFiveDigits(absl::string_view& name, uint32_t& value) {
  const absl::string_view digits = name.substr(name.size() - std::min<size_t>(5, name.size()));
  if (digits.size() != 5 || digits.find_first_not_of("0123456789") != absl::string_view::npos ||
      !absl::SimpleAtoi(digits, &value)) {
    return false;
  }
  name.remove_suffix(5);
  return true;
}

bool TakeSuffix(absl::string_view& name, absl::string_view suffix) {
  if (name.size() < suffix.size() || name.substr(name.size() - suffix.size()) != suffix) {
    return false;
  }
  name.remove_suffix(suffix.size());
  return true;
}

}  // namespace

std::vector<std::string> NamesOfSplit(absl::string_view split) {
  if (split == "test") return {"test", "val", "validation"};
  return {std::string(split)};
}

absl::StatusOr<std::vector<std::string>> NamesIn(const fs::path& folder) {
  const auto failed = [&](const std::error_code& error) {
    return base::ErrnoStatus(absl::StrCat("data folder ", folder.string()), error.value());
  };
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  if (error) return failed(error);
  std::vector<std::string> names;
  for (; entries != fs::directory_iterator(); entries.increment(error)) {
    names.push_back(entries->path().filename().string());
  }
  if (error) return failed(error);
  std::sort(names.begin(), names.end());
  return names;
}

bool ParseTfRecordName(absl::string_view name, TfRecordName& parsed) {
  TakeSuffix(name, ".gz");
  if (!TakeFiveDigits(name, parsed.count) || !TakeSuffix(name, "-of-") ||
      !TakeFiveDigits(name, parsed.number) || !TakeSuffix(name, "-") || name.empty()) {
    return false;
  }
  parsed.split = std::string(name);
  return true;
}

}  // namespace tutti::data
