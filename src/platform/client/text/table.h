// Table prints aligned columns on a terminal or a pipe. Until a line fits, the widest of the
// columns that may shrink are shortened, then columns that may be left out are, then all may be
// shortened.
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
    int leaves = 0;        // may be left out to fit the width: the highest first; 0: never
    int least = 8;         // columns that it keeps while others can be left out
  };
  struct Cell {
    std::string text;
    Tint tint = Tint::kNone;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // Adds a row of one cell a column. Control characters in the text are replaced.
  void Add(std::vector<Cell> row);

  // Leaves those columns out that may be left out and are empty in every row.
  void DropEmpty();

  // Returns the title line and rows, each ended by a newline. `width` 0: as wide as it gets.
  std::string Render(int width, bool colour) const;

 private:
  // Returns the width of each column; -1 for a column that is left out.
  std::vector<int> Widths(int width) const;
  void Shrink(int width, bool all, std::vector<int>& widths) const;
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace tutti::client
