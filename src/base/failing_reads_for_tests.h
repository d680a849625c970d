// Makes reads of the calling thread fail with EAGAIN, for tests: a file system of a user's own
// program may answer so. Takes the place of the C library's read, so one source of a test program
// includes it.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace tutti::base {

inline thread_local int failing_reads = 0;  // how many of the next ones

}  // namespace tutti::base

extern "C" ssize_t read(int fd, void* to, size_t size) {
  if (tutti::base::failing_reads > 0) {
    --tutti::base::failing_reads;
    errno = EAGAIN;
    return -1;
  }
  return ::syscall(SYS_read, fd, to, size);
}
