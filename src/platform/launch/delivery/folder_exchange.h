// Reads and writes the files by which a launcher that does not reach the service and the collector
// beside the service talk: each is a small file in the allocation's folder, which only its writer
// replaces, as a whole (docs/formats/launch-plan.md). Over a network disk the one sees what the
// other has flushed, so nothing of the spool is read beyond what `written.json` says. Plain values.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "platform/launch/delivery/results.h"

namespace tutti::launch {

// "rank-R.STREAM" -> bytes.
using StreamSizes = std::map<std::string, uint64_t>;

// spool/written.json, the launcher's: what is on the disk for all to see.
struct Written {
  int64_t events = 0;
  StreamSizes streams;
  bool results = false;  // nothing more is written to them
  // How many lists of results there have been; each takes the place of the one before, once that
  // is delivered. Launchers of before this field have one.
  int64_t results_lists = 0;
  int64_t beats = 0;  // signs of life, of a launcher that promises them (beat.h)
  bool operator==(const Written&) const = default;
};

// spool/acknowledged.json, the collector's: what the service has, and its word.
struct Acknowledged {
  int64_t events = 0;
  StreamSizes streams;
  bool go = false;
  bool gone = false;    // the service does not know the allocation
  bool served = false;  // as Delivery::served
  // Once that is done: how it failed, or "".
  std::optional<std::string> code;     // fetched, for all nodes
  std::optional<std::string> results;  // delivered
  int64_t results_lists = 0;           // how many are; the last one as `results` says
  int64_t words = 0;  // counts up now and then while the service says that it takes more later
  bool operator==(const Acknowledged&) const = default;
};

// Returns spool/results, the launcher's: what it has found at the end of its processes, names of
// any bytes. Files below `folder`, the node's, are named within it: it may have another path
// elsewhere.
std::string ToText(const std::vector<Result>& files, const std::filesystem::path& folder);
std::vector<Result> ResultsFromText(absl::string_view text, const std::filesystem::path& folder);

// Returns a text of whole blocks with some room in the last, so that the next one overwrites it in
// place on a full disk. A reader may then find a part of each for a moment.
std::string ToJson(const Written& written);
std::string ToJson(const Acknowledged& acknowledged);
// Returns whether a text may be such a document, as a whole.
bool IsWhole(absl::string_view text);
// Reads such a document. What is no such document, or lacks a field, says nothing of it.
Written WrittenFromJson(absl::string_view text);
Acknowledged AcknowledgedFromJson(absl::string_view text);

}  // namespace tutti::launch
