// UnkeptNote tells the user what a job has written where it was removed, over all of its nodes:
// "not kept: 120 MB in ./checkpoints; write to ./outputs". Fed with the launchers' events
// `finalizing` (docs/formats/launch-plan.md). Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tutti::service {

// From this on a place is named, and one with results (models, metrics) whatever its size; of a job
// that has kept no file at all whatever launchers tell.
inline constexpr uint64_t kUnkeptWorthAWord = 1'000'000;

class UnkeptNote {
 public:
  void Add(const nlohmann::json& finalizing);
  // Returns "" if there is nothing to say.
  std::string Text() const;

 private:
  struct Place {
    bool has_results = false;
    uint64_t bytes = 0;
  };
  void AddPlace(const nlohmann::json& one, std::map<std::string, Place>& places);
  std::map<std::string, Place> places_;  // by path within the working folder
  std::map<std::string, Place> small_;   // so little that it counts only if nothing was kept
  bool any_kept_ = false, more_ = false;
};

}  // namespace tutti::service
