#include "spec/types/asked_of_slurm.h"

#include "absl/strings/str_cat.h"

namespace tutti::spec {

SlurmSettings AskedOfSlurm(const JobSpec& spec) {
  SlurmSettings slurm = spec.slurm;
  if (!spec.share) return slurm;
  slurm.exclusive = false;
  slurm.cpus_per_node = spec.share->cpus > 0 ? spec.share->cpus : spec.ProcessesOfANode();
  if (spec.share->memory_bytes > 0)
    slurm.memory = absl::StrCat(spec.share->memory_bytes >> 20, "M");
  // In place of the compute's, which may be all of a node's.
  if (spec.share->gpus > 0) {
    slurm.gres = absl::StrCat("gpu:", spec.share->gpus);
  } else if (slurm.gres.empty()) {
    slurm.gres = "none";
  }
  return slurm;
}

}  // namespace tutti::spec
