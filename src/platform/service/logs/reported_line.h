// ReportedLine reads a line of a metrics file (docs/formats/metrics.md): a JSON object, in which
// NaN, Infinity and -Infinity are numbers too, as Python's json module writes them. It allocates
// nothing for a plain line: a general parser takes longer for a million lines than a chart may
// (docs/decisions/105-metrics-of-running-jobs.md). Safe on any bytes. Not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tutti::service {

class ReportedLine {
 public:
  // What is reported of the metric `prefix` + `name`; one that is null is NaN.
  struct Value {
    absl::string_view prefix, name;
    double value = 0;
  };

  // Reads a line without its newline. False where it is no such object, or its text no UTF-8; then
  // it has no values. The texts that the other functions return are valid until the next call, and
  // as long as `line` is.
  bool Read(absl::string_view line);

  // The metrics that it reports, in its order: none where it is of an event that reports none.
  const std::vector<Value>& values() const { return values_; }
  absl::string_view run() const { return run_; }        // MLflow's; "": of none
  bool nested() const { return nested_; }               // that run is within another
  std::optional<int64_t> step() const;                  // nothing where it tells none
  std::optional<double> time() const { return time_; }  // seconds since 1970

 private:
  bool ReadObject();
  bool ReadText(absl::string_view& text);
  bool ReadField(absl::string_view key);
  bool ReadNumber(double& number);
  bool ReadWord(absl::string_view word);
  bool PassOverNested();
  bool Take(char c);
  void PassOverSpace();
  void ChooseValues();

  const char* at_ = nullptr;  // up to here it was read
  const char* end_ = nullptr;
  std::deque<std::string> unescaped_;  // texts that have escapes
  std::vector<Value> values_;          // all fields that are numbers, until ChooseValues
  absl::string_view event_, name_, run_;
  bool nested_ = false;
  std::optional<double> step_, time_;
};

}  // namespace tutti::service
