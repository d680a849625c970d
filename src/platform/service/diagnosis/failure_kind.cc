#include "platform/service/diagnosis/failure_kind.h"

namespace tutti::service {

absl::string_view Name(FailureKind kind) {
  switch (kind) {
    case FailureKind::kExitCode:
      return "exit_code";
    case FailureKind::kSignal:
      return "signal";
    case FailureKind::kOutOfMemory:
      return "out_of_memory";
    case FailureKind::kTimeLimit:
      return "time_limit";
    case FailureKind::kNode:
      return "node";
    case FailureKind::kDiskFull:
      return "disk_full";
    case FailureKind::kOther:
      return "other";
    case FailureKind::kPreparation:
      return "preparation";
    case FailureKind::kChild:
      break;
  }
  return "child";
}

FailureKind FailureKindFromName(absl::string_view name) {
  for (const FailureKind kind : kFailureKinds) {
    if (Name(kind) == name) return kind;
  }
  return FailureKind::kOther;
}

}  // namespace tutti::service
