// ProcessCounters says what one process has used since it began, by Linux's /proc. What children
// used comes to it when it waits for them: of processors apart, of disks in one sum.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/unique_fd.h"

namespace tutti::launch {

struct ProcessCounters {
  char state = '?';  // of its first thread: R, S, D, T, Z …
  pid_t parent = 0;
  double began = 0;       // in ticks since the machine was booted: with the number it names it
  double cpu = 0;         // seconds of processors
  double cpu_waited = 0;  // likewise, of children that it has waited for
  double memory = 0;     // bytes that are resident and of no file; those after a fork count in both
  bool has_disk = true;  // false: Linux does not tell us the next two, as of another user's
  double disk_read = 0, disk_write = 0;  // bytes
};

// Reads /proc/PID/stat, statm and io; nothing for texts of another form.
std::optional<ProcessCounters> CountersIn(absl::string_view stat, absl::string_view statm,
                                          absl::string_view io);

// The files of one process. They are its own: once it has ended nothing is read from them, whoever
// has its number. Kept open they take a third of the time; read once, those that are not kept open
// are of that process too. Not thread-safe.
class ProcessFiles {
 public:
  explicit ProcessFiles(pid_t pid) : pid_(pid) {}
  // Returns nothing once the process has ended. `keep`: leave the files open.
  std::optional<ProcessCounters> Read(bool keep);

 private:
  const pid_t pid_;
  std::optional<double> began_;
  base::UniqueFd stat_, statm_, io_;
};

// Returns the seconds in which the first thread of a process could have run and had no processor;
// nothing where Linux does not tell it.
std::optional<double> SecondsWithoutProcessor(pid_t pid);

// Returns the processor time of this thread: what others take meanwhile is no cost of a look.
absl::Duration ProcessorTime();

}  // namespace tutti::launch
