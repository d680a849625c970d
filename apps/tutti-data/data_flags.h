// Parses the command line of tutti-data.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "absl/status/statusor.h"
#include "runtime/data/pack/pack_dataset.h"

namespace tutti {

struct ShowAndExit {
  std::string text;
};

struct DataCommand {
  enum class What { kPack, kVerify, kStats, kIndex };
  What what = What::kPack;
  std::string source, output;
  std::string split;  // empty: all that there are
  data::OpenOptions open;
  data::PackOptions pack;
  bool json = false;
  bool pixels = false;  // of stats: decode all
  int threads = 1;
};

// Reads the flags; InvalidArgument: unknown or contradictory flags.
absl::StatusOr<std::variant<DataCommand, ShowAndExit>> ReadCommandLine(int argc, char** argv);

}  // namespace tutti
