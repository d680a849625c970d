#include "spec/types/asked_of_slurm.h"

#include "absl/strings/str_cat.h"

namespace tutti::spec {

SlurmSettings AskedOfSlurm(const JobSpec& spec) {
  SlurmSettings slurm = spec.slurm;
  if (!spec.part) return slurm;
  slurm.exclusive = false;
  slurm.cpus_per_node = spec.part->cpus > 0 ? spec.part->cpus : spec.ProcessesOfANode();
  if (spec.part->memory_bytes > 0) slurm.memory = absl::StrCat(spec.part->memory_bytes >> 20, "M");
  // In place of the compute's, which may be all of a node's.
  if (spec.part->gpus > 0) {
    slurm.gres = absl::StrCat("gpu:", spec.part->gpus);
  } else if (slurm.gres.empty()) {
    slurm.gres = "none";
  }
  return slurm;
}

}  // namespace tutti::spec
