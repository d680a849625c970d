// Names the exit code of `tutti launch` by which engines know why no launcher could begin
// (docs/formats/launch-plan.md).
#pragma once

namespace tutti::spec {

// The disk of the allocation's folder had no room left, or its user's quota none; EX_IOERR of
// <sysexits.h>.
inline constexpr int kLauncherFoundDiskFull = 74;

}  // namespace tutti::spec
