// Writes NFS-Ganesha's configuration for one file server, and reads from its log why it has ended.
// Pure functions except CheckGanesha; thread-safe.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "spec/data/file_server.h"

namespace tutti::file_server {

inline constexpr char kGanesha[] = "ganesha.nfsd";

// Returns the configuration of a server of NFSv4 alone, over TCP alone, that exports the folder as
// "/NAME" to its clients and to nobody else. `recovery`: a folder of its own, for what it must know
// after a restart. What a program writes to the folder is seen at once: nothing is cached.
std::string GaneshaConfig(const spec::FileServer& server, const std::filesystem::path& recovery);

// Returns whether its log since it was started says that it serves.
bool ServesByLog(absl::string_view log);
// Returns why it has ended, as far as the end of its log says it; "" if it does not.
std::string ReasonInLog(absl::string_view log);

// FailedPrecondition, with what to do, if this process could not start it: the program is not in
// $PATH, or may not open files by their handles, as only root may. `variables`: the environment.
absl::Status CheckGanesha(const std::map<std::string, std::string>& variables);

}  // namespace tutti::file_server
