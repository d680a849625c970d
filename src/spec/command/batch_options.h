// The options that #SBATCH lines give. Inside the room spec only. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "spec/text/diagnostics.h"

namespace tutti::spec {

// Says what becomes of an option of sbatch.
enum class BatchUse {
  kRead,      // means something to tutti: a compute's setting, the time, the name, …
  kShape,     // handed to sbatch as it is: how much the job asks for
  kHandedOn,  // handed to sbatch as it is
  kNoEffect,
  kRefused,
};

enum class BatchValue { kNone, kOptional, kNeeded };

struct BatchOption {
  absl::string_view name;  // long, without "--"
  char letter;             // 0: it has no short form
  BatchValue value;
  BatchUse use;
  absl::string_view note;  // why it is refused or has no effect
};

// An option as it stands in a script.
struct GivenOption {
  const BatchOption* option;
  std::string value;  // "": none
  int line;
};

// Reads the options of the #SBATCH lines that stand before the first command. An option that is
// wrong or refused is reported to `diagnostics` and left out.
std::vector<GivenOption> ReadBatchOptions(absl::string_view script, Diagnostics& diagnostics);

// Reads "90" (minutes), "1:30" (minutes and seconds), "2:00:00", "1-12", "1-12:30:00"; false for
// what is no time of Slurm's. Infinite for "UNLIMITED" and 0.
bool ParseSlurmTime(absl::string_view text, absl::Duration& time);

}  // namespace tutti::spec
