// `tutti-score serve`: models that answer by HTTP (docs/serving/README.md).
#pragma once

namespace tutti {

// Runs until SIGTERM or SIGINT; argv[0] is "serve". Returns the exit code: 0, or 2 for wrong usage
// and where it could not start.
int ServeCommand(int argc, char** argv);

}  // namespace tutti
