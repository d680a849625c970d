// Diagnostics collects the errors and warnings of a file as it is read, so that a user corrects all
// of them at once. Inside the room spec only. Not thread-safe.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "spec/types/job.h"

namespace tutti::spec {

class Diagnostics {
 public:
  explicit Diagnostics(absl::string_view file_name) : file_name_(file_name) {}

  const std::string& file_name() const { return file_name_; }

  void Error(int line, absl::string_view message);
  // Adds an error whose cause is in another file that this one names.
  void Error(const SourceLocation& location, absl::string_view message);
  void Warning(int line, absl::string_view message);
  // Adds a warning, as Error does.
  void Warning(const SourceLocation& location, absl::string_view message);
  // Adds what is wrong with another file, which `line` of this one names; told under the other's
  // name.
  void Add(int line, const Diagnostics& other);

  // Returns "FILE:LINE: message" of each, by line and once; the first 20 and how many more there
  // are.
  absl::Status status(absl::StatusCode code = absl::StatusCode::kInvalidArgument) const;
  size_t error_count() const { return errors_.size(); }
  // Returns the warnings, each text once for all lines of a file to which it applies: "… (also at
  // lines 7, 9)".
  std::vector<std::string> warnings() const;

 private:
  struct Message {
    int line;  // where it is told, among the others
    SourceLocation location;
    std::string text;
  };
  using Messages = std::vector<Message>;
  // Sorts the messages by line, and keeps each once.
  static Messages Sorted(Messages messages);
  static void Append(int line, const Messages& from, Messages& to);

  const std::string file_name_;
  Messages errors_;
  Messages warnings_;
};

// Whether an error has been told since this was made: what was read meanwhile is then not certain.
class ErrorWatch {
 public:
  explicit ErrorWatch(const Diagnostics& diagnostics)
      : diagnostics_(diagnostics), before_(diagnostics.error_count()) {}

  bool any() const { return diagnostics_.error_count() > before_; }

 private:
  const Diagnostics& diagnostics_;
  const size_t before_;
};

}  // namespace tutti::spec
