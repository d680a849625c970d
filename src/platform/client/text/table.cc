#include "platform/client/text/table.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "platform/client/text/columns.h"

namespace tutti::client {
namespace {

constexpr int kGap = 2;
constexpr int kLeast = 8;

std::string Aligned(absl::string_view text, int width, Table::Align align) {
  const std::string fitted = Shorten(text, width);
  return align == Table::Align::kRight ? PadLeft(fitted, width) : PadRight(fitted, width);
}

}  // namespace

void Table::Add(std::vector<Cell> row) {
  row.resize(columns_.size());
  for (Cell& cell : row) cell.text = Printable(cell.text);
  rows_.push_back(std::move(row));
}

std::vector<int> Table::Widths(int width) const {
  std::vector<int> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    int widest = Columns(columns_[i].title);
    for (const auto& row : rows_) widest = std::max(widest, Columns(row[i].text));
    widths.push_back(widest);
  }
  const int gaps = kGap * (static_cast<int>(widths.size()) - 1);
  int excess = width == 0 ? 0 : std::accumulate(widths.begin(), widths.end(), gaps) - width;
  for (; excess > 0; --excess) {  // always from the column that is widest now
    int widest = -1;
    for (size_t i = 0; i < widths.size(); ++i) {
      if (!columns_[i].shrinks || widths[i] <= kLeast) continue;
      if (widest < 0 || widths[i] > widths[widest]) widest = static_cast<int>(i);
    }
    if (widest < 0) break;
    --widths[widest];
  }
  return widths;
}

std::string Table::Render(int width, bool colour) const {
  const std::vector<int> widths = Widths(width);
  std::string out;
  const auto add_line = [&](const std::vector<Cell>& cells) {
    std::string line;
    for (size_t i = 0; i < cells.size(); ++i) {
      if (i > 0) line.append(kGap, ' ');
      const bool last = i + 1 == cells.size() && columns_[i].align == Align::kLeft;
      const std::string text = last ? Shorten(cells[i].text, widths[i])
                                    : Aligned(cells[i].text, widths[i], columns_[i].align);
      absl::StrAppend(&line, Styled(text, cells[i].tint, colour));
    }
    absl::StrAppend(&out, absl::StripTrailingAsciiWhitespace(line), "\n");
  };
  std::vector<Cell> titles;
  for (const Column& column : columns_) titles.push_back({column.title, Tint::kBold});
  add_line(titles);
  for (const auto& row : rows_) add_line(row);
  return out;
}

}  // namespace tutti::client
