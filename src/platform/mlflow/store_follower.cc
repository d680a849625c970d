#include "platform/mlflow/store_follower.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "platform/mlflow/store_walk.h"

namespace tutti::mlflow {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMostAtOnce = uint64_t{4} << 20;  // of one file, at one look

// Source is what is reported with a value.
struct Source {
  std::string name, run;
  bool nested = false;
};

// Writes NaN and the infinities as Python's json does; the library would write null for each.
std::string NumberText(double value) {
  if (std::isfinite(value)) return nlohmann::json(value).dump();
  return std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
}

std::string LineOf(const Source& source, const LoggedValue& value) {
  const auto text = [](const nlohmann::json& field) {
    return field.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  };
  return absl::StrCat(R"({"event":"metric","name":)", text(source.name), R"(,"value":)",
                      NumberText(value.value), R"(,"step":)", value.step, R"(,"time":)",
                      text(static_cast<double>(value.time) / 1000), R"(,"run":)", text(source.run),
                      source.nested ? R"(,"nested":true})" : "}", "\n");
}

// Returns what the file has from there on, up to the last line end.
std::string WholeLinesFrom(const fs::path& path, uint64_t offset) {
  std::ifstream file(path, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(offset));
  std::string bytes(kMostAtOnce, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  bytes.resize(bytes.rfind('\n') + 1);
  return bytes;
}

}  // namespace

void StoreFollower::SkipWhatIsThere() {
  do {
    handed_out_ = 0;
  } while (!NewLines().empty());
  handed_out_ = 0;
}

std::string StoreFollower::NewLines() {
  std::string lines;
  if (handed_out_ >= 2 * most_bytes_) return lines;
  Budget budget;
  for (const fs::path& run : RunsOf(store_, budget)) ReadRun(run, budget, lines);
  handed_out_ += lines.size();
  return lines;
}

void StoreFollower::ReadRun(const fs::path& run, Budget& budget, std::string& lines) {
  const bool only_newest = handed_out_ >= most_bytes_;
  Source source{.run = run.filename().string(), .nested = IsNested(run)};
  const fs::path folder = run / "metrics";
  ForEachMetricOf(run, budget, [&](const std::string& name, const fs::path& file) {
    if (absl::StartsWith(name, "system/")) return;
    std::error_code error;
    uint64_t& offset = offsets_[file];
    if (fs::file_size(file, error) <= offset || error) return;
    const std::string bytes = WholeLinesFrom(file, offset);
    offset += bytes.size();
    std::vector<absl::string_view> fresh = absl::StrSplit(bytes, '\n', absl::SkipEmpty());
    source.name = name;
    if (only_newest) fresh.erase(fresh.begin(), fresh.end() - (fresh.empty() ? 0 : 1));
    for (const absl::string_view line : fresh) {
      if (const auto value = ParseLoggedValue(line)) lines += LineOf(source, *value);
    }
  });
}

}  // namespace tutti::mlflow
