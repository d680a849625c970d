// A library that LD_PRELOAD puts between tutti's launchers and libc: it fails one call, or lets it
// hang as on a file server that does not answer. It acts in launchers, in what they have mpirun
// start (`tutti launch-…`), in the service and in `tutti backup`, `datastore` and `file-server`,
// and in tutti-storage, in no other program. README.md says how to use it.
//
// TUTTI_FAULT of the job's environment_variables: PROGRAM:CALL:ORDINAL:ERRNO:ONCE, the ORDINAL-th
// CALL (from 1) of a PROGRAM (launch, rank, agent) fails with ERRNO, hangs if that is 0, or kills
// the process if that is -1, unless the file ONCE is there, which is then made. record:FILE appends
// "PROGRAM CALL PROCESS" to FILE at each call. A launcher, which may be there before its job is,
// reads it from the plan and counts from there on. For a service and the commands above (PROGRAM is
// serve, backup, datastore-create, file-server-fill and so on) it is TUTTI_SERVICE_FAULT of their
// environment, and it counts once the file TUTTI_SERVICE_FAULT_FROM is there. For tutti-storage
// (PROGRAM is storage) it is TUTTI_STORAGE_FAULT.
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

#ifndef __x86_64__
#error "preload.cc makes system calls by the instructions of x86-64, and no other processor's"
#endif

namespace {

// No call of libc's: those are what is to be counted.
inline __attribute__((always_inline)) long Raw(long number, long a = 0, long b = 0, long c = 0,
                                               long d = 0, long e = 0) {
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  long result;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
               : "rcx", "r11", "memory");
  return result;
}

char program[32];
char call_to_fail[32], once[512], record[512], from[512];
char process[16];  // that counts: of a vfork's child its parent
int fail_at = 0, fail_with = 0;
std::atomic<bool> armed{false}, is_serving{false};
std::atomic<int> calls{0};

// As a call to a file server: state D until SIGKILL. The parent of a vfork waits so. Its child is
// its parent's, for it to be no descendant.
__attribute__((noinline)) void Hang() {
  const long self = Raw(SYS_getpid);
  const long child = Raw(SYS_clone, CLONE_VM | CLONE_VFORK | CLONE_PARENT | SIGCHLD);
  if (child != 0) return;
  Raw(SYS_close_range, 0, ~0U, 0);
  unsigned long all = ~0UL;
  Raw(SYS_rt_sigprocmask, SIG_SETMASK, reinterpret_cast<long>(&all), 0, sizeof all);
  timespec pause = {0, 100'000'000};
  while (Raw(SYS_kill, self, 0) == 0) Raw(SYS_nanosleep, reinterpret_cast<long>(&pause));
  Raw(SYS_exit, 0);
}

void Append(const char* file, const char* text, int flags) {
  const long fd = Raw(SYS_openat, AT_FDCWD, reinterpret_cast<long>(file),
                      O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0666);
  if (fd < 0) return;
  Raw(SYS_write, fd, reinterpret_cast<long>(text), strlen(text));
  Raw(SYS_close, fd);
}

bool IsFile(int fd) {
  struct stat info;
  return Raw(SYS_fstat, fd, reinterpret_cast<long>(&info)) == 0 && S_ISREG(info.st_mode);
}

// Whether what is to be counted has begun.
bool HasBegun() {
  if (!armed.load(std::memory_order_acquire)) return false;
  if (from[0] == 0) return true;
  static std::atomic<bool> seen{false};
  if (!seen && Raw(SYS_access, reinterpret_cast<long>(from), F_OK) == 0) seen = true;
  return seen;
}

// Whether this call is to fail, with errno set.
bool Fails(const char* call) {
  if (!HasBegun()) return false;
  if (record[0] != 0) {
    char line[96];
    snprintf(line, sizeof line, "%s %s %s\n", program, call, process);
    Append(record, line, O_APPEND);
    return false;
  }
  if (strcmp(call, call_to_fail) != 0 || ++calls != fail_at) return false;
  const long first = Raw(SYS_openat, AT_FDCWD, reinterpret_cast<long>(once),
                         O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (first < 0) return false;
  Raw(SYS_close, first);
  if (fail_with < 0) Raw(SYS_kill, Raw(SYS_getpid), SIGKILL);
  if (fail_with == 0) {
    Hang();
    errno = EIO;
  } else {
    errno = fail_with;
  }
  return true;
}

void Arm(const char* text) {
  char spec[1200] = {};
  const size_t size = strcspn(text, "\"");
  memcpy(spec, text, size < sizeof spec - 1 ? size : sizeof spec - 1);
  char* rest = spec;
  const char* const of = strsep(&rest, ":");
  if (strcmp(of, "record") == 0 && rest != nullptr) {
    strncpy(record, rest, sizeof record - 1);
    snprintf(process, sizeof process, "%ld", Raw(SYS_getpid));
    armed = true;
    return;
  }
  const char* const call = strsep(&rest, ":");
  const char* const ordinal = strsep(&rest, ":");
  const char* const error = strsep(&rest, ":");
  if (strcmp(of, program) != 0 || rest == nullptr) return;
  strncpy(call_to_fail, call, sizeof call_to_fail - 1);
  strncpy(once, rest, sizeof once - 1);
  fail_at = atoi(ordinal);
  fail_with = atoi(error);
  armed.store(true, std::memory_order_release);
}

void ArmByPlan(const char* path) {
  static std::atomic<bool> read{false};
  const size_t size = path == nullptr ? 0 : strlen(path);
  if (strcmp(program, "launch") != 0 || size < 10) return;
  const bool is_plan = strcmp(path + size - 10, "/plan.json") == 0;
  const bool is_shared =
      strstr(path, "/shared/") != nullptr && strcmp(path + size - 5, ".json") == 0;
  if (!is_plan && !is_shared) return;
  static char plan[1 << 20];
  const long fd = Raw(SYS_openat, AT_FDCWD, reinterpret_cast<long>(path), O_RDONLY | O_CLOEXEC);
  const long n = fd < 0 ? 0 : Raw(SYS_read, fd, reinterpret_cast<long>(plan), sizeof plan - 1);
  if (fd >= 0) Raw(SYS_close, fd);
  if (n <= 0) return;  // one that is empty is nobody's yet
  plan[n] = 0;
  if (strstr(plan, "\"shared\":\"") != nullptr) return;  // a node's part: what is shared follows
  if (read.exchange(true)) return;
  const char* const name = strstr(plan, "\"TUTTI_FAULT\"");
  const char* const colon = name == nullptr ? nullptr : strchr(name, ':');
  const char* const value = colon == nullptr ? nullptr : strchr(colon, '"');
  if (value != nullptr) Arm(value + 1);
}

__attribute__((constructor)) void Begin() {
  char line[4096] = {};
  const long fd = Raw(SYS_openat, AT_FDCWD, reinterpret_cast<long>("/proc/self/cmdline"), O_RDONLY);
  const long n = Raw(SYS_read, fd, reinterpret_cast<long>(line), sizeof line - 1);
  Raw(SYS_close, fd);
  const char* const which = n > 0 ? line + strlen(line) + 1 : line;
  if (strcmp(which, "launch") == 0 || strcmp(which, "launch-standby") == 0)
    strcpy(program, "launch");
  if (strcmp(which, "launch-rank") == 0) strcpy(program, "rank");
  if (strcmp(which, "launch-agent") == 0) strcpy(program, "agent");
  const char* const spec = getenv("TUTTI_FAULT");
  if (program[0] != 0 && strcmp(program, "launch") != 0 && spec != nullptr) Arm(spec);
  const char* const of_storage = getenv("TUTTI_STORAGE_FAULT");
  const char* const slash = strrchr(line, '/');
  if (of_storage != nullptr && strcmp(slash == nullptr ? line : slash + 1, "tutti-storage") == 0) {
    strcpy(program, "storage");
    is_serving = true;
    return Arm(of_storage);
  }
  const char* const of_service = getenv("TUTTI_SERVICE_FAULT");
  const char* const file = getenv("TUTTI_SERVICE_FAULT_FROM");
  const bool is_of_lists = strcmp(which, "datastore") == 0 || strcmp(which, "file-server") == 0;
  const bool serves = strcmp(which, "serve") == 0 || strcmp(which, "backup") == 0 || is_of_lists;
  if (!serves || of_service == nullptr || file == nullptr) return;
  const char* const what = is_of_lists ? which + strlen(which) + 1 : "";
  snprintf(program, sizeof program, "%s%s%s", which, is_of_lists ? "-" : "", what);
  strncpy(from, file, sizeof from - 1);
  is_serving = true;
  Arm(of_service);
}

template <class Function>
Function* Real(const char* name, std::atomic<Function*>& kept) {
  if (kept.load() == nullptr) kept = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
  return kept.load();
}

}  // namespace

#define REAL(name)                                   \
  static std::atomic<decltype(::name)*> real_##name; \
  auto* const real = Real<decltype(::name)>(#name, real_##name)

#define FAILING(type, name, failed, parameters, ...)                       \
  extern "C" __attribute__((visibility("default"))) type name parameters { \
    REAL(name);                                                            \
    if (Fails(#name)) return failed;                                       \
    return real(__VA_ARGS__);                                              \
  }

extern "C" __attribute__((visibility("default"))) int open(const char* path, int flags, ...) {
  REAL(open);
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  if ((flags & O_ACCMODE) == O_RDONLY && !armed) ArmByPlan(path);
  if (Fails((flags & O_CREAT) != 0 ? "create" : "open")) return -1;
  return real(path, flags, mode);
}

extern "C" __attribute__((visibility("default"))) int openat(int folder, const char* path,
                                                             int flags, ...) {
  REAL(openat);
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  if (Fails("openat")) return -1;
  return real(folder, path, flags, mode);
}

// SQLite's, which no launcher has.
extern "C" __attribute__((visibility("default"))) int open64(const char* path, int flags, ...) {
  REAL(open64);
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  if (is_serving && (flags & O_CREAT) != 0 && Fails("create")) return -1;
  return real(path, flags, mode);
}

extern "C" __attribute__((visibility("default"))) ssize_t pwrite64(int fd, const void* from,
                                                                   size_t size, off64_t at) {
  REAL(pwrite64);
  if (is_serving && Fails("pwrite")) return -1;
  return real(fd, from, size, at);
}

extern "C" __attribute__((visibility("default"))) int ftruncate64(int fd, off64_t size) {
  REAL(ftruncate64);
  if (is_serving && Fails("ftruncate")) return -1;
  return real(fd, size);
}

// The address that it returns to is on the stack, and the child would overwrite it: it is called by
// a jump.
extern "C" __attribute__((visibility("hidden"), used)) void* VforkOrFail() {
  REAL(vfork);
  return Fails("vfork") ? nullptr : reinterpret_cast<void*>(real);
}
asm(R"(
  .globl vfork
  .type vfork, @function
vfork:
  sub $8, %rsp
  call VforkOrFail
  add $8, %rsp
  test %rax, %rax
  jz 1f
  jmp *%rax
1:
  mov $-1, %rax
  ret
  .size vfork, . - vfork
)");

FAILING(ssize_t, read, -1, (int fd, void* to, size_t size), fd, to, size)

// A disk fails or hangs; an eventfd or a pipe, by which threads wake each other, does neither.
extern "C" __attribute__((visibility("default"))) ssize_t write(int fd, const void* from,
                                                                size_t size) {
  REAL(write);
  if (IsFile(fd) && Fails("write")) return -1;
  return real(fd, from, size);
}

extern "C" __attribute__((visibility("default"))) ssize_t writev(int fd, const iovec* from,
                                                                 int count) {
  REAL(writev);
  if (IsFile(fd) && Fails("writev")) return -1;
  return real(fd, from, count);
}

FAILING(ssize_t, pread, -1, (int fd, void* to, size_t size, off_t at), fd, to, size, at)
FAILING(ssize_t, pwrite, -1, (int fd, const void* from, size_t size, off_t at), fd, from, size, at)
FAILING(int, mkdir, -1, (const char* path, mode_t mode), path, mode)
FAILING(int, rename, -1, (const char* from, const char* to), from, to)
FAILING(int, renameat2, -1,
        (int from_fd, const char* from, int to_fd, const char* to, unsigned flags), from_fd, from,
        to_fd, to, flags)
FAILING(int, unlink, -1, (const char* path), path)
FAILING(int, symlink, -1, (const char* to, const char* path), to, path)
FAILING(int, chmod, -1, (const char* path, mode_t mode), path, mode)
FAILING(int, fsync, -1, (int fd), fd)
FAILING(int, fdatasync, -1, (int fd), fd)
FAILING(int, ftruncate, -1, (int fd, off_t size), fd, size)
FAILING(int, fallocate, -1, (int fd, int mode, off_t at, off_t size), fd, mode, at, size)
FAILING(int, flock, -1, (int fd, int how), fd, how)
FAILING(int, pipe2, -1, (int* ends, int flags), ends, flags)
FAILING(int, dup2, -1, (int from, int to), from, to)
FAILING(int, chdir, -1, (const char* path), path)
FAILING(int, execve, -1, (const char* path, char* const* arguments, char* const* environment), path,
        arguments, environment)
FAILING(int, socket, -1, (int domain, int type, int protocol), domain, type, protocol)
FAILING(int, connect, -1, (int fd, const sockaddr* to, socklen_t size), fd, to, size)
FAILING(int, bind, -1, (int fd, const sockaddr* at, socklen_t size), fd, at, size)
FAILING(int, listen, -1, (int fd, int backlog), fd, backlog)
FAILING(int, accept4, -1, (int fd, sockaddr* from, socklen_t* size, int flags), fd, from, size,
        flags)
FAILING(ssize_t, send, -1, (int fd, const void* from, size_t size, int flags), fd, from, size,
        flags)
FAILING(ssize_t, recv, -1, (int fd, void* to, size_t size, int flags), fd, to, size, flags)
FAILING(ssize_t, sendmsg, -1, (int fd, const msghdr* message, int flags), fd, message, flags)
FAILING(ssize_t, recvmsg, -1, (int fd, msghdr* message, int flags), fd, message, flags)
FAILING(int, poll, -1, (pollfd * fds, nfds_t count, int milliseconds), fds, count, milliseconds)
FAILING(int, access, -1, (const char* path, int mode), path, mode)
FAILING(int, statvfs, -1, (const char* path, struct statvfs* info), path, info)
FAILING(int, utimensat, -1, (int folder, const char* path, const timespec* times, int flags),
        folder, path, times, flags)
FAILING(int, getaddrinfo, errno == EAGAIN ? EAI_AGAIN : EAI_NONAME,
        (const char* host, const char* port, const addrinfo* hints, addrinfo** found), host, port,
        hints, found)
FAILING(int, stat, -1, (const char* path, struct stat* info), path, info)
FAILING(int, lstat, -1, (const char* path, struct stat* info), path, info)
FAILING(int, fstat, -1, (int fd, struct stat* info), fd, info)
FAILING(int, fstatat, -1, (int folder, const char* path, struct stat* info, int flags), folder,
        path, info, flags)
FAILING(int, statx, -1,
        (int folder, const char* path, int flags, unsigned mask, struct statx* info), folder, path,
        flags, mask, info)
FAILING(DIR*, fdopendir, nullptr, (int fd), fd)
FAILING(dirent*, readdir, nullptr, (DIR * folder), folder)
FAILING(int, unlinkat, -1, (int folder, const char* path, int flags), folder, path, flags)
FAILING(int, rmdir, -1, (const char* path), path)
FAILING(int, fchmod, -1, (int fd, mode_t mode), fd, mode)
FAILING(int, fchmodat, -1, (int folder, const char* path, mode_t mode, int flags), folder, path,
        mode, flags)
FAILING(ssize_t, readlink, -1, (const char* path, char* to, size_t size), path, to, size)
FAILING(char*, realpath, nullptr, (const char* path, char* to), path, to)
FAILING(int, link, -1, (const char* from, const char* to), from, to)
FAILING(char*, mkdtemp, nullptr, (char* name), name)
FAILING(int, mkstemp, -1, (char* name), name)
FAILING(int, memfd_create, -1, (const char* name, unsigned flags), name, flags)
FAILING(ssize_t, sendfile, -1, (int to, int from, off_t* at, size_t size), to, from, at, size)
FAILING(int, socketpair, -1, (int domain, int type, int protocol, int* ends), domain, type,
        protocol, ends)
FAILING(int, epoll_create1, -1, (int flags), flags)
FAILING(int, epoll_ctl, -1, (int epoll, int what, int fd, epoll_event* event), epoll, what, fd,
        event)
FAILING(int, epoll_wait, -1, (int epoll, epoll_event* events, int most, int milliseconds), epoll,
        events, most, milliseconds)
FAILING(int, eventfd, -1, (unsigned count, int flags), count, flags)
FAILING(int, inotify_init1, -1, (int flags), flags)
FAILING(int, inotify_add_watch, -1, (int fd, const char* path, uint32_t mask), fd, path, mask)
FAILING(int, signalfd, -1, (int fd, const sigset_t* set, int flags), fd, set, flags)
FAILING(ssize_t, getrandom, -1, (void* to, size_t size, unsigned flags), to, size, flags)
FAILING(pid_t, setsid, -1, (), )
FAILING(pid_t, waitpid, -1, (pid_t pid, int* status, int options), pid, status, options)
FAILING(int, setpgid, -1, (pid_t pid, pid_t group), pid, group)
FAILING(int, waitid, -1, (idtype_t type, id_t id, siginfo_t* info, int options), type, id, info,
        options)
FAILING(int, pthread_create, errno,
        (pthread_t * thread, const pthread_attr_t* attributes, void* (*start)(void*),
         void* argument),
        thread, attributes, start, argument)
