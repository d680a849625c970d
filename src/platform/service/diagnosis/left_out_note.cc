#include "platform/service/diagnosis/left_out_note.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text/utf8.h"

namespace tutti::service {
namespace {

constexpr size_t kMostLeftOutNamed = 5;
constexpr size_t kMostLeftOut = 1000;  // of each list, as a gang may have thousands of nodes
constexpr size_t kLongestLeftOut = 1000;

}  // namespace

// Returns whether there was room for all.
bool LeftOutNote::AddAll(const nlohmann::json& event, const char* field,
                         std::set<std::string>& texts) {
  const auto found = event.find(field);
  if (found == event.end() || !found->is_array()) return true;
  for (const nlohmann::json& one : *found) {
    if (!one.is_string()) continue;
    if (texts.size() == kMostLeftOut) return false;
    texts.insert(base::BoundedUtf8(one.get<std::string>(), kLongestLeftOut));
  }
  return true;
}

void LeftOutNote::Add(const nlohmann::json& finalizing) {
  AddAll(finalizing, "left_out", left_out_);
  AddAll(finalizing, "empty_folders", empty_);
  const auto unnamed = finalizing.find("more_filled_folders");
  const bool all_named =
      unnamed == finalizing.end() || !unnamed->is_boolean() || !unnamed->get<bool>();
  knows_filled_ = AddAll(finalizing, "filled_folders", filled_) && all_named && knows_filled_;
  const auto more = finalizing.find("left_out_more");
  if (more == finalizing.end() || !more->is_number_unsigned()) return;
  more_ = std::max(more_, more->get<size_t>());  // nodes may leave out the same
}

std::string LeftOutNote::Text() const {
  std::set<std::string> all = left_out_;
  for (const std::string& folder : empty_) {
    if (!knows_filled_ || filled_.contains(folder)) continue;
    all.insert(absl::StrCat(folder, " (an empty folder)"));
  }
  if (all.empty()) return "";
  const size_t named = std::min(all.size(), kMostLeftOutNamed), more = all.size() - named + more_;
  return absl::StrCat(
      "left out of the results: ",
      absl::StrJoin(all.begin(), std::next(all.begin(), static_cast<std::ptrdiff_t>(named)), ", "),
      more > 0 ? absl::StrCat(" and ", more, " more") : "");
}

}  // namespace tutti::service
