#include "spec/types/job_distribution.h"

#include <algorithm>

namespace tutti::spec {

const DistributionDriver* FindDistribution(absl::string_view type) {
  const auto all = Distributions();
  const auto found = std::find_if(all.begin(), all.end(), [&](const DistributionDriver* driver) {
    return driver->type == type || (!type.empty() && driver->other_type == type);
  });
  return found == all.end() ? nullptr : *found;
}

const DistributionDriver& DriverOf(const Distribution& distribution) {
  const DistributionDriver* const found = FindDistribution(distribution.type);
  return found == nullptr ? *Distributions().back() : *found;
}

int WorldSizeOf(const Distribution& distribution, int nodes) {
  const DistributionDriver& driver = DriverOf(distribution);
  return driver.world_size == nullptr ? nodes * distribution.process_count_per_instance
                                      : driver.world_size(distribution, nodes);
}

int ServerCountOf(const Distribution& distribution, int nodes) {
  const DistributionDriver& driver = DriverOf(distribution);
  return driver.server_count == nullptr ? 0 : driver.server_count(distribution, nodes);
}

std::optional<StartPort> StartPortOf(const Distribution& distribution, int nodes) {
  const DistributionDriver& driver = DriverOf(distribution);
  return driver.start_port == nullptr ? std::nullopt : driver.start_port(distribution, nodes);
}

}  // namespace tutti::spec
