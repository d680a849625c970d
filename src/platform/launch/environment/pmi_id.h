// Computes the number by which a rank proves to PMI's server (../mpi/pmi_server.h) that it is a
// rank of the job. PMI-1 has no field for a secret, and MPICH and Intel MPI read PMI_ID as an int,
// so the ids of a job are consecutive numbers whose first one is secret.
#pragma once

#include "spec/json/launch_plan.h"

namespace tutti::launch {

// Returns the id of `rank`, from 1 to 2^31 - 1: that of rank 0, which only who has the job's token
// can compute, plus `rank`. Another allocation of the same job has other ids.
int PmiId(const spec::LaunchPlan& plan, int rank);

}  // namespace tutti::launch
