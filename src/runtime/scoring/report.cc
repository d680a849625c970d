#include "runtime/scoring/report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace tutti::scoring {
namespace {

// The number of characters, not bytes, of UTF-8 text: file and class names are any language's.
size_t Width(const std::string& text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; });
}

std::string Padded(const std::string& text, size_t width) {
  return text + std::string(width - std::min(width, Width(text)), ' ');
}

std::string CsvField(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

}  // namespace

std::string FormatTable(std::span<const FileScore> scores) {
  size_t file_width = 4, class_width = 5;
  for (const FileScore& score : scores) {
    if (!score.status.ok()) continue;
    file_width = std::max(file_width, Width(score.file));
    for (const Prediction& p : score.predictions) {
      class_width = std::max(class_width, Width(p.label));
    }
  }
  std::string text;
  for (const FileScore& score : scores) {
    std::string file = score.file;
    for (const Prediction& p : score.predictions) {
      if (text.empty()) {
        text = absl::StrCat(Padded("FILE", file_width), "  ", Padded("CLASS", class_width),
                            "  PROBABILITY\n");
      }
      absl::StrAppend(&text, Padded(file, file_width), "  ", Padded(p.label, class_width),
                      absl::StrFormat("  %9.1f %%\n", 100 * p.probability));
      file.clear();
    }
  }
  return text;
}

std::string FormatJson(std::span<const FileScore> scores) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const FileScore& score : scores) {
    nlohmann::ordered_json one = {{"file", score.file}};
    if (!score.status.ok()) {
      one["error"] = std::string(score.status.message());
    } else {
      one["predictions"] = nlohmann::ordered_json::array();
      for (const Prediction& p : score.predictions) {
        one["predictions"].push_back({{"class", p.label}, {"probability", p.probability}});
      }
    }
    all.push_back(std::move(one));
  }
  // File names are bytes: what is not UTF-8 is shown as U+FFFD.
  return all.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string FormatCsv(std::span<const FileScore> scores) {
  std::string text = "file,rank,class,probability\n";
  for (const FileScore& score : scores) {
    int rank = 0;
    for (const Prediction& p : score.predictions) {
      absl::StrAppend(&text, CsvField(score.file), ",", ++rank, ",", CsvField(p.label), ",",
                      absl::StrFormat("%.6f\n", p.probability));
    }
  }
  return text;
}

}  // namespace tutti::scoring
