// Parses the command line of tutti-bench.
#pragma once

#include <filesystem>
#include <string>
#include <variant>

#include "absl/status/statusor.h"
#include "runtime/bench/bench_sweep.h"

namespace tutti {

struct BenchCommand {
  bench::Sweep sweep;  // but for the precision
  std::string precision = "auto";
  std::filesystem::path output;  // folder for bench.md, bench.json, bench.svg; "": none
};

struct ShowAndExit {
  std::string text;
};

// Reads the flags; InvalidArgument says what is wrong with which flag.
absl::StatusOr<std::variant<BenchCommand, ShowAndExit>> ReadCommandLine(int argc, char** argv);

}  // namespace tutti
