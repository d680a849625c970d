// One process on each node, which is told its rank where there are several.
#include "spec/types/job_distribution.h"

namespace tutti::spec {

extern const DistributionDriver kNoDistribution;
const DistributionDriver kNoDistribution = {
    .type = "none", .count_key = "", .has_ranks = false, .may_be_lightning = true};

}  // namespace tutti::spec
