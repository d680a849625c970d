// Has what a site looks at on its nodes beside what tutti looks at itself (docs/node-health.md).
// Plain values.
#pragma once

#include <string>
#include <vector>

namespace tutti::spec {

struct NodeChecks {
  std::string command;             // the site's own, for a shell; empty: there is none
  int timeout_seconds = 60;        // that it may take
  std::vector<std::string> links;  // that must be up: "eth0", "mlx5_0", "mlx5_0:1"

  bool operator==(const NodeChecks&) const = default;
};

}  // namespace tutti::spec
