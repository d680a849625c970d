// Defines the names by which this program is started as another one (launch_programs.h), and what
// those and a node's launcher agree on.
#pragma once

namespace tutti::launch {

inline constexpr char kStandbyProgram[] = "launch-standby";
inline constexpr char kCollectorProgram[] = "launch-collector";
inline constexpr char kRemoverProgram[] = "launch-remover";
inline constexpr char kRankProgram[] = "launch-rank";
inline constexpr char kAgentProgram[] = "launch-agent";
inline constexpr char kPmixTaskProgram[] = "launch-pmix-task";
// The exit code of a rank whose command could not be begun, as of env(1) and timeout(1).
inline constexpr int kNotStarted = 125;
// The path of the launcher's socket, and its name in the node's scratch folder.
inline constexpr char kLauncherSocketVariable[] = "TUTTI_LAUNCHER_SOCKET";
inline constexpr char kLauncherSocketName[] = "socket";

}  // namespace tutti::launch
