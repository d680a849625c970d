#include "platform/service/diagnosis/unkept_note.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <tuple>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace tutti::service {
namespace {

constexpr size_t kMostNamed = 3;

std::string Size(uint64_t bytes) {
  if (bytes < 1000) return absl::StrCat(bytes, bytes == 1 ? " byte" : " bytes");
  static constexpr std::array<const char*, 4> kUnits = {"kB", "MB", "GB", "TB"};
  double value = static_cast<double>(bytes) / 1000;
  size_t unit = 0;
  for (; value >= 999.5 && unit + 1 < kUnits.size(); ++unit) value /= 1000;
  return absl::StrFormat("%.*f %s", value < 9.95 ? 1 : 0, value, kUnits[unit]);
}

// In one line, whatever the job has called it.
std::string Shown(std::string path) {
  std::replace_if(
      path.begin(), path.end(), [](unsigned char c) { return absl::ascii_iscntrl(c); }, '?');
  return path.empty() ? "the working folder" : absl::StrCat("./", path);
}

}  // namespace

void UnkeptNote::Add(const nlohmann::json& finalizing) {
  const auto kept = finalizing.find("kept_files");
  const auto more = finalizing.find("unkept_more");
  const auto unkept = finalizing.find("unkept");
  any_kept_ |= kept != finalizing.end() && kept->is_number_integer() && kept->get<int64_t>() > 0;
  more_ |= more != finalizing.end() && more->is_boolean() && more->get<bool>();
  if (const auto small = finalizing.find("unkept_small"); small != finalizing.end()) {
    AddPlace(*small, small_);
  }
  if (unkept == finalizing.end() || !unkept->is_array()) return;
  for (const nlohmann::json& one : *unkept) AddPlace(one, places_);
}

void UnkeptNote::AddPlace(const nlohmann::json& one, std::map<std::string, Place>& places) {
  const bool is_one = one.is_object() && one.contains("path") && one["path"].is_string() &&
                      one.contains("bytes") && one["bytes"].is_number_unsigned();
  if (!is_one) return;
  Place& place = places[one["path"].get<std::string>()];
  place.bytes += one["bytes"].get<uint64_t>();
  const auto result = one.find("result");
  place.has_results |= result != one.end() && result->is_boolean() && result->get<bool>();
}

std::string UnkeptNote::Text() const {
  std::vector<std::tuple<bool, uint64_t, std::string>> places;
  for (const auto& [path, place] : places_) {
    const bool worth_a_word = !any_kept_ || place.has_results || place.bytes >= kUnkeptWorthAWord;
    if (worth_a_word) places.emplace_back(place.has_results, place.bytes, path);
  }
  if (!any_kept_ && places.empty()) {
    for (const auto& [path, place] : small_) places.emplace_back(false, place.bytes, path);
  }
  if (places.empty()) return "";
  std::sort(places.rbegin(), places.rend());
  std::vector<std::string> parts;
  for (const auto& [has_results, bytes, path] : places) {
    if (parts.size() == kMostNamed) break;
    parts.push_back(absl::StrCat(Size(bytes), " in ", Shown(path)));
  }
  return absl::StrCat("not kept: ", more_ ? "at least " : "", absl::StrJoin(parts, ", "),
                      places.size() > parts.size() ? " and more" : "", "; write to ./outputs");
}

}  // namespace tutti::service
