#include "runtime/scoring/report.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/ascii.h"
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

int WidthOf(const Column& column) { return std::max(static_cast<int>(column.name.size()), 7); }

// A probability as percent; another value, of pixels, with one digit.
std::string Cell(const Column& column, double value) {
  return column.is_percent ? absl::StrFormat("%.1f %%", 100 * value)
                           : absl::StrFormat("%.1f", value);
}

}  // namespace

std::string FormatTable(const Head& head, std::span<const FileScore> scores) {
  const std::vector<Column> columns = head.columns();
  size_t file_width = 4, class_width = 5;
  for (const FileScore& score : scores) {
    if (score.rows.empty()) continue;
    file_width = std::max(file_width, Width(score.file));
    for (const Row& row : score.rows) class_width = std::max(class_width, Width(row.label));
  }
  std::string text;
  for (const FileScore& score : scores) {
    std::string file = score.file;
    for (const Row& row : score.rows) {
      if (text.empty()) {
        text = absl::StrCat(Padded("FILE", file_width), "  ", Padded("CLASS", class_width));
        for (const Column& column : columns) {
          absl::StrAppendFormat(&text, "  %*s", WidthOf(column),
                                absl::AsciiStrToUpper(column.name));
        }
        text += "\n";
      }
      absl::StrAppend(&text, Padded(file, file_width), "  ", Padded(row.label, class_width));
      for (size_t i = 0; i < columns.size(); ++i) {
        absl::StrAppendFormat(&text, "  %*s", WidthOf(columns[i]), Cell(columns[i], row.values[i]));
      }
      text += "\n";
      file.clear();
    }
  }
  return text;
}

nlohmann::ordered_json JsonOf(const Head& head, std::span<const Row> rows) {
  const std::vector<Column> columns = head.columns();
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const Row& row : rows) {
    nlohmann::ordered_json one = {{"class", row.label}};
    for (size_t i = 0; i < columns.size(); ++i) {
      one[std::string(columns[i].name)] = row.values[i];
    }
    all.push_back(std::move(one));
  }
  return all;
}

std::string MaskFile(const std::string& masks, const std::string& file) {
  std::string name = std::filesystem::path(file).replace_extension(".png").string();
  std::replace(name.begin(), name.end(), '/', '_');
  return (std::filesystem::path(masks) / name).string();
}

std::string FormatJson(const Head& head, std::span<const FileScore> scores,
                       const std::string& masks) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const FileScore& score : scores) {
    nlohmann::ordered_json one = {{"file", score.file}};
    if (!score.status.ok()) {
      one["error"] = std::string(score.status.message());
    } else {
      if (!masks.empty() && !score.mask.empty()) one["mask"] = MaskFile(masks, score.file);
      one[std::string(head.rows_name())] = JsonOf(head, score.rows);
    }
    all.push_back(std::move(one));
  }
  // File names are bytes: what is not UTF-8 is shown as U+FFFD.
  return all.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string FormatCsv(const Head& head, std::span<const FileScore> scores) {
  const std::vector<Column> columns = head.columns();
  std::string text = "file,rank,class";
  for (const Column& column : columns) absl::StrAppend(&text, ",", column.name);
  text += "\n";
  for (const FileScore& score : scores) {
    int rank = 0;
    for (const Row& row : score.rows) {
      absl::StrAppend(&text, CsvField(score.file), ",", ++rank, ",", CsvField(row.label));
      for (const double value : row.values) absl::StrAppendFormat(&text, ",%.6f", value);
      text += "\n";
    }
  }
  return text;
}

}  // namespace tutti::scoring
