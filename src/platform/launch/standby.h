// Starts a launcher before there is a plan for it, and has it do meanwhile all that needs no plan
// (decision 032).
#pragma once

#include <functional>
#include <string>

namespace tutti::launch {

// Is the body of `tutti launch-standby [FOLDER]`: makes FOLDER what an allocation's folder is
// before its job begins, and holds its lock; waits on the standard input for the line that names a
// plan, whose folder FOLDER has been renamed to meanwhile, or is another; then it is that plan's
// launcher. Ends, without one, with its input or by SIGTERM. Returns the process's exit code.
// `begins` is told the plan's path once it is known.
int RunStandby(const std::string& folder,
               const std::function<void(const std::string& plan)>& begins = nullptr);

}  // namespace tutti::launch
