// Says how one gets a program of tutti's that is missing, or does not start.
#pragma once

#include <filesystem>
#include <string>

namespace tutti::client {

// Returns what to do for the program `name` beside this one, which is in `program_folder`: of a
// build, what builds it; of a Python environment, which wheel brings it.
std::string HowToGet(const std::filesystem::path& program_folder, const std::string& name);

}  // namespace tutti::client
