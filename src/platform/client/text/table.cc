#include "platform/client/text/table.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "platform/client/text/columns.h"

namespace tutti::client {
namespace {

constexpr int kGap = 2;
constexpr int kLeast = 8;

// Returns the width of a line whose columns have these widths.
int Total(const std::vector<int>& widths) {
  int total = -kGap;
  for (const int width : widths) {
    if (width >= 0) total += width + kGap;
  }
  return total;
}

std::string Aligned(absl::string_view text, int width, Table::Align align) {
  const std::string fitted = Shorten(text, width);
  return align == Table::Align::kRight ? PadLeft(fitted, width) : PadRight(fitted, width);
}

}  // namespace

void Table::Add(std::vector<Cell> row) {
  row.resize(columns_.size());
  for (Cell& cell : row) cell.text = absl::StrReplaceAll(Printable(cell.text), {{"\t", " "}});
  rows_.push_back(std::move(row));
}

void Table::DropEmpty() {
  for (size_t i = columns_.size(); i-- > 0;) {
    const bool has_text = std::any_of(rows_.begin(), rows_.end(),
                                      [i](const auto& row) { return !row[i].text.empty(); });
    if (has_text || columns_[i].leaves == 0) continue;
    const auto at = static_cast<ptrdiff_t>(i);
    columns_.erase(columns_.begin() + at);
    for (auto& row : rows_) row.erase(row.begin() + at);
  }
}

std::vector<int> Table::Widths(int width) const {
  std::vector<int> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    int widest = Columns(columns_[i].title);
    for (const auto& row : rows_) widest = std::max(widest, Columns(row[i].text));
    widths.push_back(widest);
  }
  if (width == 0) return widths;
  std::vector<int> whole = widths;
  Shrink(width, /*all=*/false, widths);
  while (Total(widths) > width) {
    size_t first = 0;
    for (size_t i = 0; i < widths.size(); ++i) {
      if (widths[i] >= 0 && columns_[i].leaves > columns_[first].leaves) first = i;
    }
    if (columns_[first].leaves == 0 || widths[first] < 0) break;
    whole[first] = -1;
    widths = whole;  // what was shortened may have room now
    Shrink(width, /*all=*/false, widths);
  }
  Shrink(width, /*all=*/true, widths);
  return widths;
}

// Always the column that is widest now.
void Table::Shrink(int width, bool all, std::vector<int>& widths) const {
  for (int excess = Total(widths) - width; excess > 0; --excess) {
    int widest = -1;
    for (size_t i = 0; i < widths.size(); ++i) {
      if (!(all || columns_[i].shrinks) || widths[i] <= (all ? kLeast : columns_[i].least))
        continue;
      if (widest < 0 || widths[i] > widths[widest]) widest = static_cast<int>(i);
    }
    if (widest < 0) return;
    --widths[widest];
  }
}

std::string Table::Render(int width, bool colour) const {
  const std::vector<int> widths = Widths(width);
  std::string out;
  const auto add_line = [&](const std::vector<Cell>& cells) {
    std::string line;
    for (size_t i = 0; i < cells.size(); ++i) {
      if (widths[i] < 0) continue;
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
