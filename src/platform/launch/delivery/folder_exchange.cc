#include "platform/launch/delivery/folder_exchange.h"

#include <nlohmann/json.hpp>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

namespace tutti::launch {

namespace fs = std::filesystem;

namespace {

using nlohmann::json;

constexpr size_t kTextBlock = 4096, kRoomToGrow = 256;  // of numbers that become longer

json Parsed(absl::string_view text) {
  json document = json::parse(text.begin(), text.end(), nullptr, false);
  return document.is_object() ? document : json::object();
}

int64_t CountIn(const json& document, const char* name) {
  const auto at = document.find(name);
  return at != document.end() && at->is_number_unsigned() ? at->get<int64_t>() : 0;
}

StreamSizes StreamsIn(const json& document) {
  StreamSizes streams;
  for (const auto& [name, value] : document.items()) {
    if (absl::StartsWith(name, "rank-") && value.is_number_unsigned()) {
      streams[name] = value.get<uint64_t>();
    }
  }
  return streams;
}

bool Flag(const json& document, const char* name) {
  const auto at = document.find(name);
  return at != document.end() && *at == true;
}

std::optional<std::string> Outcome(const json& document, const char* name) {
  const auto at = document.find(name);
  if (at == document.end() || !at->is_string()) return std::nullopt;
  return at->get<std::string>();
}

std::string Text(const json& document) {
  std::string text = document.dump(-1, ' ', false, json::error_handler_t::replace);
  const size_t blocks = (text.size() + kRoomToGrow) / kTextBlock + 1;
  text.resize(blocks * kTextBlock - 1, ' ');
  return text + "\n";
}

}  // namespace

std::string ToText(const std::vector<Result>& files, const fs::path& folder) {
  std::error_code error;
  const fs::path root = fs::canonical(folder, error);
  std::string text;
  for (const Result& result : files) {
    const fs::path within = result.file.lexically_relative(root);
    const bool is_below = !error && !within.empty() && *within.begin() != "..";
    text += result.path + '\0' + (is_below ? within : result.file).native() + '\0';
  }
  return text;
}

std::vector<Result> ResultsFromText(absl::string_view text, const fs::path& folder) {
  const std::vector<std::string> parts = absl::StrSplit(text, '\0');
  std::vector<Result> files;
  for (size_t i = 0; i + 2 < parts.size(); i += 2) {
    files.push_back({folder / parts[i + 1], parts[i]});  // as it is if it is absolute
  }
  return files;
}

std::string ToJson(const Written& written) {
  json document = {{"events", written.events}, {"results", written.results}};
  if (written.beats > 0) document["beats"] = written.beats;
  if (written.results_lists > 0) document["results_lists"] = written.results_lists;
  for (const auto& [name, size] : written.streams) document[name] = size;
  return Text(document);
}

std::string ToJson(const Acknowledged& acknowledged) {
  json document = {
      {"events", acknowledged.events}, {"go", acknowledged.go}, {"gone", acknowledged.gone}};
  for (const auto& [name, size] : acknowledged.streams) document[name] = size;
  if (acknowledged.served) document["served"] = true;
  if (acknowledged.results_lists > 0) document["results_lists"] = acknowledged.results_lists;
  if (acknowledged.words > 0) document["words"] = acknowledged.words;
  if (acknowledged.code) document["code"] = *acknowledged.code;
  if (acknowledged.results) document["results"] = *acknowledged.results;
  return Text(document);
}

bool IsWhole(absl::string_view text) {
  return absl::EndsWith(text, "\n") &&
         json::parse(text.begin(), text.end(), nullptr, false).is_object();
}

Written WrittenFromJson(absl::string_view text) {
  const json document = Parsed(text);
  return {.events = CountIn(document, "events"),
          .streams = StreamsIn(document),
          .results = Flag(document, "results"),
          .results_lists = CountIn(document, "results_lists"),
          .beats = CountIn(document, "beats")};
}

Acknowledged AcknowledgedFromJson(absl::string_view text) {
  const json document = Parsed(text);
  return {.events = CountIn(document, "events"),
          .streams = StreamsIn(document),
          .go = Flag(document, "go"),
          .gone = Flag(document, "gone"),
          .served = Flag(document, "served"),
          .code = Outcome(document, "code"),
          .results = Outcome(document, "results"),
          .results_lists = CountIn(document, "results_lists"),
          .words = CountIn(document, "words")};
}

}  // namespace tutti::launch
