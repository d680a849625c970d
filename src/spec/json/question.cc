#include "spec/json/question.h"

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text/percent_encode.h"
#include "spec/json/json_fields.h"

namespace tutti::spec {
namespace {

using nlohmann::json;

constexpr double kLongestTime = 1e7;  // milliseconds

absl::Duration MillisecondsOf(const json& object, const char* name) {
  const auto at = object.find(name);
  if (at == object.end() || !at->is_number()) return absl::ZeroDuration();
  const auto number = at->get<double>();
  return number > 0 && number <= kLongestTime ? absl::Milliseconds(number) : absl::ZeroDuration();
}

std::string QuestionText(const json& object, const char* name) {
  const auto at = object.find(name);
  return at != object.end() && at->is_string() ? at->get<std::string>() : "";
}

std::vector<int> QuestionRanks(const json& object) {
  std::vector<int> ranks;
  const auto at = object.find("ranks");
  if (at == object.end() || !at->is_array()) return ranks;
  for (const json& rank : *at) {
    if (!rank.is_number_unsigned()) continue;
    const auto number = rank.get<uint64_t>();
    if (number <= std::numeric_limits<int>::max()) ranks.push_back(static_cast<int>(number));
  }
  return ranks;
}

// Nothing if it is no list of paths as a whole: who is not named there loses a file.
std::optional<std::vector<std::string>> PresentOf(const json& object) {
  const auto at = object.find("present");
  if (at == object.end() || !at->is_array()) return std::nullopt;
  std::vector<std::string> paths;
  for (const json& path : *at) {
    if (!path.is_string()) return std::nullopt;
    paths.push_back(path.get<std::string>());
  }
  return paths;
}

}  // namespace

std::string ToJson(const Questions& questions) {
  json list = json::array();
  for (const Question& question : questions.questions) {
    json& entry = list.emplace_back(json{{"id", question.id},
                                         {"kind", question.kind},
                                         {"time", absl::ToInt64Milliseconds(question.time)},
                                         {"ranks", question.ranks}});
    if (question.native) entry["native"] = true;
    if (!question.name.empty()) entry["name"] = question.name;
  }
  return Dump(
      {{"questions", std::move(list)}, {"pause", absl::ToInt64Milliseconds(questions.pause)}});
}

absl::StatusOr<Questions> QuestionsFromJson(absl::string_view text) {
  const json object = json::parse(text.begin(), text.end(), nullptr, false);
  const auto list = object.is_object() ? object.find("questions") : object.end();
  if (!object.is_object() || list == object.end() || !list->is_array()) {
    return absl::InvalidArgumentError("these are no questions");
  }
  Questions questions{.pause = MillisecondsOf(object, "pause")};
  for (const json& entry : *list) {
    if (!entry.is_object() || QuestionText(entry, "id").empty()) continue;
    const auto native = entry.find("native");
    questions.questions.push_back({.id = QuestionText(entry, "id"),
                                   .kind = QuestionText(entry, "kind"),
                                   .time = MillisecondsOf(entry, "time"),
                                   .ranks = QuestionRanks(entry),
                                   .native = native != entry.end() && *native == true,
                                   .name = QuestionText(entry, "name")});
  }
  return questions;
}

std::string ToJson(const SentResults& sent) {
  json object = {{"files", sent.files}, {"bytes", sent.bytes}};
  if (!sent.error.empty()) object["error"] = sent.error;
  if (sent.present) object["present"] = *sent.present;
  return Dump(object);
}

std::string PathAsSent(absl::string_view path) {
  return base::PercentEncode(path, /*keep_slash=*/true);
}

absl::StatusOr<SentResults> SentResultsFromJson(absl::string_view text) {
  const json object = json::parse(text.begin(), text.end(), nullptr, false);
  if (!object.is_object()) return absl::InvalidArgumentError("this says of no results");
  SentResults sent{.error = QuestionText(object, "error")};
  for (const auto& [name, number] : {std::pair("files", &sent.files), {"bytes", &sent.bytes}}) {
    const auto at = object.find(name);
    if (at != object.end() && at->is_number_unsigned()) *number = at->get<int64_t>();
  }
  sent.present = PresentOf(object);
  return sent;
}

}  // namespace tutti::spec
