// Open MPI of a job: these functions find its mpirun in the job's environment, and make mpirun's
// command line and environment. They have no effects; only the search reads the folders of PATH.
#pragma once

#include <string>
#include <vector>

#include "platform/launch/environment/process_environment.h"
#include "spec/json/launch_plan.h"

namespace tutti::launch {

// A job sets this environment variable to choose how its ranks start. With "direct" the launchers
// start them, and they are no MPI world; with "pmi" the launchers start them, and PMI makes them
// one world; with "mpirun" Open MPI's mpirun starts them even where Slurm's PMIx could.
inline constexpr char kMpiVariable[] = "TUTTI_MPI";
// Returns the plan's value of kMpiVariable, or "" if the plan sets none.
std::string MpiSettingOf(const spec::LaunchPlan& plan);

// Returns whether the plan asks for one MPI world at all: distribution mpi, more than one process,
// and kMpiVariable is not "direct".
bool WantsMpi(const spec::LaunchPlan& plan);

// Returns the path of Open MPI's starter, orterun up to 4.1 and PRRTE's prterun from 5 on, if the
// PATH of `variables` has it and its daemon, and this node goes by its own name, by which the
// daemons know each other. Otherwise it is empty, also where another MPI's starter comes before it
// in PATH, or ranks run in an image. If there are several, the first in PATH counts.
std::string FindOpenMpi(const spec::LaunchPlan& plan, const Variables& variables);

// Returns why FindOpenMpi finds none here or on another node, and what helps: the end of a
// sentence.
std::string WhyNoOpenMpi(const spec::LaunchPlan& plan, const Variables& variables);

// The name of this program in a folder of each node's PATH: its path may be another on each. It is
// both what mpirun starts as a rank and how it reaches the other nodes.
inline constexpr char kLauncherLink[] = "tutti-launcher";

// Returns mpirun's command line on the first node. `mpirun` is the path that FindOpenMpi found.
std::vector<std::string> MpirunCommand(const spec::LaunchPlan& plan, const std::string& mpirun);

// Returns the environment of mpirun and of its daemons: a rank's, without what says which rank it
// is, and with where Open MPI lies if it came with a Python package. `mpirun`: what FindOpenMpi
// found here; `socket`: where launch_programs.h finds this node's launcher; `links`: the folder
// with kLauncherLink.
Variables StarterEnvironment(const spec::LaunchPlan& plan, const NodeFacts& facts,
                             const std::string& mpirun, const std::string& socket,
                             const std::string& links);

}  // namespace tutti::launch
