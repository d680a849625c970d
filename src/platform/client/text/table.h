// A table for a terminal or a pipe: columns aligned, the widest ones that may shrink are shortened
// until a line fits.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "platform/client/text/style.h"

namespace tutti::client {

class Table {
 public:
  enum class Align { kLeft, kRight };
  struct Column {
    std::string title;
    Align align = Align::kLeft;
    bool shrinks = false;  // may lose its end to fit the width; never below 8 columns
  };
  struct Cell {
    std::string text;
    Tint tint = Tint::kNone;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // One cell a column. Control characters in the text are replaced.
  void Add(std::vector<Cell> row);

  // Title line and rows, each ended by a newline. `width` 0: as wide as it gets.
  std::string Render(int width, bool colour) const;

 private:
  std::vector<int> Widths(int width) const;
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace tutti::client
