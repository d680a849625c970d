// `tutti plan`: what n nodes will do, from what one node has shown.
#pragma once

namespace tutti {

// Runs `tutti-bench plan …`, whose words begin at argv[1]. Returns the exit code: 2 where the input
// is wrong, and stderr says how to put it right.
int RunPlan(int argc, char** argv);

}  // namespace tutti
