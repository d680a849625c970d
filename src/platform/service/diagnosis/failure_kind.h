// FailureKind sorts failures for who counts them: a few kinds, each of which asks for somebody else
// to look. The reason itself is for people (diagnosis.h).
#pragma once

#include <array>

#include "absl/strings/string_view.h"

namespace tutti::service {

// kExitCode: a rank ended by itself, with an error; kSignal: by a signal; kNode: a node was lost,
// or is ill; kDiskFull: the disk of all nodes was full; kOther: what is neither a rank's nor a
// node's doing, as outputs that cannot be delivered, or a cluster's verdict; kPreparation: the same
// before any process began, as an environment that cannot be made; kChild: of a pipeline or a
// sweep.
enum class FailureKind {
  kExitCode,
  kSignal,
  kOutOfMemory,
  kTimeLimit,
  kNode,
  kDiskFull,
  kOther,
  kPreparation,
  kChild
};
inline constexpr std::array kFailureKinds = {
    FailureKind::kExitCode,  FailureKind::kSignal,      FailureKind::kOutOfMemory,
    FailureKind::kTimeLimit, FailureKind::kNode,        FailureKind::kDiskFull,
    FailureKind::kOther,     FailureKind::kPreparation, FailureKind::kChild};

absl::string_view Name(FailureKind kind);                 // "exit_code"
FailureKind FailureKindFromName(absl::string_view name);  // kOther for what is none

}  // namespace tutti::service
