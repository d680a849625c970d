// Says what is told of secrets, and what the launchers of jobs are given of them. Plain values.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace tutti::service {

struct SecretInfo {
  std::string name;
  absl::Time created, set;  // when its name was first given a value, and when it got this one
  bool readable = true;     // false: it is sealed under a key that is not there
  std::vector<std::string> waiting_jobs;  // that name it and have not begun
};

// The keys are the names of the secrets.
using SecretValues = std::map<std::string, std::string>;

}  // namespace tutti::service
