#include "spec/types/node_state.h"

#include <initializer_list>
#include <map>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"

namespace tutti::spec {
namespace {

// Maps sinfo's last character to what it stands for.
const std::map<char, const char*>& Suffixes() {
  static const auto& suffixes = *new std::map<char, const char*>{{'*', "NOT_RESPONDING"},
                                                                 {'~', "POWERED_DOWN"},
                                                                 {'#', "POWERING_UP"},
                                                                 {'!', "POWER_DOWN"},
                                                                 {'%', "POWERING_DOWN"},
                                                                 {'^', "REBOOT_ISSUED"},
                                                                 {'$', "MAINT"},
                                                                 {'@', ""},
                                                                 {'-', ""}};
  return suffixes;
}

std::set<std::string> FlagsOf(absl::string_view slurm_state) {
  std::string state = absl::AsciiStrToUpper(slurm_state);
  std::set<std::string> flags;
  if (const auto at = state.empty() ? Suffixes().end() : Suffixes().find(state.back());
      at != Suffixes().end()) {
    flags.insert(at->second);
    state.pop_back();
  }
  for (const absl::string_view flag : absl::StrSplit(state, '+')) flags.emplace(flag);
  return flags;
}

}  // namespace

std::string StateOfSlurmNode(absl::string_view slurm_state) {
  const std::set<std::string> flags = FlagsOf(slurm_state);
  const auto any = [&](std::initializer_list<const char*> names) {
    for (const char* name : names) {
      if (flags.contains(name)) return true;
    }
    return false;
  };
  const bool works = any({"ALLOCATED", "MIXED", "COMPLETING", "DRAINING"});
  if (any({"DOWN", "ERROR", "FAIL", "INVAL", "INVALID_REG", "UNKNOWN", "FUTURE"})) {
    return "unusable";
  }
  if (any({"POWERING_DOWN", "POWER_DOWN"})) return "leaving";
  if (any({"POWERED_DOWN"})) return works ? "preparing" : "off";
  if (any({"POWERING_UP", "POWER_UP", "REBOOT_ISSUED"})) return "preparing";
  if (any({"NOT_RESPONDING"})) return "unusable";
  if (any({"DRAIN", "DRAINED", "DRAINING", "FAILING"})) return works ? "leaving" : "unusable";
  if (any({"MAINT", "MAINTENANCE"})) return works ? "running" : "unusable";
  return works ? "running" : "idle";
}

}  // namespace tutti::spec
