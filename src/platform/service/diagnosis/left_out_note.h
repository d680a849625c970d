// LeftOutNote tells the user what is not among a job's results, over all of its nodes, each thing
// once: "left out of the results: outputs/pipe (a pipe)". A folder that is empty on one node is
// told only where no node has a file below it. Fed with the launchers' events `finalizing` and
// `lost` (docs/formats/launcher-calls.md). Not thread-safe.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>

namespace tutti::service {

class LeftOutNote {
 public:
  void Add(const nlohmann::json& finalizing);
  // Returns "" if there is nothing to say.
  std::string Text() const;

 private:
  bool AddAll(const nlohmann::json& event, const char* field, std::set<std::string>& texts);

  std::set<std::string> left_out_;  // with the reason
  std::set<std::string> empty_, filled_;
  bool knows_filled_ = true;  // false: nodes have more folders with files than they have named
  size_t more_ = 0;           // left out on some node, and not named by it
};

}  // namespace tutti::service
